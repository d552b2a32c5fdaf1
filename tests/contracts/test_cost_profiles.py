"""Every cost profile passes the same suite: ELYSIUM's by their names, and those of other policies."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rheostat.analyze.cost_profiles import PROFILES, BatchCosts, CostProfile, NewestCosts
from rheostat.policies.base import Situation
from rheostat.policies.example import WORDS, situation

Build = Callable[[Any], CostProfile]
LOADS = (1_000.0, 1_500.0, 400.0, 2_200.0)
RATES = {"lines": 2_000.0, "split": 2_000.0, "count": 4_000.0}
STATED = {"lines": 0.2, "split": 1.0, "count": 0.8}  # slots busy at these rates, on slots of one core


def by_name(name: str) -> Build:
    return lambda state: PROFILES[name](WORDS, 1.0, state or {})


PROFILES_BY_NAME: dict[str, Build] = {
    **{name: by_name(name) for name in PROFILES},
    "newest": lambda state: NewestCosts(WORDS, 1.0, state),
    "batches": lambda state: BatchCosts(WORDS, state or ()),
}

each = pytest.mark.parametrize("build", PROFILES_BY_NAME.values(), ids=PROFILES_BY_NAME)


def learned(build: Build, *loads: float) -> CostProfile:
    profile = build(None)
    for load in loads:
        window = situation(load)
        profile.learn(window.observation, window.evaluation)
    return profile


@each
def test_what_costs_as_stated_is_as_busy_as_stated(build: Build) -> None:
    assert learned(build, *LOADS).busy(RATES) == pytest.approx(STATED)


@each
def test_more_rows_never_keep_fewer_slots_busy(build: Build) -> None:
    profile = learned(build, *LOADS)
    fewer = profile.busy({name: rate / 3 for name, rate in RATES.items()})
    assert all(fewer[name] <= slots for name, slots in profile.busy(RATES).items())


@each
def test_its_state_is_plain_json_from_which_it_is_built_again(build: Build) -> None:
    profile = learned(build, *LOADS)
    state = json.loads(json.dumps(profile.state))
    assert state == profile.state
    assert build(state).busy(RATES) == profile.busy(RATES)


@each
def test_learning_changes_neither_the_window_nor_the_state_that_it_was_built_from(build: Build) -> None:
    state = learned(build, 1_000.0).state
    before, window = copy.deepcopy(state), situation(1_300.0)
    kept = copy.deepcopy((window.observation, window.evaluation))
    build(state).learn(window.observation, window.evaluation)
    assert state == before
    assert (window.observation, window.evaluation) == kept


@each
def test_its_state_stays_bounded(build: Build) -> None:
    few = len(json.dumps(learned(build, *LOADS * 5).state))
    assert len(json.dumps(learned(build, *LOADS * 50).state)) <= 1.2 * few + 20


@pytest.mark.parametrize("name", sorted(set(PROFILES_BY_NAME) - {"exact"}))
def test_a_profile_that_learns_finds_out_that_rows_cost_more_than_stated(name: str) -> None:
    def dear(load: float) -> Situation:
        window = situation(load)
        operators = {
            name: replace(measures, cpu_seconds=3 * (measures.cpu_seconds or 0.0))
            for name, measures in window.observation.operators.items()
        }
        judged = {
            name: replace(operator, cost_seconds=3 * operator.cost_seconds, busy=3 * operator.busy)
            for name, operator in window.evaluation.operators.items()
        }
        return replace(
            window,
            observation=replace(window.observation, operators=operators),
            evaluation=replace(window.evaluation, operators=judged),
        )

    profile = PROFILES_BY_NAME[name](None)
    for load in LOADS:
        window = dear(load)
        profile.learn(window.observation, window.evaluation)
    assert profile.busy(RATES) == pytest.approx({name: 3 * slots for name, slots in STATED.items()})
