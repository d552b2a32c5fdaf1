"""What the journal keeps of turns beyond their JSON: a line each, and windows of many."""

from dataclasses import astuple, dataclass, fields
from enum import IntEnum
from typing import Any

from pydantic import ConfigDict

from rheostat.control.loop import Turn
from rheostat.model.decision import Status
from rheostat.model.observation import Measure

ONLY_NUMBERS = ConfigDict(allow_inf_nan=False)
SHOWING = 3  # turns after a change that show what it brought


class Worth(IntEnum):
    """Which lines the journal gives up first."""

    QUIET = 0  # nothing changed, nobody was told anything
    AFTER = 1  # quiet, and shows what a change brought
    TOLD = 2  # vetoed, failed, a dry run, or with an alert
    APPLIED = 3


@dataclass(frozen=True, slots=True)
class TurnSummary:
    """One turn in one row, so that lists and sums need no JSON."""

    __pydantic_config__ = ONLY_NUMBERS

    number: int
    at: float  # decided, seconds since the run began
    finished_at: float
    worth: int
    status: str
    change: str  # what changed or, where it was not done, was to change
    reason: str
    outcome: str
    veto: str | None
    alert: str | None
    pause_seconds: float
    start: float  # of the window
    end: float
    load: Measure  # rows/s at all sources
    throughput: Measure
    lag_seconds: Measure
    backlog: Measure
    utilisation: Measure  # of the busiest operator
    nodes: int
    instances: int
    node_seconds: float  # from the window's start to the outcome

    @property
    def values(self) -> tuple[Any, ...]:
        """Its columns in order."""
        return astuple(self)


@dataclass(frozen=True, slots=True)
class RolledUp:
    """Many turns in one row: means over time, and the extremes that would hurt."""

    __pydantic_config__ = ONLY_NUMBERS

    start: float
    end: float
    turns: int
    seconds: float  # measured between start and end; less than their distance where lines were kept
    load: Measure
    throughput: Measure
    lag_mean: Measure
    lag_max: Measure
    backlog_max: Measure
    nodes_mean: Measure
    nodes_max: int
    instances_mean: Measure
    node_seconds: float


@dataclass(frozen=True, slots=True)
class Alert:
    """The same alert, however often it was raised."""

    __pydantic_config__ = ONLY_NUMBERS

    text: str
    times: int
    first_at: float
    last_at: float


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over a stretch of the run."""

    __pydantic_config__ = ONLY_NUMBERS

    turns: int = 0
    applied: int = 0
    failed: int = 0
    dry_run: int = 0
    node_seconds: float = 0.0
    pause_seconds: float = 0.0


def columns(kind: type[TurnSummary] | type[RolledUp]) -> str:
    """The columns of a kind of row, for SQL."""
    return ", ".join(field.name for field in fields(kind))


def line(turn: Turn, last_applied: int | None) -> TurnSummary:
    """Sum up a turn."""
    plan, outcome, seen = turn.plan, turn.outcome, turn.observation
    used = [operator.utilisation for operator in turn.evaluation.operators.values()]
    done = outcome.configuration != plan.current or not plan.changes
    most_nodes = max(plan.current.nodes, outcome.configuration.nodes)
    return TurnSummary(
        number=turn.number,
        at=plan.decided_at,
        finished_at=outcome.finished_at,
        worth=_worth(turn, last_applied),
        status=outcome.status.value,
        change=outcome.configuration.describe(plan.current) if done else plan.describe(),
        reason=plan.reason,
        outcome=outcome.reason,
        veto="; ".join(plan.vetoes) or None,
        alert=plan.alert,
        pause_seconds=outcome.pause_seconds,
        start=seen.start,
        end=seen.end,
        load=seen.total_load,
        throughput=seen.application.throughput,
        lag_seconds=seen.application.lag_seconds,
        backlog=seen.application.backlog,
        utilisation=max(used, default=None),
        nodes=plan.current.nodes,
        instances=plan.current.instances,
        node_seconds=plan.current.nodes * max(0.0, plan.decided_at - seen.start)
        + most_nodes * max(0.0, outcome.finished_at - plan.decided_at),
    )


def _worth(turn: Turn, last_applied: int | None) -> Worth:
    if turn.outcome.status is Status.APPLIED:
        return Worth.APPLIED
    if turn.outcome.status is not Status.UNCHANGED or turn.plan.vetoes or turn.plan.alert:
        return Worth.TOLD
    recent = last_applied is not None and turn.number - last_applied <= SHOWING
    return Worth.AFTER if recent else Worth.QUIET
