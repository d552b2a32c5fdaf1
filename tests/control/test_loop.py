import pytest

from rheostat.analyze.execution import Staged
from rheostat.control.guards import Guards
from rheostat.control.loop import Loop
from rheostat.control.ports import Clock, Engine, Recorder
from rheostat.control.turn import Decision
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Status
from rheostat.model.errors import RheostatError, UserError
from tests.control.fakes import Divides, FakeClock, FakeEngine, FakeRecorder, OneMore, Sometimes


def looped(
    engine: FakeEngine,
    guards: Guards | None = None,
    period: float = 60.0,
    recorder: FakeRecorder | None = None,
) -> Loop:
    port: Engine = engine
    clock: Clock = engine.clock
    records: Recorder = recorder or FakeRecorder(engine)
    return Loop(port, clock, OneMore(period), Bounds(1, 20), guards or Guards(), recorder=records)


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


@pytest.mark.parametrize(("since", "first"), [(80.0, 140.0), (10.0, 101.0), (100.0, 160.0)])
def test_the_first_period_began_when_the_application_did(since: float, first: float) -> None:
    turns = looped(FakeEngine(FakeClock(100.0))).run(until=250.0, since=since)
    assert [turn.plan.decided_at for turn in turns][:2] == [first, first + 60.0]


def test_no_turn_falls_on_the_end_itself() -> None:
    assert [t.plan.decided_at for t in looped(FakeEngine(FakeClock())).run(until=120.0)] == [60.0]
    assert list(looped(FakeEngine(FakeClock())).run(until=0.0)) == []
    assert list(looped(FakeEngine(FakeClock(50.0))).run(until=10.0)) == []


def turn_times(engine: FakeEngine, guards: Guards | None = None, until: float = 200.0) -> list[float]:
    return [turn.plan.decided_at for turn in looped(engine, guards).run(until)]


def test_an_alarm_brings_the_next_turn_at_once() -> None:
    assert turn_times(FakeEngine(FakeClock(), alarm_at=100.0), until=104.0) == [60.0, 100.0]


def test_an_alarm_that_lasts_brings_a_turn_every_three_triggers_and_no_more_often() -> None:
    staged = FakeEngine(FakeClock(), alarm_at=0.0, model=Staged(10.0))
    assert turn_times(staged, until=130.0) == [30.0, 60.0, 90.0, 120.0]
    rare = FakeEngine(FakeClock(), alarm_at=0.0, model=Staged(50.0))
    assert turn_times(rare) == [60.0, 120.0, 180.0]  # the period is shorter than three triggers
    pipelined = FakeEngine(FakeClock(), alarm_at=0.0)
    assert turn_times(pipelined, until=20.0) == [5.0, 10.0, 15.0]


def test_an_alarm_waits_for_the_cool_down_after_a_change() -> None:
    engine = FakeEngine(FakeClock(), takes=10.0, alarm_at=0.0)
    assert turn_times(engine, Guards(cooldown_seconds=40)) == [5.0, 55.0, 105.0, 155.0]


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


def test_a_policy_that_fails_holds_raises_an_alert_and_is_asked_again() -> None:
    engine = FakeEngine(FakeClock())
    loop = Loop(engine, engine.clock, Divides(), memory={"kept": True})
    first, second, third = loop.run(until=200.0)
    assert first.plan.reason == "hold: policy 'divides' failed: ZeroDivisionError: division by zero"
    assert first.plan.alert == "policy 'divides' failed: ZeroDivisionError: division by zero"
    assert first.outcome.status is Status.UNCHANGED
    assert first.memory == second.memory == {"kept": True}
    assert (third.plan.reason, third.plan.alert, third.memory) == ("hold: 1", None, {"asked": 3})


def test_an_engine_that_gives_up_is_a_failed_change_and_the_loop_goes_on() -> None:
    engine = FakeEngine(FakeClock(), takes=5.0, broken="the cluster\nis gone")
    turns = list(looped(engine).run(until=200.0))
    assert [turn.outcome.status for turn in turns] == [Status.FAILED] * 3
    outcome = turns[0].outcome
    assert (outcome.reason, outcome.started_at, outcome.finished_at) == ("the cluster is gone", 60.0, 65.0)
    assert outcome.configuration == engine.configuration


def test_an_engine_that_cannot_observe_ends_the_loop() -> None:
    with pytest.raises(RheostatError, match="the driver is gone"):
        looped(FakeEngine(FakeClock(), deaf="the driver is gone")).turn()


def test_a_dry_run_decides_and_changes_nothing() -> None:
    engine = FakeEngine(FakeClock(60.0))
    loop = looped(engine)
    loop.dry_run = True
    turn = loop.turn()
    assert turn.plan.changes
    assert turn.outcome.status is Status.DRY_RUN
    assert turn.outcome.reason == "dry run: would change split 1 -> 2"
    assert turn.outcome.configuration == turn.plan.current == engine.configuration
    assert engine.applied == []
    assert loop.changed_at == ()


def test_a_dry_run_without_a_change_is_unchanged() -> None:
    engine = FakeEngine(FakeClock(60.0), blind=True)
    loop = looped(engine)
    loop.dry_run = True
    assert loop.turn().outcome.status is Status.UNCHANGED


def test_a_plan_bears_the_number_of_its_turn() -> None:
    turns = list(looped(FakeEngine(FakeClock()), Guards(cooldown_seconds=100)).run(until=300.0))
    assert [turn.plan.number for turn in turns] == [turn.number for turn in turns] == [1, 2, 3, 4]


