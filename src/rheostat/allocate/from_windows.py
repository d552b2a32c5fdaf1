"""The measured topology of a running application, from the windows of its present configuration.

P4 profiles components; here the windows' own measures say what P4 wants: the load, rows out per row in, the
shares of the children, and capacities (§5.2.3). An operator's rows and CPU are sums of the last minute; or,
as a congested query in Real-Time Mode may end a batch every few minutes only, its newest before that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rheostat.allocate.measured import Component, MeasuredTopology
from rheostat.analyze.evaluation import Evaluation, evaluate
from rheostat.analyze.execution import ExecutionModel
from rheostat.analyze.leaves import recent, recent_rate
from rheostat.model.configuration import NodeKind
from rheostat.model.errors import UserError
from rheostat.model.observation import ApplicationMeasures, Observation, OperatorMeasures
from rheostat.model.topology import Operator, Stream, Topology

FULL = 0.9  # of the nodes' CPU; then a queue may grow because others take it, and shows no capacity
MIN_SHARE = 0.1  # of the nodes' cores, that the operators have at least
KEEPS_UP = 0.95  # of the rows that came; who processes less has a queue that grows, and shows its capacity
WAIT = "wait for more windows and ask again"


def from_windows(
    name: str, windows: Sequence[Observation], parallelism: Mapping[str, int], model: ExecutionModel
) -> MeasuredTopology:
    """Build the input from windows of one configuration, oldest first; UserError if a measure is missing.

    A unit is an instance. Sources emit the load that they are given, however many units they have.
    """
    window = together(windows, parallelism)
    topology = _topology(name, window)
    evaluation = evaluate(topology, window, model, NodeKind())
    if evaluation.missing:
        raise UserError(f"not measured: {_listed(evaluation.missing)}; {WAIT}")
    idle = [o for o, judged in evaluation.operators.items() if not judged.demand or not judged.utilisation]
    if idle:
        raise UserError(
            f"the capacity of {_listed(idle)} is unknown, because no rows came: ask again while rows flow"
        )
    cores = _shared_cores(windows, evaluation) if model.cores_apart else None
    emitted, capacity = _as_queues_show(topology, windows, window, evaluation, cores)
    return MeasuredTopology(
        name,
        tuple(
            Component(
                operator,
                max_rate=emitted.get(operator, capacity[operator]),
                ratio=_ratio(topology, operator),
                units=window.operators[operator].parallelism,
                source=operator in topology.sources,
                children={stream.downstream: stream.share for stream in topology.outputs[operator]},
                given=operator in topology.sources,
                cpu_seconds=evaluation.operators[operator].cost_seconds,
                held_back=operator not in topology.sources and window.operators[operator].waiting is None,
            )
            for operator in topology.names
        ),
        cores,
    )


def together(windows: Sequence[Observation], parallelism: Mapping[str, int]) -> Observation:
    """The windows as one: recent sums of rows and CPU per operator, the recent mean load of each source."""
    newest = windows[-1]
    counts = {name: parallelism.get(name, o.parallelism) for name, o in newest.operators.items()}
    operators = {name: _summed(windows, name, count) for name, count in counts.items()}
    load = {source: _mean_load(windows, source) for source in newest.application.load}
    measured = ApplicationMeasures(load=load, trigger_seconds=newest.application.trigger_seconds)
    return replace(newest, start=windows[0].start, operators=operators, application=measured)


def _summed(windows: Sequence[Observation], name: str, parallelism: int) -> OperatorMeasures:
    """Sums over the recent windows that measured an operator with all its streams; as it is, if none did."""
    streams = {stream for w in windows if name in w.operators for stream in w.operators[name].emitted}

    def complete(window: Observation) -> bool:
        own = window.operators.get(name)
        known = own is not None and own.processed is not None and own.cpu_seconds is not None
        return known and own is not None and own.emitted.keys() == streams

    known = [window.operators[name] for window in recent(windows, complete)]
    if not known:
        return replace(windows[-1].operators[name], parallelism=parallelism)
    return replace(
        known[-1],
        parallelism=parallelism,
        received=_sum(window.received for window in known),
        processed=_sum(window.processed for window in known),
        emitted={name: sum(window.emitted[name] for window in known) for name in known[-1].emitted},
        cpu_seconds=_sum(window.cpu_seconds for window in known),
        busy_seconds=_sum(window.busy_seconds for window in known),
        state_seconds=_sum(window.state_seconds for window in known),
    )


def _topology(name: str, window: Observation) -> Topology:
    """The graph that the rows show: who emits to whom, how much, and in which shares."""
    streams = []
    for upstream, measures in window.operators.items():
        rows = sum(measures.emitted.values())
        for downstream, count in measures.emitted.items():
            if measures.processed and rows:
                streams.append(Stream(upstream, downstream, rows / measures.processed, count / rows))
            else:  # nothing flowed
                streams.append(Stream(upstream, downstream, share=1 / len(measures.emitted)))
    return Topology(name, tuple(map(Operator, window.operators)), tuple(streams))


def _shared_cores(windows: Sequence[Observation], evaluation: Evaluation) -> float:
    """The CPU that all operators share: the nodes' cores, less what JVMs, Spark and Kafka's clients take."""
    cores, used = sum(node.cores for node in windows[-1].nodes), _cores_used(windows)
    if used is None:
        return cores
    rates = {
        name: recent_rate(windows, name) or judged.demand for name, judged in evaluation.operators.items()
    }
    inside = sum(rate * evaluation.operators[name].cost_seconds for name, rate in rates.items())
    return max(MIN_SHARE * cores, cores - max(0.0, used - inside))


def _cores_used(windows: Sequence[Observation]) -> float | None:
    """The CPU that all nodes used lately, in cores."""
    known = recent(windows, lambda window: all(node.cpu is not None for node in window.nodes))
    if not known:
        return None
    seconds = sum(window.seconds for window in known)
    return sum(n.cores * (n.cpu or 0.0) * w.seconds for w in known for n in w.nodes) / seconds


def _as_queues_show(
    topology: Topology,
    windows: Sequence[Observation],
    window: Observation,
    evaluation: Evaluation,
    cores: float | None,
) -> tuple[dict[str, float], dict[str, float]]:
    """What each source emits, and what every operator's instances can process, whatever else the nodes run.

    That follows from the cost of a row; but a queue shows more.

    Where it grows, what is processed is the capacity (P4, §5.2.3: droppedRate), unless the nodes are full:
    then it may lack CPU that others take. Where it does not grow, the capacity is at least what comes. Inside
    a query rows are held back: its queue is its busiest operator's.
    """
    judged = evaluation.operators
    rates = {name: recent_rate(windows, name) for name in judged}
    capacity = {name: max(o.demand / o.utilisation, rates[name] or 0.0) for name, o in judged.items()}
    arriving = {name: judged[name].demand if name in topology.sources else 0.0 for name in topology.names}
    emitted = {}
    used = _cores_used(windows)
    full = cores is not None and used is not None and used > FULL * sum(n.cores for n in window.nodes)
    for name in topology.order:
        share = _share_done(window.operators[name], head=name in topology.sources)
        if share is not None:
            per_row = {o: judged[o].demand / judged[name].demand for o in _behind(topology, window, name)}
            if share >= KEEPS_UP:
                shown = {other: arriving[name] * rows for other, rows in per_row.items()}
                capacity |= {other: max(capacity[other], rate) for other, rate in shown.items()}
            elif not full:
                busiest = max(per_row, key=lambda other: judged[other].utilisation)
                rate = rates[name]
                done = arriving[name] * share if rate is None else rate
                capacity[busiest] = min(capacity[busiest], done * per_row[busiest])
        done = min(arriving[name], capacity[name])
        if name in topology.sources:
            emitted[name] = done
        for stream in topology.outputs[name]:
            arriving[stream.downstream] += done * stream.rows_per_row
    return emitted, capacity


def _share_done(measures: OperatorMeasures, *, head: bool) -> float | None:
    """Processed / received where rows can queue up: at the head of a query; None elsewhere, or unknown."""
    if not (head or measures.waiting is not None) or not measures.received or measures.processed is None:
        return None
    return measures.processed / measures.received


def _behind(topology: Topology, window: Observation, head: str) -> list[str]:
    """The operators that a queue's rows reach before they come to the next queue."""
    found = [head]
    for name in found:
        below = (stream.downstream for stream in topology.outputs[name])
        found += [other for other in below if window.operators[other].waiting is None and other not in found]
    return found


def _ratio(topology: Topology, name: str) -> float:
    """Rows out per row processed; a leaf's output is what it finishes."""
    return next((stream.selectivity for stream in topology.outputs[name]), 1.0)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean_load(windows: Sequence[Observation], source: str) -> float | None:
    known = recent(windows, lambda window: window.application.load.get(source) is not None)
    return sum(window.application.load[source] or 0.0 for window in known) / len(known) if known else None


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"{', '.join(names[:4])}{more}"
