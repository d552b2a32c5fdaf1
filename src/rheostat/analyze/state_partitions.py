"""What another number of state partitions would bring: batches as they are and would be, and the pause.

Spark fixes the number when a checkpoint is made, at 200 if nobody says otherwise; each of them costs a task,
a commit and an upload in every batch. As many as the largest cluster has slots are enough to use it all.
"""

from collections.abc import Mapping

from rheostat.analyze.evaluation import Evaluation
from rheostat.analyze.execution import ExecutionModel
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.observation import ApplicationMeasures, Observation
from rheostat.model.rewrite import Rewrite
from rheostat.model.topology import Topology

LEAST_SHARE = 0.2  # of a batch's time that a rewrite must save
LEAST_OCCUPANCY = 0.1  # of the interval between triggers that it must save, too
REPAID_SECONDS = 3600.0  # within which what batches save must make up for the pause
RESTART_SECONDS = 10.0  # of a plain script, with its driver
REWRITE_SECONDS = 1.1  # of the smallest state; this and the next as benchmarks/bench_rescale.py measured
SECONDS_PER_ROW = 8.6e-6
SECONDS_PER_PARTITION = 0.024  # read or written: 200 made into 8 took 5.8 s
BYTES_PER_SECOND = 10e6  # where rows are large; an estimate


def right_number(bounds: Bounds, kind: NodeKind) -> int:
    """As many state partitions as the largest allowed cluster has slots, so that state can spread over it.

    >>> right_number(Bounds(1, 3), NodeKind(slots=2))
    6
    """
    return max(1, bounds.max_nodes * kind.slots)


def advise(
    topology: Topology,
    observation: Observation,
    evaluation: Evaluation,
    model: ExecutionModel,
    bounds: Bounds,
    kind: NodeKind,
    restart_seconds: float = RESTART_SECONDS,
) -> Rewrite | None:
    """The rewrite that is worth its pause; None if there is none, or if what it would bring is not known."""
    after = right_number(bounds, kind)
    before = _too_many(topology, observation, after)
    if not before or evaluation.missing:
        return None
    parallelism = {name: observation.operators[name].parallelism for name in topology.names}
    parallelism.update(before)
    slots = sum(node.slots for node in observation.nodes)
    now = model.batch_seconds(evaluation.busy, parallelism, slots)
    then = model.batch_seconds(evaluation.busy, parallelism, slots, dict.fromkeys(before, after))
    read, written = sum(before.values()), after * len(before)
    pause = restart_seconds + rewrite_seconds(observation.application, read, written)
    if now is None or then is None or not _worth_it(now, then, model.trigger_seconds or 0.0, pause):
        return None
    return Rewrite(tuple(before), max(before.values()), after, now, then, pause)


def rewrite_seconds(application: ApplicationMeasures, read: int, written: int) -> float:
    """How long Spark takes to rewrite so much state from and into so many partitions, by what it took before.

    >>> round(rewrite_seconds(ApplicationMeasures(state_rows=1e6, state_bytes=4e7), 4, 2), 1)
    9.8
    """
    rows, size = application.state_rows or 0.0, application.state_bytes or 0.0
    moved = max(rows * SECONDS_PER_ROW, size / BYTES_PER_SECOND)
    return REWRITE_SECONDS + moved + SECONDS_PER_PARTITION * (read + written)


def _too_many(topology: Topology, observation: Observation, after: int) -> Mapping[str, int]:
    """The operators whose state has more partitions than that, and how many each has."""
    known = {name: observation.operators[name] for name in topology.names if name in observation.operators}
    return {
        name: measures.partitions
        for name, measures in known.items()
        if measures.partitions is not None and measures.partitions > after
        if measures.partition_seconds is not None
    }


def _worth_it(now: float, then: float, trigger_seconds: float, pause: float) -> bool:
    """Whether it saves enough, also for its pause; where the rows alone are too many, only nodes can help."""
    if then == float("inf"):
        return False
    saved = now - then
    repaid = saved * REPAID_SECONDS / max(now, trigger_seconds)
    return saved >= max(LEAST_SHARE * now, LEAST_OCCUPANCY * trigger_seconds) and repaid >= pause
