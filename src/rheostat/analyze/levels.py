"""Load levels (P0, section 3.1): which configuration serves which load, from a file or worked out."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
    for before, after in zip(stated, stated[1:], strict=False):
        if after.load <= before.load:
            raise FileError(f"{path}: levels must rise: {after.load:g} comes after {before.load:g}")
    return tuple(Level(level.load, level.parallelism, level.nodes) for level in stated)


def derive_level(
    load: float,
    busy: Mapping[str, float],
    model: ExecutionModel,
    kind: NodeKind,
    *,
    min_health: float,
    node_limit: float,
    nodes_only: bool = False,
) -> Level:
    """Work out what Algorithms 1 and 2 reach at a load where each operator keeps `busy` slots busy.

    An operator gets instances until its health is at least `min_health`; each instance goes to the least
    loaded node, and to a new one when that node is above `node_limit` or, where slots are hard, full.

    >>> from rheostat.analyze.execution import Storm
    >>> level = derive_level(16_000, {"parser": 3.4}, Storm(), NodeKind(cores=2, slots=2), min_health=0.9, node_limit=0.9)
    >>> dict(level.parallelism), level.nodes
    ({'parser': 4}, 2)
    """
    parallelism = model.parallelism_for(busy, 1 / min_health)
    if model.name == "staged":
        return Level(load, parallelism, ceil(model.slots_for(parallelism) / kind.slots))
    if nodes_only:
        return Level(load, parallelism, 1 + sum(parallelism.values()) - len(parallelism))
    return Level(load, parallelism, _pack(busy, parallelism, model, kind, node_limit))


def _pack(
    busy: Mapping[str, float],
    parallelism: Mapping[str, int],
    model: ExecutionModel,
    kind: NodeKind,
    node_limit: float,
) -> int:
    """Nodes that Algorithm 2 ends up with: one of each operator on the first, then instance by instance."""
    load = {name: min(1.0, busy[name] / count) for name, count in parallelism.items()}
    first = sum(load.values()) / kind.slots
    hard = not model.oversubscribes
    nodes = [(first, 0, len(load))]  # (load, number, instances), the least loaded on top
    if hard and len(load) > kind.slots:
        full, rest = divmod(len(load), kind.slots)
        nodes = [(first * kind.slots / len(load), number, kind.slots) for number in range(full)]
        nodes += [(first * rest / len(load), full, rest)] if rest else []
        heapq.heapify(nodes)
    closed = 0
    for name, count in parallelism.items():
        for _ in range(count - 1):
            while nodes and hard and nodes[0][2] >= kind.slots:
                heapq.heappop(nodes)
                closed += 1
            extra = load[name] / kind.slots
            if not nodes or nodes[0][0] > node_limit or nodes[0][0] + extra > 1 + 1e-9:
                heapq.heappush(nodes, (extra, closed + len(nodes), 1))
            else:
                used, number, here = nodes[0]
                heapq.heapreplace(nodes, (used + extra, number, here + 1))
    return closed + len(nodes)
