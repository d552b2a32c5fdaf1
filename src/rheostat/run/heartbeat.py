"""Keeps a run alive between two turns: polls the engine, which replaces what was lost."""

from collections.abc import Callable

from rheostat.engines.spark.engine import SparkEngine

BEAT_SECONDS = 1.0
Listener = Callable[[float], None]  # called with the time of each beat


class Heartbeat:
    """Beats about once a second while the run waits, whether or not anybody watches.

    The run's clock calls `tick` whenever it sleeps. Views and samplers listen to the beat.
    """

    def __init__(self) -> None:
        self._engine: SparkEngine | None = None
        self._listeners: list[Listener] = []
        self._last = float("-inf")
        self._polling = False

    def start(self, engine: SparkEngine) -> None:
        """Poll this engine from now on."""
        self._engine = engine

    def listen(self, listener: Listener) -> None:
        """Call this after every beat."""
        self._listeners.append(listener)

    def tick(self) -> None:
        """Beat, if the last beat was long enough ago."""
        if self._engine is None or (now := self._engine.now()) - self._last < BEAT_SECONDS:
            return
        self._last = now
        self._poll(self._engine)
        for listener in self._listeners:
            listener(self._engine.now())

    def _poll(self, engine: SparkEngine) -> None:
        """Healing waits for nodes and so ticks again; a change polls on its own."""
        if self._polling or engine.doing:
            return
        self._polling = True
        try:
            engine.poll()
        finally:
            self._polling = False
