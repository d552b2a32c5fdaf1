"""Every installed policy, ours and third parties' alike, passes the same suite."""

from collections.abc import Callable

import pytest

from rheostat.policies.base import Policy
from rheostat.policies.conformance import CHECKS
from rheostat.policies.registry import available, build

VARIANTS = [
    *available(),
    "elysium(proactive=true)",
    "elysium(profile=exact)",
    "multilevel(schedule=day)",
    "multilevel(containers=node)",
    "e2df(tokens_per_hour=60)",  # with fewer the suite's two and a half hours are too short
    "autoscale(printed_equation=true)",
    "static(provision=min)",
]


@pytest.mark.parametrize("spec", VARIANTS)
@pytest.mark.parametrize("rule", CHECKS, ids=lambda rule: rule.__name__)
def test_policy(spec: str, rule: Callable[[Policy], None]) -> None:
    rule(build(spec))


def test_the_suite_runs_on_all_nine_policies() -> None:
    ours = {"static", "threshold", "occupancy", "joint", "ds2", "multilevel", "e2df", "elysium", "autoscale"}
    assert ours <= set(available())
