"""The two modes; needs no Spark, so that a command can refuse a wrong one at once."""

from collections.abc import Mapping

from rheostat.model.errors import UserError

MODES = ("microbatch", "realtime")
LEAST_SETTING = "spark.sql.streaming.realTimeMode.minBatchDuration"


def least_trigger(mode: str, settings: Mapping[str, str]) -> float:
    """The shortest trigger, in seconds, that Spark takes; who sets another minimum hears from Spark."""
    return 5.0 if mode == "realtime" and LEAST_SETTING not in settings else 0.0


def check_mode(mode: str, trigger_seconds: float | None, settings: Mapping[str, str] = {}) -> None:
    """Refuse a mode that does not exist, and a trigger that it cannot have."""
    if mode not in MODES:
        raise UserError(f"mode {mode!r} does not exist: choose {' or '.join(MODES)}")
    least = least_trigger(mode, settings)
    if trigger_seconds is not None and trigger_seconds < least:
        raise UserError(
            f"Real-Time Mode needs a trigger of {least:g} s, not {trigger_seconds:g} s: "
            "it is the time between checkpoints, not the latency"
        )
