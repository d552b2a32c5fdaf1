"""Plans by hand: they wait in the inbox for the loop, which takes them before the policy's wishes."""

import threading

import pytest

from rheostat.control.guards import Guards
from rheostat.control.loop import Loop
from rheostat.control.requests import MOST_WAITING, RefusedError, Request, Ticket
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Cause, Status
from rheostat.model.errors import RheostatError, UserError
from rheostat.policies.static import Static
from tests.control.fakes import FakeClock, FakeEngine, FakeRecorder, OneMore


def looped(engine: FakeEngine, guards: Guards | None = None, recorder: FakeRecorder | None = None) -> Loop:
    return Loop(
        engine,
        engine.clock,
        Static(60.0),
        Bounds(1, 2),
        guards or Guards(),
        recorder=recorder or FakeRecorder(engine),
    )


def wanted(preview: bool = False, **parallelism: int) -> Request:
    return Request(parallelism, "more of it", "ann@desk", {"lag (s)": 1.0}, preview)


def test_a_request_ends_the_wait_and_is_applied_and_recorded_like_any_decision() -> None:
    engine = FakeEngine(FakeClock())
    recorder = FakeRecorder(engine)
    loop = looped(engine, recorder=recorder)
    ticket = loop.requests.put(wanted(split=2))
    turn = next(loop.run(until=200.0))
    assert turn.plan.decided_at < 2.0
    assert (turn.plan.asked_by, turn.plan.reason) == ("ann@desk", "ann@desk asked by hand: more of it")
    assert turn.plan.causes == (Cause("instances asked for", "split", 2.0, ">", 1.0),)
    assert turn.plan.causes[0].holds()
    assert turn.plan.expected == {"lag (s)": 1.0}
    assert (turn.outcome.status, engine.configuration.parallelism["split"]) == (Status.APPLIED, 2)
    assert [decision.plan for decision, _ in recorder.decisions] == [turn.plan]
    assert recorder.turns == [turn]
    answer = ticket.wait(0)
    assert (answer.plan, answer.outcome) == (turn.plan, turn.outcome)


def test_after_a_request_the_policy_is_asked_again_and_remembers_what_it_did() -> None:
    engine = FakeEngine(FakeClock())
    loop = Loop(engine, engine.clock, OneMore(60.0), Bounds(1, 20))
    turns = loop.run(until=400.0)
    assert next(turns).memory == {"asked": 1}
    loop.requests.put(wanted(count=3))
    by_hand, after = next(turns), next(turns)
    assert (by_hand.plan.asked_by, by_hand.memory) == ("ann@desk", {"asked": 1})
    assert (after.plan.asked_by, after.memory) == (None, {"asked": 2})
    assert after.plan.decided_at - by_hand.plan.decided_at == pytest.approx(60.0)


def test_requests_are_served_in_order_and_the_guards_count_them() -> None:
    engine = FakeEngine(FakeClock())
    loop = looped(engine, Guards(cooldown_seconds=30.0))
    tickets = [loop.requests.put(wanted(split=count)) for count in (2, 3)]
    turns = loop.run(until=200.0)
    first, second = next(turns), next(turns)
    assert [ticket.wait(0).plan.number for ticket in tickets] == [first.number, second.number] == [1, 2]
    assert tickets[0].wait(0).outcome == first.outcome
    vetoed = tickets[1].wait(0)
    assert vetoed.plan.vetoes[0].startswith("cool-down: the last change was")
    assert vetoed.outcome is not None and vetoed.outcome.status is Status.UNCHANGED
    assert engine.configuration.parallelism["split"] == 2


def test_a_request_beyond_the_nodes_is_refused_by_the_guards() -> None:
    engine = FakeEngine(FakeClock())
    loop = looped(engine)
    ticket = loop.requests.put(wanted(split=9))
    loop.turn()
    assert ticket.wait(0).plan.vetoes == ("11 instances need 6 nodes, the limit is 2",)
    assert engine.configuration.parallelism["split"] == 1


def test_a_dry_run_stays_dry() -> None:
    engine = FakeEngine(FakeClock())
    loop = looped(engine)
    loop.dry_run = True
    ticket = loop.requests.put(wanted(split=2))
    loop.turn()
    outcome = ticket.wait(0).outcome
    assert outcome is not None and outcome.status is Status.DRY_RUN
    assert engine.applied == []


def test_a_preview_says_what_the_guards_would_do_and_takes_no_turn() -> None:
    engine = FakeEngine(FakeClock())
    loop = looped(engine)
    turns = loop.run(until=400.0)
    assert next(turns).number == 1
    passes, fails = loop.requests.put(wanted(True, split=2)), loop.requests.put(wanted(True, split=9))
    second = next(turns)
    assert (second.number, second.plan.decided_at) == (2, 120.0)
    assert (passes.wait(0).plan.describe(), passes.wait(0).outcome) == ("split 1 -> 2", None)
    assert fails.wait(0).plan.vetoes == ("11 instances need 6 nodes, the limit is 2",)
    assert engine.configuration.parallelism["split"] == 1


def test_a_preview_needs_a_window() -> None:
    loop = looped(FakeEngine(FakeClock()))
    ticket = loop.requests.put(wanted(True, split=2))
    next(loop.run(until=200.0))
    with pytest.raises(RefusedError, match="no window is measured yet"):
        ticket.wait(0)


def test_an_unknown_operator_is_refused_with_the_nearest_known_and_takes_no_turn() -> None:
    loop = looped(FakeEngine(FakeClock()))
    ticket = loop.requests.put(wanted(splitt=2))
    assert next(loop.run(until=200.0)).plan.decided_at == 60.0
    with pytest.raises(UserError, match=r"there is no operator 'splitt'; did you mean 'split'\?"):
        ticket.wait(0)


def test_a_request_is_answered_if_the_loop_ends_while_it_is_served() -> None:
    engine = FakeEngine(FakeClock())
    loop = looped(engine)
    ticket = loop.requests.put(wanted(split=2))
    engine.deaf = "the driver is gone"
    with pytest.raises(RheostatError, match="the driver is gone"):
        loop.turn()
    with pytest.raises(RefusedError, match="the run ended before this was answered"):
        ticket.wait(0)


def test_requests_that_wait_when_the_run_ends_and_those_that_come_later_are_refused() -> None:
    loop = looped(FakeEngine(FakeClock()))
    waiting = loop.requests.put(wanted(split=2))
    refusals: list[str] = []

    def wait(ticket: Ticket) -> None:
        with pytest.raises(RefusedError) as refused:
            ticket.wait(10)
        refusals.append(str(refused.value))

    other = threading.Thread(target=wait, args=(waiting,))
    other.start()
    loop.requests.close()
    other.join()
    wait(loop.requests.put(wanted(split=3)))
    assert refusals == ["the run has ended"] * 2


def test_an_inbox_that_is_full_refuses_more() -> None:
    inbox = looped(FakeEngine(FakeClock())).requests
    tickets = [inbox.put(wanted(split=2)) for _ in range(MOST_WAITING + 1)]
    with pytest.raises(RefusedError, match="20 requests wait already"):
        tickets[-1].wait(0)
    with pytest.raises(TimeoutError):
        tickets[0].wait(0)
