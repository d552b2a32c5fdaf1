"""ELYSIUM's thresholds are learned one after the other, each with those before it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from rheostat.analyze.judging import Measures
from rheostat.bench.tuning import GRIDS, PAPER, TABLE_1, tune

RUN = Measures(0.0, 0.0, 0.0, 0.3, 100.0, None, 1.0, 2.0, 4.0, 3, None, 0.0)


def silent(_: str) -> Callable[[float], None]:
    return lambda _: None


def test_the_papers_own_rewards_lead_to_the_papers_threshold() -> None:
    def judge(thresholds: Mapping[str, float], _: int) -> Measures:
        threshold = thresholds["cpu_max_thr"]
        degraded = threshold - TABLE_1[threshold] if len(thresholds) == 1 else 0.1
        return replace(RUN, throughput_degradation=degraded)

    tuned = tune(judge, episodes=100, seed=1, begin=silent)[0]
    assert (tuned.name, tuned.best) == ("cpu_max_thr", PAPER["cpu_max_thr"])
    assert [tried.reward for tried in tuned.tried] == pytest.approx(list(TABLE_1.values()))


def test_each_threshold_is_learned_with_those_before_it() -> None:
    seen: list[Mapping[str, float]] = []

    def judge(thresholds: Mapping[str, float], _: int) -> Measures:
        seen.append(dict(thresholds))
        newest = list(thresholds)[-1]
        return replace(RUN, throughput_degradation=2 * abs(thresholds[newest] - PAPER[newest]))

    tuned = tune(judge, episodes=100, seed=2, begin=silent)
    assert {each.name: each.best for each in tuned} == PAPER
    assert seen[-1].keys() == PAPER.keys()
    assert {run["cpu_max_thr"] for run in seen[100:]} == {PAPER["cpu_max_thr"]}
    assert sum(tried.episodes for tried in tuned[0].tried) == 100


def test_core_min_is_not_tried_where_elysium_would_refuse_it() -> None:
    def judge(thresholds: Mapping[str, float], _: int) -> Measures:
        if "core_min_thr" in thresholds:
            assert thresholds["core_min_thr"] < thresholds["core_max_thr"]
        return replace(RUN, throughput_degradation=2 * thresholds[list(thresholds)[-1]])  # low ones earn most

    tuned = tune(judge, episodes=100, seed=1, begin=silent)
    assert tuned[1].best == GRIDS["core_max_thr"][0]
