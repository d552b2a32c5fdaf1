"""What a forecaster knows after a load that lies before the one on which it is used or judged."""

from rheostat.analyze.forecasts.calibrated import Calibrated
from rheostat.analyze.forecasts.forecaster import History, Memory, observe_all

WARM_UP = 3  # windows of errors: those before them would be forgotten again


def warm_up(calibrated: Calibrated, history: History, local_start: float = 0.0) -> Memory:
    """The memory after a history; its last part calibrates the band."""
    last = max(0, len(history) - WARM_UP * calibrated.window)
    base = observe_all(calibrated.base, {}, history[:last], local_start)
    return observe_all(calibrated, {"base": base}, history[last:], local_start)
