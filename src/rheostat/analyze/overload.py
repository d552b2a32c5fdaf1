"""Overload as nodes and the running batch show it, before any batch has ended (P0's own signal)."""

from collections.abc import Iterable
from dataclasses import dataclass

from rheostat.model.decision import Cause
from rheostat.model.observation import ApplicationMeasures, NodeMeasures, Observation

OVERLOADED = 0.9  # of a node's CPU or memory, as P0 has it
COLD = (
    0.3  # chosen: a JVM that spends a larger share of its CPU on compiling and loading classes is still cold
)
LASTING = 2  # late batches in a row that no cold JVM explains


@dataclass(frozen=True, slots=True)
class Overload:
    """Late batches on full nodes, in words and as causes; `cpu` and `memory` say what is full."""

    words: str
    causes: tuple[Cause, ...]
    cpu: bool
    memory: bool
    growth: float = 1.0  # how many times the trigger the running batch will take for want of CPU; 1: unknown


def overload(observation: Observation) -> Overload | None:
    """The overload in a window, or None. Missing is not zero: a node of unknown CPU counts as idle here.

    Of several queries each is judged by its own trigger, and the one that is furthest behind speaks.

    A cold JVM is slow, too, and more nodes would only add colder ones. So one late batch is no overload
    while the compilers are busy; a second one in a row is, whatever they do. Nor is one late batch overload
    where only memory is full: a JVM fills what it may have, and is slow now and then without a lack of it.

    >>> node = NodeMeasures("n1", slots=2, cores=1.0, cpu=0.97)
    >>> batch = ApplicationMeasures(trigger_seconds=3, running_seconds=31, tasks_done=12, tasks_left=188)
    >>> overload(Observation(0, 10, {}, (node,), batch)).words
    'nodes are above 0.9 CPU and the running batch has taken 31 s of a 3 s trigger, 12 of 200 tasks done'
    """
    queries = observation.queries or {"": observation.application}
    found = [(_query_overload(observation, name, query), query) for name, query in queries.items()]
    known = [(each.growth, _late(query), each) for each, query in found if each is not None]
    return max(known, key=lambda one: one[:2])[2] if known else None


def _query_overload(observation: Observation, name: str, query: ApplicationMeasures) -> Overload | None:
    """The overload by one query's batches; an application of one query has no name for it."""
    nodes, late = observation.nodes, _late(query)
    cold, cpu, memory = _is_cold(nodes), _full_cpu(nodes), _full_memory(nodes)
    if not (cpu or memory) or late < (1 if cpu and not cold else LASTING):
        return None
    what = _what(observation.application, cpu, memory)
    return Overload(
        f"nodes are above {OVERLOADED:g} {what} and {_batch_words(query, late, name)}",
        (*cpu, *memory, *_batch_causes(query, late, name or "application")),
        bool(cpu),
        bool(memory),
        _growth(query) if cpu and not cold and late >= LASTING else 1.0,
    )


def _late(application: ApplicationMeasures) -> int:
    """Late batches in a row; an engine that does not watch the running batch tells of none."""
    return max(application.late_batches or 0, int(_overdue(application)))


def _overdue(application: ApplicationMeasures) -> bool:
    """Whether the running batch has already taken longer than the trigger."""
    running, trigger = application.running_seconds, application.trigger_seconds
    return bool(running and trigger and running > trigger)


def _is_cold(nodes: Iterable[NodeMeasures]) -> bool:
    """Whether any node's JVM still compiles or loads classes: a stage waits for its slowest node."""
    return any((node.compiling or 0.0) > COLD for node in nodes)


def _full_cpu(nodes: tuple[NodeMeasures, ...]) -> tuple[Cause, ...]:
    """The nodes' mean CPU, if above the limit: one hot node among idle ones is skew, not overload."""
    cores = sum(node.cores for node in nodes)
    mean = sum((node.cpu or 0.0) * node.cores for node in nodes) / cores if cores else 0.0
    if mean <= OVERLOADED:
        return ()
    if len(nodes) == 1:
        return (Cause("CPU", nodes[0].name, mean, ">", OVERLOADED),)
    return (Cause("mean CPU", "nodes", mean, ">", OVERLOADED),)


def _full_memory(nodes: Iterable[NodeMeasures]) -> tuple[Cause, ...]:
    """Each node that is short of memory: its executor may end, and no other node's memory prevents that."""
    measured = [
        (word, node.name, share)
        for node in nodes
        for word, share in (("memory", node.memory), ("heap", node.heap))
    ]
    return tuple(
        Cause(word, name, share, ">", OVERLOADED)
        for word, name, share in measured
        if share is not None and share > OVERLOADED
    )


def _batch_causes(query: ApplicationMeasures, late: int, subject: str) -> tuple[Cause, ...]:
    causes = (Cause("late batches in a row", subject, float(late), ">=", 1.0),)
    running, trigger = query.running_seconds, query.trigger_seconds
    if running is None or trigger is None or not _overdue(query):
        return causes
    return (Cause("seconds of the running batch", subject, running, ">", trigger), *causes)


def _what(application: ApplicationMeasures, cpu: tuple[Cause, ...], memory: tuple[Cause, ...]) -> str:
    """What is full: of memory also whether it is the heap, and how much of it state holds beside the heap."""
    words = ["CPU"] if cpu else []
    if memory:
        part = "heap" if all(cause.measure == "heap" for cause in memory) else "memory"
        held = application.state_memory_bytes
        words.append(f"{part} (state holds {held / 2**20:.0f} MB)" if held and part == "memory" else part)
    return " and ".join(words)


def _batch_words(query: ApplicationMeasures, late: int, name: str) -> str:
    trigger, of = query.trigger_seconds, f" of {name}" if name else ""
    if not _overdue(query):
        than = "" if trigger is None else f" for a {trigger:g} s trigger"
        return (
            f"the last batch{of} was late{than}"
            if late == 1
            else f"{late} batches{of} in a row were late{than}"
        )
    words = f"the running batch{of} has taken {query.running_seconds:.0f} s of a {trigger:g} s trigger"
    done, left = query.tasks_done, query.tasks_left
    return words if done is None or left is None else f"{words}, {done} of {done + left} tasks done"


def _growth(application: ApplicationMeasures) -> float:
    """How many times the trigger the running batch will take, if its tasks go on as they did."""
    done, left = application.tasks_done, application.tasks_left
    running, trigger = application.running_seconds, application.trigger_seconds
    if not done or left is None or not running or not trigger:
        return 1.0
    return max(1.0, running * (done + left) / done / trigger)
