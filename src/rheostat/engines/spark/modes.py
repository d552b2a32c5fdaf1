"""The two modes; needs no Spark, so that a command can refuse a wrong one at once."""

from rheostat.model.errors import UserError

MODES = ("microbatch", "realtime")
LEAST_REALTIME_SECONDS = 5.0


def check_mode(mode: str, trigger_seconds: float | None) -> None:
    """Refuse a mode that does not exist, and a trigger that it cannot have."""
    if mode not in MODES:
        raise UserError(f"mode {mode!r} does not exist: choose {' or '.join(MODES)}")
    if mode == "realtime" and trigger_seconds is not None and trigger_seconds < LEAST_REALTIME_SECONDS:
        raise UserError(
            f"Real-Time Mode needs a trigger of {LEAST_REALTIME_SECONDS:g} s, not {trigger_seconds:g} s: "
            "it is the time between checkpoints, not the latency"
        )
