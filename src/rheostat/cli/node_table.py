"""The nodes of a window, as `rheostat status` and `rheostat explain` show them."""

from collections.abc import Sequence

from rich.table import Table

from rheostat.cli import console, prose
from rheostat.model.observation import NodeMeasures

SHOWN_NODES = 12
# Shown where any node knows it; the words are short, so that a terminal of 80 columns has room for all.
INSIDE = {"heap": "heap", "GC": "gc", "warm-up": "compiling"}


def node_table(nodes: Sequence[NodeMeasures], indent: str = "") -> Table:
    """A row for each of the first nodes, and one for the rest."""
    inside = [
        (title, name)
        for title, name in INSIDE.items()
        if any(getattr(node, name) is not None for node in nodes)
    ]
    columns = (f"{indent}node", "kind", "region", "slots", "instances", "CPU", "memory")
    table = console.table("", *columns, *(title for title, _ in inside), text=3)
    table.title = None
    for node in nodes[:SHOWN_NODES]:
        table.add_row(
            indent + prose.plain(node.name),
            prose.plain(node.kind),
            prose.plain(node.region) + (" (hidden)" if node.hidden else ""),
            str(node.slots),
            "-" if node.instances is None else str(node.assigned),
            console.number(node.cpu, "%"),
            console.number(node.memory, "%"),
            *(console.number(getattr(node, name), "%") for _, name in inside),
        )
    if rest := nodes[SHOWN_NODES:]:
        cpu = [node.cpu for node in rest if node.cpu is not None]
        slots, instances = sum(node.slots for node in rest), sum(node.assigned for node in rest)
        mean = console.number(sum(cpu) / len(cpu), "%") if cpu else "-"
        table.add_row(f"{indent}{len(rest)} more", "", "", str(slots), str(instances), mean)
    return table
