"""The two modes of Structured Streaming; needs no Spark, so a command can refuse a wrong mode at once."""

import re
from collections.abc import Mapping

from rheostat.model.errors import UserError

MODES = ("microbatch", "realtime")
LEAST_SETTING = "spark.sql.streaming.realTimeMode.minBatchDuration"
_UNITS = {"": 0.001, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def least_trigger(mode: str, settings: Mapping[str, str]) -> float:
    """The shortest trigger that Spark accepts, in seconds.

    >>> least_trigger("realtime", {}), least_trigger("realtime", {LEAST_SETTING: "1500"})
    (5.0, 1.5)
    """
    if mode != "realtime":
        return 0.0
    given = settings.get(LEAST_SETTING, "5s").strip().lower()
    match = re.fullmatch(r"(\d+)\s*(\w*)", given)
    if match is None or match[2] not in _UNITS:
        raise UserError(f"{LEAST_SETTING}={given} is not a valid time: write it as 3s or 3000ms")
    return int(match[1]) * _UNITS[match[2]]


def check_mode(mode: str, trigger_seconds: float | None, settings: Mapping[str, str] = {}) -> None:
    """Refuse a mode that does not exist, and a trigger that it does not allow."""
    if mode not in MODES:
        raise UserError(f"mode {mode!r} does not exist: choose {' or '.join(MODES)}")
    least = least_trigger(mode, settings)
    if trigger_seconds is not None and trigger_seconds < least:
        raise UserError(
            f"Real-Time Mode needs a trigger of at least {least:g} s, not {trigger_seconds:g} s: "
            "it is the time between checkpoints, not the latency"
        )
