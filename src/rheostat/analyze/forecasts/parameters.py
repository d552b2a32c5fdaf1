"""The parameters of a forecaster, as written after its name: `trend:level=0.5:damping=0.8`."""

from collections.abc import Mapping

from rheostat.model.errors import UserError, nearest

Limits = Mapping[str, tuple[float, float]]


def none(name: str, text: str) -> None:
    """Refuse parameters where there are none."""
    if text:
        raise UserError(f"the forecast {name} has no parameters; write {name}, not {name}:{text}")


def read(name: str, text: str, limits: Limits) -> dict[str, float]:
    """Read key=value pairs, each within its limits.

    >>> read("trend", "level=0.5:damping=0.8", {"level": (0, 1), "damping": (0, 1)})
    {'level': 0.5, 'damping': 0.8}
    """
    values: dict[str, float] = {}
    for part in filter(None, text.split(":")):
        key, _, raw = part.partition("=")
        if key not in limits:
            raise UserError(f"the forecast {name} has no parameter {key!r}{nearest(key, limits)}")
        values[key] = _number(name, key, raw, *limits[key])
    return values


def _number(name: str, key: str, raw: str, low: float, high: float) -> float:
    try:
        value = float(raw)
    except ValueError:
        raise UserError(f"the forecast {name}: {key} must be a number, not {raw!r}") from None
    if not low <= value <= high:
        raise UserError(f"the forecast {name}: {key} must be from {low:g} to {high:g}, not {raw!r}")
    return value
