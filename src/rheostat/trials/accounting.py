"""Turns the account of a run into its result. Pure: no Spark, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rheostat.analyze.lag import Count, Floats, lag, rate
from rheostat.control.turn import Turn
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from rheostat.model.errors import RheostatError
from rheostat.trials.contestants import Contestant
from rheostat.trials.trial import Result, Trial
from rheostat.workloads import parse_curve


@dataclass
class Account:
    """What a run did and which nodes it paid for; times are seconds since its start."""

    # nodes that are paid for, and those whose executors are ready
    paid: list[tuple[float, int, int]] = field(default_factory=list)
    instances: list[tuple[float, float]] = field(default_factory=list)
    done: list[tuple[float, float]] = field(default_factory=list)  # position of the source in what is done
    arrived: dict[float, float] = field(default_factory=dict)  # rows in the topic, if there is a topic
    source_began: float | None = None  # start of the rate source, if there is no topic
    missed: str = ""  # what was not observed, so that the counts are wrong

    def begins(self, trial: Trial) -> float | None:
        """Return when the load started, even if with silence; None: not yet."""
        if not trial.kafka:
            return self.source_began
        arrived = Count.of(sorted(self.arrived.items()))
        if not np.any(arrived.rows > 0):
            return None
        return float(arrived.at[max(0, int(np.argmax(arrived.rows > 0)) - 1)]) - trial.silent_seconds

    def counts(self, trial: Trial, begins: float) -> tuple[Count, Count]:
        """Return the rows that arrived and those that are done, counted as the load counts."""
        done = Count.of(self.done)
        if trial.kafka:
            return Count.of(sorted(self.arrived.items())), done
        per_second = trial.partitions  # the rate source counts seconds, of so many ticks
        ticks = Count.of_curve(parse_curve(trial.load), trial.seed, begins, per_second)
        read = np.minimum(done.rows * per_second, len(ticks.rows) - 1).astype(int)
        return ticks, Count(done.at, ticks.rows[read])


def judge_run(
    trial: Trial, contestant: Contestant, number: int, account: Account, turns: Sequence[Turn]
) -> Result:
    """Return the load that was offered, what was done of it and when, and on which nodes."""
    begins = account.begins(trial)
    if len(account.done) < 4 or not account.paid or begins is None:
        raise RheostatError("too few batches ended")
    if account.missed:
        raise RheostatError(account.missed)
    arrived, done = account.counts(trial, begins)
    times = begins + np.arange(trial.warm_up_seconds, trial.seconds) + 1.0
    paid_at, paid, serving = np.array(account.paid, dtype=np.float64).T
    nodes = _latest(times, paid_at, paid)
    ours = [turn.outcome.status for turn in turns if turn.observation.end >= times[0]]
    return Result(
        contestant=contestant.name,
        number=number,
        load=_listed(rate(times, arrived)),
        throughput=_listed(rate(times, done)),
        lag=_listed(lag(times, arrived, done, in_steps=trial.mode != "realtime")),
        nodes=_listed(nodes),
        instances=_listed(_latest(times, *np.array(account.instances).T)),
        work=[
            pair for turn in turns if turn.observation.start >= times[0] and (pair := _work(turn, trial.node))
        ],
        startups=_startups(paid_at, paid, serving),
        changes=int(np.count_nonzero(np.diff(nodes))) if contestant.allocated else ours.count(Status.APPLIED),
        failed=ours.count(Status.FAILED),
    )


def _listed(values: Floats) -> list[float]:
    return [round(float(value), 3) for value in values]


def _latest(times: Floats, at: Floats, values: Floats) -> Floats:
    """Return the value that held at each time."""
    return np.asarray(values[np.maximum(0, np.searchsorted(at, times, side="right") - 1)])


def _work(turn: Turn, kind: NodeKind) -> tuple[float, float] | None:
    """Return the load and the cores that all nodes used in a window."""
    load, nodes = turn.observation.total_load, turn.observation.nodes
    used = [node.cpu for node in nodes if node.cpu is not None]
    if load is None or not nodes or len(used) < len(nodes):
        return None
    return load, sum(used) * kind.cores


def _startups(at: Floats, paid: Floats, serving: Floats) -> list[float]:
    """Return, for every increase of paid nodes, the seconds until that many serve."""
    seconds = []
    for index in np.flatnonzero(np.diff(paid) > 0) + 1:
        ready = np.flatnonzero((serving[index:] >= paid[index]) | (paid[index:] < paid[index]))
        if ready.size and paid[index + ready[0]] >= paid[index]:
            seconds.append(round(float(at[index + ready[0]] - at[index]), 2))
    return seconds
