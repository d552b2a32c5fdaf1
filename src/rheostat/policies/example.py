"""A small situation to try a policy on: three operators on two nodes. Used by every policy's example."""

from rheostat.analyze.evaluation import evaluate
from rheostat.analyze.execution import ExecutionModel, Pipelined
from rheostat.analyze.rates import demand
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.observation import (
    ApplicationMeasures,
    InstanceMeasures,
    NodeMeasures,
    Observation,
    OperatorMeasures,
)
from rheostat.model.topology import Operator, Stream, Topology
from rheostat.policies.base import Situation

WORDS = Topology(
    "words",
    (Operator("lines", 0.0001), Operator("split", 0.0005), Operator("count", 0.0002)),
    (Stream("lines", "split"), Stream("split", "count", selectivity=2.0)),
)


def situation(
    load: float = 1_000.0,
    parallelism: tuple[int, int, int] = (1, 1, 1),
    nodes: int = 2,
    *,
    now: float = 60.0,
    waiting: float = 0.0,
    asking_seconds: float = 0.0,
    arrivals: tuple[float, ...] = (),
    model: ExecutionModel | None = None,
    bounds: Bounds = Bounds(max_nodes=20),
    kind: NodeKind = NodeKind(cores=2, slots=2),
) -> Situation:
    """Everything measured, nothing lost: `words` at a load on nodes of one kind.

    `asking_seconds`: for how long each row of split waits beside its CPU, as if it asked a remote service.

    >>> {name: round(op.utilisation, 2) for name, op in situation(load=1_000).evaluation.operators.items()}
    {'lines': 0.1, 'split': 0.5, 'count': 0.4}
    """
    seconds = 60.0
    counts = dict(zip(WORDS.names, parallelism, strict=True))
    rates = demand(WORDS, {"lines": load})
    names = [f"n{index + 1}" for index in range(nodes)]
    hosts: dict[str, list[str]] = {}
    dealt = [name for name in WORDS.names for _ in range(counts[name])]
    for index, name in enumerate(dealt):
        hosts.setdefault(name, []).append(names[index % nodes])
    operators = {}
    for operator in WORDS.operators:
        rows, count = rates[operator.name] * seconds, counts[operator.name]
        cpu = rows * operator.cost_seconds
        asking = rows * asking_seconds if operator.name == "split" else 0.0
        operators[operator.name] = OperatorMeasures(
            parallelism=count,
            received=rows,
            processed=rows,
            emitted={s.downstream: rows * s.rows_per_row for s in WORDS.outputs[operator.name]},
            cpu_seconds=cpu,
            busy_seconds=cpu + asking,
            waiting=waiting,
            arrivals=arrivals or (rows / 6,) * 6,
            instances=tuple(
                InstanceMeasures(
                    node, rows / count, rows / count, cpu / count / seconds / min(1.0, kind.cores)
                )
                for node in hosts[operator.name]
            ),
        )
    placed = [{o: hosts[o].count(name) for o in WORDS.names if name in hosts[o]} for name in names]
    loads = [
        sum(n * rates[o] * WORDS.operator(o).cost_seconds / counts[o] for o, n in here.items())
        for here in placed
    ]
    machines = tuple(
        NodeMeasures(
            name, kind.slots, kind.cores, cpu=min(1.0, used / kind.cores), memory=0.3, instances=here
        )
        for name, here, used in zip(names, placed, loads, strict=True)
    )
    observation = Observation(
        now - seconds, now, operators, machines, ApplicationMeasures({"lines": load}, load, waiting, 0.0)
    )
    model = model or Pipelined()
    return Situation(
        now=now,
        topology=WORDS,
        configuration=Configuration(counts, nodes * kind.executors, nodes),
        observation=observation,
        evaluation=evaluate(WORDS, observation, model, kind),
        model=model,
        kinds=(kind,),
        bounds=bounds,
    )
