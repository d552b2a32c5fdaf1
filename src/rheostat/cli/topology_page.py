"""A topology drawn as a tree, with the rates that a load causes."""

from rich.text import Text
from rich.tree import Tree

from rheostat.analyze.rates import check_rates, demand, nominal_mix
from rheostat.cli import console
from rheostat.model.topology import Topology
from rheostat.model.topology_file import find_topology

DEEPEST = 8  # levels of a tree, so that a chain of a thousand operators stays within the terminal


def show(file: str, load: float | None, as_json: bool) -> None:
    """Check a topology and draw it."""
    topology = find_topology(file)
    rates = demand(topology, _loads(topology, load))
    check_rates(topology, rates)
    if as_json:
        console.print_json(_for_programs(topology, rates))
        return
    total = sum(rates[name] for name in topology.sources)
    size = console.count(len(topology.operators), "operator")
    console.out.print(Text.assemble((topology.name, "bold"), f": {size} at {_rate(total)}"))
    drawn: set[str] = set()
    roots = dict.fromkeys(topology.sources)
    while roots:
        root = next(iter(roots))
        del roots[root]
        console.out.print(_branch(topology, rates, root, drawn, roots))
    cores = sum(rates[o.name] * o.cost_seconds for o in topology.operators)
    console.out.print(f"CPU needed: {console.number(cores)} cores")
    silent = [name for name in topology.sources if topology.operator(name).load is None]
    if silent and load is None:
        console.out.print(f"1 row/s assumed where no load is stated: {', '.join(silent)}")


def _loads(topology: Topology, load: float | None) -> dict[str, float]:
    if load is not None:
        return {name: load * part for name, part in nominal_mix(topology).items()}
    stated = {name: topology.operator(name).load for name in topology.sources}
    return {name: 1.0 if rate is None else rate for name, rate in stated.items()}


def _branch(
    topology: Topology, rates: dict[str, float], root: str, drawn: set[str], roots: dict[str, None]
) -> Tree:
    """Draw an operator with all that it feeds; an operator drawn elsewhere is only named."""
    drawn.add(root)
    tree = Tree(_label(topology, rates, root))
    path = [(tree, iter(topology.outputs[root]))]
    while path:
        branch, streams = path[-1]
        stream = next(streams, None)
        if stream is None:
            path.pop()
            continue
        name = stream.downstream
        arrow = Text(f"{_rate(rates[stream.upstream] * stream.rows_per_row)} → ", "dim")
        if name in drawn:
            branch.add(arrow + Text(f"{name} (above)", "dim"))
        elif name in roots or len(path) > DEEPEST:
            roots[name] = None
            branch.add(arrow + Text(f"{name} (below)", "dim"))
        else:
            drawn.add(name)
            path.append((branch.add(arrow + _label(topology, rates, name)), iter(topology.outputs[name])))
    return tree


def _label(topology: Topology, rates: dict[str, float], name: str) -> Text:
    operator = topology.operator(name)
    cores = console.number(rates[name] * operator.cost_seconds)
    words = [
        f": {_rate(rates[name])}, {cores} cores",
        f"x{operator.min_parallelism}-{operator.max_parallelism}",
    ]
    if operator.stateful:
        words.append("stateful")
    return Text.assemble((name, "bold"), ", ".join(words))


def _rate(rows: float) -> str:
    return f"{console.number(rows)} rows/s"


def _for_programs(topology: Topology, rates: dict[str, float]) -> dict[str, object]:
    return {
        "name": topology.name,
        "sources": list(topology.sources),
        "sinks": list(topology.sinks),
        "operators": [
            {
                "name": o.name,
                "role": topology.role(o.name),
                "rows_per_second": rates[o.name],
                "cores": rates[o.name] * o.cost_seconds,
                "stateful": o.stateful,
                "parallelism": {"min": o.min_parallelism, "max": o.max_parallelism},
                "streams": {s.downstream: rates[o.name] * s.rows_per_row for s in topology.outputs[o.name]},
            }
            for o in topology.operators
        ],
    }
