import pytest

from rheostat.control.guards import Guards
from rheostat.control.loop import Loop
from rheostat.control.ports import Clock, Engine
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Status
from rheostat.model.errors import UserError
from tests.control.fakes import FakeClock, FakeEngine, OneMore


def looped(engine: FakeEngine, guards: Guards | None = None, period: float = 60.0) -> Loop:
    port: Engine = engine
    clock: Clock = engine.clock
    return Loop(port, clock, OneMore(period), Bounds(1, 20), guards or Guards())


def test_a_turn_goes_from_measures_to_outcome() -> None:
    engine = FakeEngine(FakeClock(120.0))
    turn = looped(engine).turn()
    assert turn.number == 1
    assert turn.observation.end == 120.0
    assert turn.evaluation.operators["split"].utilisation == pytest.approx(0.5)
    assert turn.plan.target.parallelism["split"] == 2
    assert turn.outcome.status is Status.APPLIED
    assert turn.outcome.configuration == engine.configuration == turn.plan.target
    assert turn.memory == {"asked": 1}


def test_the_loop_turns_once_per_period_and_stops_at_the_end() -> None:
    turns = list(looped(FakeEngine(FakeClock())).run(until=200.0))
    assert [turn.plan.decided_at for turn in turns] == [60.0, 120.0, 180.0]
    assert [turn.number for turn in turns] == [1, 2, 3]
    assert [turn.memory["asked"] for turn in turns] == [1, 2, 3]


def test_no_turn_falls_on_the_end_itself() -> None:
    assert [t.plan.decided_at for t in looped(FakeEngine(FakeClock())).run(until=120.0)] == [60.0]
    assert list(looped(FakeEngine(FakeClock())).run(until=0.0)) == []
    assert list(looped(FakeEngine(FakeClock(50.0))).run(until=10.0)) == []


def test_the_time_that_a_change_takes_delays_the_next_turn() -> None:
    turns = list(looped(FakeEngine(FakeClock(), takes=30.0)).run(until=200.0))
    assert [turn.plan.decided_at for turn in turns] == [60.0, 150.0]


def test_a_failed_change_counts_for_the_cooldown_and_leaves_the_configuration() -> None:
    engine = FakeEngine(FakeClock(), failing=True)
    turns = list(looped(engine, Guards(cooldown_seconds=100)).run(until=200.0))
    assert [turn.outcome.status for turn in turns] == [Status.FAILED, Status.UNCHANGED, Status.FAILED]
    assert engine.configuration.parallelism["split"] == 1
    assert turns[0].outcome.reason == "no machine left"
    assert "cool-down" in turns[1].plan.vetoes[0]


def test_guards_see_only_real_changes() -> None:
    turns = list(looped(FakeEngine(FakeClock()), Guards(changes_per_hour=2)).run(until=400.0))
    assert [turn.plan.changes for turn in turns] == [True, True, False, False, False, False]


def test_nothing_is_decided_on_a_window_in_which_something_was_not_measured() -> None:
    engine = FakeEngine(FakeClock(60.0), blind=True)
    turn = looped(engine).turn()
    assert turn.outcome.status is Status.UNCHANGED
    assert turn.plan.reason == "hold: not measured in this window: nodes"
    assert turn.memory == {}


@pytest.mark.parametrize("period", [0.0, -5.0, 0.1])
def test_a_period_in_which_no_time_passes_is_refused_instead_of_looping_for_ever(period: float) -> None:
    engine = FakeEngine(FakeClock(resolution=1.0))
    with pytest.raises(UserError, match="too short for this clock"):
        list(looped(engine, period=period).run(until=100.0))
    assert engine.applied == []
