"""What waits too long: rows beyond those that a healthy application has on their way."""

from rheostat.analyze.execution import ExecutionModel
from rheostat.model.observation import Observation

PATIENCE_SECONDS = 10.0  # rows that wait longer than this are a queue: no policy shrinks
DRAIN_SECONDS = 120.0  # within which policies without a rule of their own want a queue to be gone


def queue_seconds(observation: Observation, model: ExecutionModel) -> float:
    """How many seconds of the load wait for too long; 0 if none do, or nobody knows.

    Micro-batches always have rows on their way: those that collect for the next batch, and those in it.

    >>> from rheostat.analyze.execution import Pipelined, Staged
    >>> from rheostat.model.observation import ApplicationMeasures
    >>> behind = Observation(0, 10, {}, (), ApplicationMeasures({"s": 100.0}, backlog=5_000))
    >>> queue_seconds(behind, Pipelined()), queue_seconds(behind, Staged(trigger_seconds=20))
    (50.0, 10.0)
    """
    backlog, load = observation.application.backlog, observation.total_load
    if not backlog or load is None:
        return 0.0
    if not load:  # whatever is left of an earlier load waits
        return PATIENCE_SECONDS + backlog
    return max(0.0, backlog / load - 2 * (model.trigger_seconds or 0.0))


def waits_too_long(observation: Observation, model: ExecutionModel) -> bool:
    """Whether rows wait beyond the patience, so that nothing should shrink."""
    return queue_seconds(observation, model) > PATIENCE_SECONDS


def drain_rate(observation: Observation, model: ExecutionModel) -> float:
    """The rows/s that a queue adds to the load if it is to be gone in time.

    >>> from rheostat.analyze.execution import Pipelined
    >>> from rheostat.model.observation import ApplicationMeasures
    >>> drain_rate(Observation(0, 10, {}, (), ApplicationMeasures({"s": 100.0}, backlog=6_000)), Pipelined())
    50.0
    """
    if not waits_too_long(observation, model):
        return 0.0
    return queue_seconds(observation, model) * (observation.total_load or 0.0) / DRAIN_SECONDS
