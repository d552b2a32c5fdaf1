"""Load levels (P0, section 3.1): which configuration serves which load, from a file or worked out."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from pydantic import Field

from rheostat.analyze.execution import ExecutionModel, ceil
from rheostat.model.configuration import NodeKind
from rheostat.model.documents import Document, parse, read_document
from rheostat.model.errors import FileError


@dataclass(frozen=True, slots=True)
class Level:
    """A configuration and the highest load (rows/s at all sources) that it serves."""

    load: float
    parallelism: Mapping[str, int]
    nodes: int


class LevelDocument(Document):
    """One level in a map file."""

    load: float = Field(gt=0)
    parallelism: dict[str, int]
    nodes: int = Field(ge=1)


class MapDocument(Document):
    """A load-to-configuration map, as the benchmark procedure writes it."""

    application: str = ""
    levels: list[LevelDocument] = Field(min_length=1)


def load_map(path: Path) -> tuple[Level, ...]:
    """Read a map file; its levels must rise."""
    stated = parse(MapDocument, read_document(path), path).levels
    for before, after in pairwise(stated):
        if after.load <= before.load:
            raise FileError(f"{path}: levels must rise: {after.load:g} comes after {before.load:g}")
    return tuple(Level(level.load, level.parallelism, level.nodes) for level in stated)


def derive_level(
    load: float,
    per_row: Mapping[str, float],
    model: ExecutionModel,
    kind: NodeKind,
    *,
    min_health: float,
    node_limit: float,
    nodes_only: bool = False,
) -> Level:
    """Work out what Algorithms 1 and 2 reach when the load rises to a level, without running them.

    `per_row` is the slots that each operator keeps busy per row/s offered. With k instances an operator's
    health falls below `min_health` at a known load, so all scale-outs below the level are known in order.
    Each goes to the least loaded node of that moment, or to a new one when that is above `node_limit`.

    >>> from rheostat.analyze.execution import Storm
    >>> two = NodeKind(cores=2, slots=2)
    >>> for load in (4_000, 10_000, 14_000, 16_000):  # P0's DDoS parser, 4,700 rows/s per instance
    ...     level = derive_level(load, {"parser": 1 / 4_700}, Storm(), two, min_health=0.9, node_limit=0.9)
    ...     print(load, level.parallelism["parser"], level.nodes)
    4000 1 1
    10000 2 1
    14000 3 2
    16000 4 2
    """
    busy = {name: slots * load for name, slots in per_row.items()}
    # Storm lets a tenth of the rows wait or fall; where they would pile up at the source, keep a tenth free.
    target = 1 / min_health if model.oversubscribes else min_health
    parallelism = model.parallelism_for(busy, target)
    if model.name == "staged":
        return Level(load, parallelism, ceil(model.slots_for(parallelism) / kind.slots))
    light = sum(busy[name] for name, count in parallelism.items() if count == 1)
    first = max(1, ceil(light / target / kind.slots))
    if not model.oversubscribes:
        first = max(first, ceil(len(parallelism) / kind.slots))
    if nodes_only:
        return Level(load, parallelism, first + sum(parallelism.values()) - len(parallelism))
    return Level(load, parallelism, _provision(first, per_row, parallelism, model, kind, target, node_limit))


def _provision(
    first: int,
    per_row: Mapping[str, float],
    parallelism: Mapping[str, int],
    model: ExecutionModel,
    kind: NodeKind,
    target: float,
    node_limit: float,
) -> int:
    """Replay the scale-outs in the order in which a rising load causes them; return the nodes in use."""
    outs = sorted(
        (count * target / per_row[name], name, count)
        for name, wanted in parallelism.items()
        for count in range(1, wanted)
    )
    per_load = np.zeros(first + len(outs))  # slots busy per row/s on each node
    hosted = np.zeros(first + len(outs))
    hosts: dict[str, list[int]] = {}
    for number, name in enumerate(per_row):
        hosts[name] = [number % first]
        per_load[number % first] += per_row[name]
        hosted[number % first] += 1
    nodes = first
    for load, name, count in outs:
        loads = per_load[:nodes] * load / kind.slots
        if not model.oversubscribes:
            loads = np.where(hosted[:nodes] >= kind.slots, np.inf, loads)
        chosen = int(np.argmin(loads))
        if loads[chosen] > node_limit:
            chosen, nodes = nodes, nodes + 1
        less = per_row[name] / count - per_row[name] / (count + 1)
        for node in hosts[name]:
            per_load[node] -= less
        per_load[chosen] += per_row[name] / (count + 1)
        hosted[chosen] += 1
        hosts[name].append(chosen)
    return nodes
