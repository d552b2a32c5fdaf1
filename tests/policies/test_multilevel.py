"""P0, section 3: a map from load levels to configurations, a trend, a schedule, and healing."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rheostat.analyze.execution import ExecutionModel, Pipelined, Staged, Storm
from rheostat.analyze.levels import derive_level
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.decision import Proposal
from rheostat.model.errors import FileError
from rheostat.policies.base import Situation, Start
from rheostat.policies.example import WORDS, situation
from rheostat.policies.multilevel import Multilevel
from rheostat.workloads import parse_curve

from .situations import observed, with_application, with_limits, with_nodes, with_operator

TWO = NodeKind(cores=2, slots=2)


def decided(seen: Situation, policy: Multilevel | None = None) -> Proposal:
    proposal, _ = (policy or Multilevel()).decide(seen, {})
    assert all(cause.holds() for cause in proposal.causes)
    return proposal


@pytest.fixture
def map_file(tmp_path: Path) -> str:
    levels = [
        {"load": 1000, "parallelism": {"lines": 1, "split": 1, "count": 1}, "nodes": 1},
        {"load": 3000, "parallelism": {"lines": 1, "split": 2, "count": 2}, "nodes": 2},
        {"load": 6000, "parallelism": {"lines": 1, "split": 4, "count": 3}, "nodes": 4},
    ]
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"application": "words", "levels": levels}))
    return str(path)


@pytest.mark.parametrize(
    ("load", "split", "nodes"), [(500, 1, 1), (1_000, 1, 1), (1_001, 2, 2), (3_000, 2, 2), (3_001, 4, 4)]
)
def test_a_map_file_decides_by_its_thresholds(map_file: str, load: float, split: int, nodes: int) -> None:
    seen = situation(load=load, parallelism=(1, 3, 2), nodes=3, model=Storm())
    proposal = decided(seen, Multilevel(map=map_file))
    assert (proposal.target.parallelism["split"], proposal.target.nodes) == (split, nodes)


def test_above_the_last_level_of_the_map_the_last_one_is_the_best_there_is(map_file: str) -> None:
    proposal = decided(situation(load=9_000, model=Storm()), Multilevel(map=map_file))
    assert proposal.target.parallelism == {"lines": 1, "split": 4, "count": 3}
    assert proposal.reason == "load 9,000 rows/s is above the level up to 6,000"


def test_the_map_is_read_once_and_a_bad_one_is_refused_at_once(map_file: str, tmp_path: Path) -> None:
    policy = Multilevel(map=map_file)
    Path(map_file).unlink()
    assert decided(situation(load=2_000, model=Storm()), policy).target.nodes == 2
    falling = tmp_path / "falling.json"
    level = {"load": 10, "parallelism": {}, "nodes": 1}
    falling.write_text(json.dumps({"levels": [level, level]}))
    with pytest.raises(FileError, match="levels must rise: 10 comes after 10"):
        Multilevel(map=str(falling))


def test_levels_are_derived_from_the_costs_measured_so_far() -> None:
    # At 2,500 rows/s and 90 %: split 1.25 and count 1.0 busy slots take two instances each. One instance of
    # each fills a node and a half; split's second takes the free slot, count's second a new node.
    proposal = decided(situation(load=2_500))
    assert proposal.target.parallelism == {"lines": 1, "split": 2, "count": 2}
    assert proposal.target.nodes == 3
    assert proposal.reason == "load 2,500 rows/s belongs to the level up to 2,500"


def test_a_level_reaches_up_to_the_next_multiple_of_delta_load() -> None:
    # 1,700 and 1,850 rows/s share a level of 2,000; a quarter of what one split serves would part them.
    for load in (1_700, 1_850):
        proposal = decided(situation(load=load), Multilevel(delta_load=2_000))
        assert proposal.causes[0].threshold == 2_000
        assert proposal.target.parallelism["split"] == 2
    finer = decided(situation(load=1_700), Multilevel(delta_load=100))
    assert finer.target.parallelism["split"] == 1
    _, memory = Multilevel().decide(situation(load=1_700), {})
    assert memory["step"] == pytest.approx(500)  # 0.25 / 0.0005
    changed, _ = Multilevel(delta_load=2_000).decide(situation(load=1_700), memory)
    assert changed.causes[0].threshold == 2_000  # the parameter, not what was remembered


def test_a_new_instance_goes_to_the_least_loaded_node_and_to_a_new_one_only_when_that_is_overloaded() -> None:
    per_row = {"a": 1 / 1_000, "b": 1 / 4_000}
    # At 900 a gets its second instance; the only node is then (0.9 + 0.225) / 2 = 0.5625 busy.
    roomy = derive_level(1_000, per_row, Storm(), TWO, target=0.9, node_limit=0.9)
    assert (dict(roomy.parallelism), roomy.nodes) == ({"a": 2, "b": 1}, 1)
    tight = derive_level(1_000, per_row, Storm(), TWO, target=0.9, node_limit=0.5)
    assert (dict(tight.parallelism), tight.nodes) == ({"a": 2, "b": 1}, 2)
    # Where an instance holds its slot, two slots are full before that.
    held = derive_level(1_000, per_row, Pipelined(), TWO, target=0.9, node_limit=0.9)
    assert (dict(held.parallelism), held.nodes) == ({"a": 2, "b": 1}, 2)


def test_machines_only_pays_a_node_for_every_further_instance() -> None:
    per_row = {"a": 1 / 1_000, "b": 1 / 4_000}
    level = derive_level(2_000, per_row, Storm(), TWO, target=0.9, node_limit=0.9, nodes_only=True)
    assert (dict(level.parallelism), level.nodes) == ({"a": 3, "b": 1}, 3)
    seen = situation(load=2_500, nodes=1, model=Storm())
    dear = decided(seen, Multilevel(containers="node"))
    assert (dict(dear.target.parallelism), dear.target.nodes) == ({"lines": 1, "split": 2, "count": 2}, 3)
    # With slots: split's second shares the first node, count's second opens another at 2,250 rows/s; at 2,500
    # the first is full (0.25 + 1.25 + 0.5 of two cores), so its heaviest gets a third on the second node.
    cheap = decided(seen)
    assert (dict(cheap.target.parallelism), cheap.target.nodes) == ({"lines": 1, "split": 3, "count": 2}, 2)


def test_scale_out_moves_nothing_and_scale_in_frees_what_came_last() -> None:
    out = decided(situation(load=2_500))
    assert out.placement.keep
    into = decided(situation(load=500, parallelism=(1, 3, 3), nodes=4))
    assert into.target.parallelism == {"lines": 1, "split": 1, "count": 1}
    assert into.target.nodes == 2
    assert into.placement.keep
    assert into.placement.take == ()  # the engine ends the youngest (LIFO)


def test_instances_move_only_when_a_node_comes_without_any_instance_to_put_there(map_file: str) -> None:
    spread = situation(load=2_000, parallelism=(1, 2, 2), nodes=1, model=Storm())
    proposal = decided(spread, Multilevel(map=map_file))
    assert proposal.target.nodes == 2
    assert not proposal.placement.keep


def half_minutes(
    policy: Multilevel, *loads: float, parallelism: tuple[int, int, int] = (1, 1, 1)
) -> Proposal:
    """Decide after windows of 30 s."""
    memory: Mapping[str, Any] = {}
    proposal = None
    for turn, load in enumerate(loads, start=1):
        seen = situation(load=load, parallelism=parallelism, nodes=3, now=30.0 * turn)
        window = replace(seen.observation, start=seen.now - 30)
        proposal, memory = policy.decide(observed(seen, window), memory)
        assert json.loads(json.dumps(memory)) == memory
    assert proposal is not None
    return proposal


def test_frequent_samples_are_replaced_by_their_trend_over_three() -> None:
    # The line through 1,000, 1,000 and 4,000 is at 3,500 now.
    assert half_minutes(Multilevel(), 1_000, 1_000, 4_000).reason.startswith("load 3,500 rows/s")
    assert half_minutes(Multilevel(), 1_000, 4_000).reason.startswith("load 4,000 rows/s")  # too few yet


def test_the_trend_never_leaves_what_was_seen() -> None:
    # The line through 1,000, 4,000 and 4,000 would be at 4,500.
    assert half_minutes(Multilevel(), 1_000, 4_000, 4_000).reason.startswith("load 4,000 rows/s")


def test_nothing_shrinks_while_the_load_rises_or_before_there_are_three_samples() -> None:
    wide = (1, 3, 3)
    for loads in ((500.0,), (500.0, 500.0), (300.0, 400.0, 500.0)):
        proposal = half_minutes(Multilevel(), *loads, parallelism=wide)
        assert proposal.target.parallelism == {"lines": 1, "split": 3, "count": 3}
        assert "nothing shrinks" in proposal.reason
    for loads in ((500.0, 500.0, 500.0), (700.0, 600.0, 500.0)):
        proposal = half_minutes(Multilevel(), *loads, parallelism=wide)
        assert proposal.target.parallelism == {"lines": 1, "split": 1, "count": 1}


def test_a_window_in_which_jvms_were_cold_does_not_weigh_on_the_later_ones() -> None:
    policy = Multilevel()
    memory: Mapping[str, Any] = {}
    wanted = []
    for turn, times in enumerate((4.0, 1.0, 1.0, 1.0), start=1):
        seen = situation(load=1_000, nodes=3, now=60.0 * turn)
        for name, measures in seen.observation.operators.items():
            seen = with_operator(seen, name, cpu_seconds=times * (measures.cpu_seconds or 0.0))
        proposal, memory = policy.decide(seen, memory)
        wanted.append(proposal.target.parallelism["split"])
    assert wanted == [3, 1, 1, 1]


def test_a_quiet_night_does_not_make_it_forget_the_day() -> None:
    memory: Mapping[str, Any] = {}
    for turn, load in enumerate([2_000.0, 4_000.0, *[400.0] * 40], start=1):
        _, memory = Multilevel().decide(situation(load=load, nodes=3, now=60.0 * turn), memory)
    assert [load for load, _ in memory["seen"]] == [2_000.0, 4_000.0, *[400.0] * 8]


def test_what_an_earlier_run_with_other_operators_cost_is_forgotten() -> None:
    memory = {"seen": [[500.0, {"another": 9.0}]], "step": 100.0}
    _, after = Multilevel().decide(situation(load=1_000), memory)
    assert [load for load, _ in after["seen"]] == [1_000.0]


def test_what_stands_in_for_a_batch_that_runs_is_learned_once() -> None:
    _, memory = Multilevel().decide(situation(load=1_000), {})
    stale = with_application(situation(load=3_000), stale=True)
    assert Multilevel().decide(stale, memory)[1]["seen"] == memory["seen"]


@pytest.mark.parametrize(
    ("batches", "learned_at"), [(6, 1_000.0), (12, 500.0), (2, 3_000.0), (None, 1_000.0)]
)
def test_a_cost_is_learned_at_the_load_of_which_batches_are_so_large(
    batches: int | None, learned_at: float
) -> None:
    seen = situation(load=1_000, model=Staged(10.0))  # 60,000 rows in a minute
    seen = with_application(seen, batches=batches, trigger_seconds=10.0)
    [[load, slots]] = Multilevel().decide(seen, {})[1]["seen"]
    assert load == pytest.approx(learned_at)
    assert slots == pytest.approx({"lines": 0.0001 * load, "split": 0.0005 * load, "count": 0.0004 * load})


def test_while_a_batch_runs_it_grows_only_by_what_three_windows_have_told() -> None:
    stale = with_application(situation(load=4_000), stale=True)
    memory: Mapping[str, Any] = {}
    wanted = []
    for _ in range(3):
        _, memory = Multilevel().decide(situation(load=1_000), memory)
        wanted.append(Multilevel().decide(stale, memory)[0].target.parallelism["split"])
    assert wanted == [1, 1, 3]


STEP = "step:low=500:high=4000:duration=1000:start=300:end=700"


def scheduled(load: float, now: float, **parameters: Any) -> Proposal:
    return decided(situation(load=load, now=now), Multilevel(schedule=STEP, **parameters))


def test_with_a_schedule_it_acts_a_lead_time_ahead() -> None:
    assert scheduled(500, now=150).target.parallelism["split"] == 1
    ahead = scheduled(500, now=210)  # in 90 s 4,000 rows/s are expected
    assert ahead.target.parallelism == {"lines": 1, "split": 3, "count": 2}
    assert ahead.reason.startswith("expected load 4,000 rows/s")
    assert scheduled(500, now=210, lead_seconds=30).target.parallelism["split"] == 1
    assert scheduled(500, now=1_210).target.parallelism["split"] == 3  # the next period
    assert ahead.alert is None


def test_a_load_outside_of_the_expected_band_is_reacted_to_with_an_alert() -> None:
    assert scheduled(620, now=100).alert is None  # 24 % more than expected
    attack = scheduled(2_500, now=100)
    assert attack.target.parallelism == {"lines": 1, "split": 2, "count": 2}
    assert attack.alert == "load 2,500 rows/s left the expected band around 500"
    quiet = scheduled(200, now=400)  # far below, and nothing to change
    assert quiet.alert == "load 200 rows/s left the expected band around 4,000"
    assert scheduled(900, now=100, band=1.0).alert is None


def test_a_window_is_compared_with_the_schedule_of_that_window_not_of_now() -> None:
    # The step is at 300: all of [235, 295) is at 500, and the last five seconds of [245, 305) at 4,000.
    assert scheduled(500, now=295).alert is None
    assert scheduled(792, now=305).alert is None  # its mean
    assert scheduled(500, now=300).alert is None  # a window ends before the moment that follows it
    assert scheduled(4_000, now=300).alert == "load 4,000 rows/s left the expected band around 500"
    assert scheduled(5_100, now=305).alert == "load 5,100 rows/s left the expected band around 500 to 4,000"
    assert scheduled(500, now=360).alert is not None


def test_a_load_that_batches_of_before_the_window_show_is_compared_with_their_schedule() -> None:
    seen = situation(load=640, now=365)  # the step down is at 600 ... up at 300: its batch began at 297
    late = replace(seen.observation.application, trigger_seconds=5.0, batch_seconds=3.0)
    whole = replace(seen, observation=replace(seen.observation, application=late))
    policy = Multilevel(schedule=STEP)
    assert decided(seen, policy).alert is not None
    assert decided(whole, policy).alert is None


def test_a_schedule_of_a_day_follows_the_time_of_day_and_not_the_age_of_the_run() -> None:
    nine = 9 * 3_600.0
    day = Multilevel(schedule="day:low=100:high=4000")
    rate = parse_curve("day:low=100:high=4000").at(nine)
    begun_at_nine = replace(situation(load=rate, now=60.0), local_start=nine)
    assert decided(begun_at_nine, day).alert is None
    assert decided(replace(begun_at_nine, local_start=0.0), day).alert is not None


def test_the_alert_is_not_lost_when_nothing_may_shrink() -> None:
    seen = situation(load=200, parallelism=(1, 3, 3), nodes=3, now=400)
    seen = observed(seen, replace(seen.observation, start=seen.now - 30))
    proposal = decided(seen, Multilevel(schedule=STEP))
    assert proposal.target == seen.configuration
    assert proposal.alert is not None


def congested(seen: Situation, *names: str) -> Situation:
    """Operators that processed 80 % of what they received."""
    for name in names:
        received = seen.observation.operators[name].received or 0.0
        cpu = 0.8 * received * seen.topology.operator(name).cost_seconds
        lost = {"processed": 0.8 * received, "waiting": 0.0}
        seen = with_operator(seen, name, **lost, cpu_seconds=cpu, emitted={})
    return seen


def test_what_the_map_misses_is_healed_nearest_to_the_source_first() -> None:
    seen = congested(situation(load=1_000, parallelism=(1, 2, 2), nodes=3, model=Storm()), "count", "split")
    proposal = decided(seen)
    assert proposal.target.parallelism == {"lines": 1, "split": 3, "count": 2}
    assert proposal.target.nodes == 3
    assert proposal.placement.keep
    assert [(c.measure, c.subject, round(c.value, 6)) for c in proposal.causes] == [("health", "split", 0.8)]
    capped = with_limits(seen, "split", 1, 2)
    assert decided(capped).target.parallelism == {"lines": 1, "split": 2, "count": 3}


def test_healing_takes_a_new_node_only_when_all_are_overloaded_or_machines_are_all_there_is() -> None:
    seen = congested(situation(load=1_000, parallelism=(1, 2, 2), nodes=3, model=Storm()), "split")
    assert decided(with_nodes(seen, cpu=0.9)).target.nodes == 3
    assert decided(with_nodes(seen, cpu=0.91)).target.nodes == 4
    assert decided(with_nodes(seen, memory=0.91)).target.nodes == 4
    assert decided(seen, Multilevel(containers="node")).target.nodes == 4
    assert decided(seen, Multilevel(containers=" node ")).target.nodes == 4


def test_a_congested_operator_grows_even_where_the_level_has_fewer_of_another() -> None:
    # 2,500 rows/s take three of split and two of count; lines is far too wide, and split congested.
    seen = congested(situation(load=2_500, parallelism=(6, 1, 2), nodes=5, model=Storm()), "split")
    proposal = decided(seen)
    assert proposal.target.parallelism == {"lines": 6, "split": 3, "count": 2}


def test_it_starts_with_one_instance_of_each_on_as_few_machines_as_take_them() -> None:
    def first(model: ExecutionModel) -> tuple[int, int]:
        start = Start(WORDS, model, (TWO,), Bounds(1, 9), first_load=9_000, peak_load=9_000)
        initial = Multilevel().initial(start)
        return initial.instances, initial.nodes

    assert first(Storm()) == (3, 1)
    assert first(Pipelined()) == (3, 2)
    assert first(Staged()) == (3, 1)


def test_without_any_load_yet_it_stays_as_it_is() -> None:
    seen = situation(load=0, parallelism=(1, 2, 2), nodes=3)
    assert decided(seen).target == seen.configuration


def test_parameters_are_checked() -> None:
    for wrong in ({"containers": "thread"}, {"minHealth": 0.0}, {"observations": 2}, {"band": -0.1}):
        with pytest.raises(ValueError, match="must be"):
            Multilevel(**wrong)


def test_a_map_of_another_application_changes_nothing_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"levels": [{"load": 9000, "parallelism": {"parser": 3}, "nodes": 2}]}))
    seen = situation(load=1_900, model=Storm())
    proposal = decided(seen, Multilevel(map=str(path)))
    assert not proposal.changes(seen.configuration)
    assert "'parser'" in proposal.reason


def test_an_operator_at_its_own_limit_asks_for_no_nodes_that_would_stay_empty() -> None:
    capped = with_limits(situation(load=50_000, model=Storm(), bounds=Bounds(1, 500)), "split", 1, 3)
    target = decided(capped).target
    assert target.parallelism["split"] == 3
    assert target.nodes <= sum(target.parallelism.values())
