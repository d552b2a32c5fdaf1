"""The rows that the journal keeps beside the JSON of turns: a summary of each, and windows of many."""

from dataclasses import astuple, dataclass, fields, replace
from enum import IntEnum
from typing import Any

from pydantic import ConfigDict

from rheostat.control.turn import Decision, Turn
from rheostat.model.decision import Status
from rheostat.model.observation import Measure

ONLY_NUMBERS = ConfigDict(allow_inf_nan=False)
PENDING = "pending"  # the status of a decision without an outcome
EFFECT_TURNS = 3  # turns after a change that show its effect


class Worth(IntEnum):
    """Which summaries the journal gives up first."""

    QUIET = 0  # nothing changed, nothing to report
    EFFECT = 1  # quiet, and shows the effect of a change
    NOTABLE = 2  # vetoed, failed, interrupted, a dry run, or with an alert
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
    money: float  # what these cost; 0 where nodes have no price

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
    seconds: float  # measured between start and end; less than their distance where summaries were kept
    load: Measure
    throughput: Measure
    lag_mean: Measure
    lag_max: Measure
    backlog_max: Measure
    nodes_mean: Measure
    nodes_max: int
    instances_mean: Measure
    node_seconds: float
    money: float


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
    interrupted: int = 0
    node_seconds: float = 0.0
    money: float = 0.0
    pause_seconds: float = 0.0

    @property
    def attempts(self) -> int:
        """Changes that were made, tried or only decided on."""
        return self.applied + self.failed + self.dry_run + self.interrupted


def columns(kind: type[TurnSummary] | type[RolledUp]) -> str:
    """The columns of a kind of row, for SQL."""
    return ", ".join(field.name for field in fields(kind))


def summarise(turn: Turn, last_applied: int | None = None) -> TurnSummary:
    """Sum up a turn; `last_applied` is the number of the last turn that changed something."""
    plan, outcome = turn.plan, turn.outcome
    most_nodes = max(plan.current.nodes, outcome.configuration.nodes)
    applying_seconds = max(0.0, outcome.finished_at - plan.decided_at)
    if outcome.status is Status.INTERRUPTED:  # how many nodes there were until the restart, nobody knows
        applying_seconds = 0.0
    summary = summarise_pending(turn)
    return replace(
        summary,
        finished_at=outcome.finished_at,
        worth=_worth(turn, last_applied),
        status=outcome.status.value,
        change=_change(turn),
        outcome=outcome.reason,
        pause_seconds=outcome.pause_seconds,
        node_seconds=summary.node_seconds + most_nodes * applying_seconds,
        money=summary.money + most_nodes * applying_seconds * _price_per_node_second(turn),
    )


def summarise_pending(decision: Decision) -> TurnSummary:
    """Sum up a decision whose outcome is not known."""
    plan, observation = decision.plan, decision.observation
    utilisations = [operator.utilisation for operator in decision.evaluation.operators.values()]
    node_seconds = plan.current.nodes * max(0.0, plan.decided_at - observation.start)
    return TurnSummary(
        number=decision.number,
        at=plan.decided_at,
        finished_at=plan.decided_at,
        worth=Worth.NOTABLE,
        status=PENDING,
        change=plan.describe(),
        reason=plan.reason,
        outcome="",
        veto="; ".join(plan.vetoes) or None,
        alert=plan.alert,
        pause_seconds=0.0,
        start=observation.start,
        end=observation.end,
        load=observation.total_load,
        throughput=observation.application.throughput,
        lag_seconds=observation.application.lag_seconds,
        backlog=observation.application.backlog,
        utilisation=max(utilisations, default=None),
        nodes=plan.current.nodes,
        instances=plan.current.instances,
        node_seconds=node_seconds,
        money=node_seconds * _price_per_node_second(decision),
    )


def _price_per_node_second(decision: Decision) -> float:
    """What a node of this window costs on average."""
    nodes = decision.observation.nodes
    return sum(node.price_per_hour for node in nodes) / len(nodes) / 3600 if nodes else 0.0


def _change(turn: Turn) -> str:
    """What changed; where nothing did, or a restart came between, what was to change."""
    plan, outcome = turn.plan, turn.outcome
    done = outcome.configuration != plan.current or not plan.changes
    if done and outcome.status is not Status.INTERRUPTED:
        return outcome.configuration.describe(plan.current)
    return plan.describe()


def _worth(turn: Turn, last_applied: int | None) -> Worth:
    if turn.outcome.status is Status.APPLIED:
        return Worth.APPLIED
    if turn.outcome.status is not Status.UNCHANGED or turn.plan.vetoes or turn.plan.alert:
        return Worth.NOTABLE
    recent = last_applied is not None and turn.number - last_applied <= EFFECT_TURNS
    return Worth.EFFECT if recent else Worth.QUIET
