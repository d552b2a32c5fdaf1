"""Values that no program should send, put anywhere into data that makes sense."""

import copy
import math
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# The same examples in every run: a failure in CI is one that anybody can repeat.
FUZZ = settings(
    max_examples=200,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

GONE = "(gone)"
VALUES: tuple[Any, ...] = (
    GONE, None, True, math.nan, math.inf, -math.inf, -1, -0.5, -1e18, 0.3, 1e300, 10**400, 2**63,
    "", "x", "nan", "\ud800", "\x00", "1e999", "12", [], {}, [[]], [None], {"a": None}, {"rows": math.nan},
    "9999-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z", "0001-01-01T00:00:00", "x" * 5000,
)  # fmt: skip


@st.composite
def spoiled(draw: st.DrawFn, sound: Any, most: int = 3) -> Any:
    """A copy of plain data in which a few values, at any depth, are absurd or gone."""
    data = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, most))):
        _spoil(draw, data)
    return data


def _spoil(draw: st.DrawFn, data: Any) -> None:
    here = data
    while True:
        keys = list(here) if isinstance(here, dict) else range(len(here))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        deeper = isinstance(here[key], dict | list) and here[key]
        if deeper and draw(st.integers(0, 9)):
            here = here[key]
            continue
        value = draw(st.sampled_from(VALUES))
        if value is GONE:
            del here[key]
        else:
            here[key] = copy.deepcopy(value)
        return
