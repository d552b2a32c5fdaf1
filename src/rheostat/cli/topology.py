"""`rheostat topology`: check a topology file and see it with its rates."""

from typing import Annotated

import typer
from rich.tree import Tree

from rheostat.analyze.rates import demand, nominal_mix
from rheostat.cli import console
from rheostat.model.errors import UserError
from rheostat.model.topology import Topology
from rheostat.model.topology_file import find_topology


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("topology", epilog="Example: rheostat topology wordcount --load 500")(_topology)


def _topology(
    file: Annotated[
        str, typer.Argument(help="A JSON or YAML file, or the name of one that comes with Rheostat.")
    ],
    load: Annotated[
        float | None, typer.Option("--load", help="Rows/s at all sources together; else as the file states.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Check a topology and draw it with the rates that a load causes."""
    if load is not None and not 0 <= load < float("inf"):
        raise UserError("--load must be a finite number of at least 0")
    topology = find_topology(file)
    rates = demand(topology, _loads(topology, load))
    if as_json:
        console.print_json(_for_programs(topology, rates))
        return
    total = sum(rates[name] for name in topology.sources)
    console.out.print(f"[bold]{topology.name}[/]: {len(topology.operators)} operators at {total:,.0f} rows/s")
    seen: set[str] = set()
    for source in topology.sources:
        console.out.print(_branch(topology, rates, source, seen))
    cores = sum(rates[o.name] * o.cost_seconds for o in topology.operators)
    console.out.print(f"keeps {console.number(cores)} cores busy")


def _loads(topology: Topology, load: float | None) -> dict[str, float]:
    if load is not None:
        return {name: load * part for name, part in nominal_mix(topology).items()}
    stated = {name: topology.operator(name).load for name in topology.sources}
    return {name: 1.0 if rate is None else rate for name, rate in stated.items()}


def _branch(topology: Topology, rates: dict[str, float], root: str, seen: set[str]) -> Tree:
    """One source with all it feeds; what was drawn before is named, not drawn again."""
    tree = Tree(_label(topology, rates, root, seen))
    pending = [(root, tree)]
    seen.add(root)
    while pending:  # a loop, not recursion: a chain may be a thousand operators long
        name, branch = pending.pop()
        for stream in topology.outputs[name]:
            rows = rates[name] * stream.rows_per_row
            known = stream.downstream in seen
            label = f"[dim]{rows:,.0f}/s →[/] " + _label(topology, rates, stream.downstream, seen)
            child = branch.add(label)
            if not known:
                seen.add(stream.downstream)
                pending.append((stream.downstream, child))
    return tree


def _label(topology: Topology, rates: dict[str, float], name: str, seen: set[str]) -> str:
    if name in seen:
        return f"[dim]{name} (above)[/]"
    operator = topology.operator(name)
    busy = rates[name] * operator.cost_seconds
    words = [f"[bold]{name}[/]", f"{rates[name]:,.0f} rows/s", f"{console.number(busy)} cores"]
    if operator.stateful:
        words.append("stateful")
    words.append(f"x{operator.min_parallelism}-{operator.max_parallelism}")
    return "  ".join(words)


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