def test_the_cooldown_counts_from_the_end_of_a_change() -> None:
    engine = FakeEngine(FakeClock(), takes=90.0)
    turns = list(looped(engine, Guards(cooldown_seconds=100)).run(until=300.0))
    assert [turn.plan.decided_at for turn in turns] == [60.0, 210.0, 270.0]
    assert [turn.outcome.status for turn in turns] == [Status.APPLIED, Status.UNCHANGED, Status.APPLIED]


def test_changes_are_forgotten_when_no_guard_counts_them() -> None:
    engine = FakeEngine(FakeClock())
    loop = Loop(engine, engine.clock, Sometimes(every=1))
    turns = list(loop.run(until=30_000.0))
    assert all(turn.plan.changes for turn in turns)
    assert loop.changed_at == tuple(turn.outcome.finished_at for turn in turns[-60:])


def test_a_controller_that_died_is_resumed_where_it_stopped() -> None:
    engine = FakeEngine(FakeClock(), takes=10.0)
    guards = Guards(cooldown_seconds=100)
    before = list(looped(engine, guards).run(until=100.0))
    again = looped(engine, guards)
    again.resume(before[-1], [-9000.0, before[-1].outcome.finished_at])
    assert again.changed_at == (70.0,)
    after = list(again.run(until=250.0))
    assert [turn.number for turn in after] == [2, 3]
    assert [turn.memory["asked"] for turn in after] == [2, 3]
    assert after[0].plan.vetoes == ("cool-down: the last change was 90 s ago, less than 100 s",)
    assert after[1].outcome.status is Status.APPLIED


def test_a_change_is_recorded_before_it_is_applied_and_again_with_its_outcome() -> None:
    engine = FakeEngine(FakeClock(), takes=5.0)
    recorder = FakeRecorder(engine)
    turns = list(looped(engine, recorder=recorder).run(until=200.0))
    assert [applied_before for _, applied_before in recorder.decisions] == [0, 1, 2]
    assert [decision.with_outcome(turn.outcome) for (decision, _), turn in zip(
        recorder.decisions, turns, strict=True
    )] == turns  # fmt: skip
    assert recorder.turns == turns


def test_a_change_whose_engine_gives_up_is_recorded_twice_as_well() -> None:
    engine = FakeEngine(FakeClock(60.0), broken="the cluster is gone")
    recorder = FakeRecorder(engine)
    turn = looped(engine, recorder=recorder).turn()
    assert len(recorder.decisions) == 1
    assert recorder.turns == [turn]


@pytest.mark.parametrize(("dry_run", "blind"), [(True, False), (False, True)])
def test_a_dry_run_and_a_hold_are_recorded_once(dry_run: bool, blind: bool) -> None:
    engine = FakeEngine(FakeClock(60.0), blind=blind)
    recorder = FakeRecorder(engine)
    loop = looped(engine, recorder=recorder)
    loop.dry_run = dry_run
    turn = loop.turn()
    assert (recorder.decisions, recorder.turns) == ([], [turn])


class Killed(BaseException):
    """SIGKILL: nothing of the controller runs any more."""


def killed_in_apply(engine: FakeEngine, recorder: FakeRecorder) -> Decision:
    """Return the decision whose controller was killed while the engine applied it."""

    def die(seconds: float) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(engine.clock, "sleep", die)
        looped(engine, recorder=recorder).turn()
    return recorder.decisions[-1][0]


def test_a_decision_whose_controller_was_killed_is_recorded_without_an_outcome() -> None:
    engine = FakeEngine(FakeClock(60.0), takes=5.0)
    recorder = FakeRecorder(engine)
    decision = killed_in_apply(engine, recorder)
    assert decision.plan.target.parallelism["split"] == 2
    assert recorder.turns == []


def test_a_resumed_loop_gives_an_interrupted_decision_its_outcome_and_counts_it() -> None:
    engine = FakeEngine(FakeClock(60.0), takes=5.0)
    recorder = FakeRecorder(engine)
    decision = killed_in_apply(engine, recorder)
    engine.clock.time = 500.0
    again = looped(engine, Guards(cooldown_seconds=100), recorder=recorder)
    again.resume(decision, [])
    turn = again.reconcile(decision)
    assert recorder.turns == [turn]
    outcome = turn.outcome
    assert (outcome.status, outcome.configuration) == (Status.INTERRUPTED, engine.configuration)
    assert (outcome.started_at, outcome.finished_at) == (60.0, 500.0)
    assert outcome.reason == (
        "the controller stopped before this change was finished; "
        "when the run was resumed, the application ran as before"
    )
    after = list(again.run(until=650.0))
    assert [turn.number for turn in after] == [2, 3]
    assert [turn.memory["asked"] for turn in after] == [2, 3]
    assert after[0].plan.vetoes == ("cool-down: the last change was 60 s ago, less than 100 s",)
    assert after[1].outcome.status is Status.APPLIED


def test_an_interrupted_change_that_took_effect_says_so() -> None:
    engine = FakeEngine(FakeClock(60.0), takes=5.0)
    decision = killed_in_apply(engine, FakeRecorder(engine))
    engine.configuration = decision.plan.target
    reason = looped(engine).reconcile(decision).outcome.reason
    assert reason.endswith("; when the run was resumed, the application ran with split 1 -> 2")
