"""What a run prints where there is no terminal: what is new, once."""

from dataclasses import replace

import pytest

from rheostat.cli.live_run import Lines
from rheostat.control.guards import Guards
from rheostat.control.turn import Decision, Turn
from rheostat.model.decision import Outcome, Status
from rheostat.model.observation import Event
from rheostat.policies.base import hold
from rheostat.policies.example import situation


def held(*events: Event, alert: str | None = None, advice: str | None = None) -> Turn:
    """A turn that changes nothing."""
    seen = situation()
    proposal = replace(hold(seen, "hold: all is well"), alert=alert, advice=advice)
    plan = Guards().check(proposal, seen, (), 1)
    outcome = Outcome(Status.UNCHANGED, seen.configuration, 60.0, 60.0, plan.reason)
    observation = replace(seen.observation, events=events)
    return Decision(1, observation, seen.evaluation, plan, {}).with_outcome(outcome)


def printed(capsys: pytest.CaptureFixture[str], *turns: Turn) -> list[str]:
    lines = Lines()
    for turn in turns:
        lines.show(turn)
    return [line.strip() for line in capsys.readouterr().out.splitlines()]


def test_an_alert_is_printed_once_until_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    full, fuller = held(alert="it is full"), held(alert="it is fuller")
    assert printed(capsys, full, full, fuller, fuller, held(), full) == [
        "60 s  ALERT: it is full",
        "60 s  ALERT: it is fuller",
        "60 s  ALERT: it is full",
    ]


def test_advice_is_printed_when_it_appears_and_instead_of_the_alert(
    capsys: pytest.CaptureFixture[str],
) -> None:
    advised = held(alert="allow more nodes", advice="rewrite the state")
    assert printed(capsys, advised, advised) == ["60 s  advice: rewrite the state"]


def test_what_a_script_and_its_driver_do_is_printed_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    restart = Event(12.0, "driver", "the driver ended; restarting in 1 s \x1b[31m")
    assert printed(capsys, held(restart, Event(13.0, "executor added", "executor 1"))) == [
        "12 s  the driver ended; restarting in 1 s ?[31m"
    ]
