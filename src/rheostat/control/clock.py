"""Real time."""

import time
from collections.abc import Callable


class SystemClock:
    """Seconds since a run began; calls `on_tick` while it sleeps, so that the run is monitored and healed."""

    TICK_SECONDS = 0.5

    def __init__(self, began_at: float, on_tick: Callable[[], None] = lambda: None) -> None:
        self.began_at, self.on_tick = began_at, on_tick

    def now(self) -> float:
        return time.time() - self.began_at

    def local_time(self, now: float) -> float:
        """A time of the run as seconds since midnight on Monday, in this machine's local time."""
        local = time.localtime(self.began_at + now)
        whole = ((local.tm_wday * 24 + local.tm_hour) * 60 + local.tm_min) * 60 + local.tm_sec
        return whole + (self.began_at + now) % 1

    def sleep(self, seconds: float, roused: Callable[[], bool] = lambda: False) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(self.TICK_SECONDS, left))
            self.on_tick()
            if roused():
                return
