"""Load levels (P0, section 3.1): the configuration for each load, read from a file or derived."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from rheostat.analyze.execution import ExecutionModel, ceil
from rheostat.model.configuration import NodeKind
from rheostat.model.documents import Document, parse, read_document
from rheostat.model.errors import FileError

REPLAY_INSTANCES = 10_000  # above this, packing the nodes full is as good an estimate and takes no time


@dataclass(frozen=True, slots=True)
class Level:
    """A configuration and the highest load (rows/s at all sources) that it serves."""

    load: float
    parallelism: Mapping[str, int]
    nodes: int


class LevelDocument(Document):
    """One level in a map file."""

    load: float = Field(gt=0)
    parallelism: dict[str, Annotated[int, Field(ge=1)]]
    nodes: int = Field(ge=1)
    offered: float | None = Field(
        default=None, gt=0
    )  # rows/s of the curve, where its source made others of them


class MapDocument(Document):
    """A load-to-configuration map, as the benchmark procedure writes it."""

    application: str = ""
    made: dict[str, str] = Field(default_factory=dict)  # the options of the benchmark that made it
    levels: list[LevelDocument] = Field(min_length=1)


class CapacityDocument(Document):
    """The capacity of one arrangement of a node's containers."""

    slots: int = Field(ge=1)
    executors: int = Field(ge=1)
    partitions: int = Field(ge=1)  # per slot
    rows_per_second: float = Field(ge=0)


class PlatformDocument(Document):
    """The capacity of a node's containers, as written by `rheostat bench platform`."""

    containers: Literal["slot+node", "node"]  # in provisioning order
    node: str = ""  # the best arrangement
    cores: float = Field(default=1.0, gt=0)
    measured: list[CapacityDocument] = Field(default_factory=list)


def load_containers(path: Path) -> str:
    """The order of containers in a platform file."""
    return parse(PlatformDocument, read_document(path), path).containers


def read_map(path: Path) -> MapDocument:
    """Read a map file; its levels must rise and name the same operators."""
    stated = parse(MapDocument, read_document(path), path)
    for before, after in pairwise(stated.levels):
        if after.load <= before.load:
            raise FileError(f"{path}: levels must rise: {after.load:g} comes after {before.load:g}")
        if other := before.parallelism.keys() ^ after.parallelism.keys():
            raise FileError(f"{path}: {min(other)!r} is not in every level's parallelism")
    return stated


def load_map(path: Path) -> tuple[Level, ...]:
    """The levels of a map file."""
    return tuple(Level(level.load, level.parallelism, level.nodes) for level in read_map(path).levels)


def derive_level(
    load: float,
    per_row: Mapping[str, float],
    model: ExecutionModel,
    kind: NodeKind,
    *,
    target: float,
    node_limit: float,
    nodes_only: bool = False,
    cores_per_row: Mapping[str, float] | None = None,
) -> Level:
    """Compute the result of Algorithms 1 and 2 when the load rises to a level, without running them.

    `per_row` holds the slots that each operator keeps busy per row/s offered. With k instances an operator
    passes the target utilisation at a known load, so all scale-outs below the level are known in order.
    Each goes to the node that is then least loaded, or to a new node if that one is above `node_limit`.
    `cores_per_row` is the CPU that it takes: less than its slots offer, where it also waits.

    >>> from rheostat.analyze.execution import Storm
    >>> two = NodeKind(cores=2, slots=2)
    >>> for load in (800, 1_700, 2_600, 3_500):  # an instance serves 1,000 rows/s, at the target 900
    ...     level = derive_level(load, {"parser": 1 / 1_000}, Storm(), two, target=0.9, node_limit=0.8)
    ...     print(load, level.parallelism["parser"], level.nodes)
    800 1 1
    1700 2 1
    2600 3 2
    3500 4 2
    """
    busy = {name: slots * load for name, slots in per_row.items()}
    # The paper's rule lets a tenth of the rows wait or be dropped; here a tenth of the capacity stays free.
    parallelism = model.parallelism_for(busy, target)
    if model.takes_turns:
        return Level(load, parallelism, ceil(model.slots_for(parallelism) / kind.slots))
    offers = model.instance_cores(kind.cores, kind.slots)
    cores = (
        {name: slots * offers for name, slots in per_row.items()} if cores_per_row is None else cores_per_row
    )
    light = load * sum(cores[name] for name, count in parallelism.items() if count == 1)
    first = max(1, ceil(light / target / kind.cores))
    if not model.oversubscribes:
        first = max(first, ceil(len(parallelism) / kind.slots))
    if nodes_only:
        return Level(load, parallelism, first + sum(parallelism.values()) - len(parallelism))
    if sum(parallelism.values()) > REPLAY_INSTANCES:
        full = ceil(model.slots_for(parallelism) / kind.slots) if not model.oversubscribes else 1
        return Level(
            load, parallelism, max(first, full, ceil(load * sum(cores.values()) / target / kind.cores))
        )
    replay = _Replay(first, cores, model, kind)
    outs = sorted(
        (count * target / slots, index)
        for index, (name, slots) in enumerate(per_row.items())
        for count in range(1, parallelism[name])
    )
    for at_load, index in outs:
        replay.scale_out(index, at_load, node_limit)
    replay.relieve(load, target, node_limit)
    return Level(load, dict(zip(per_row, map(len, replay.hosts), strict=True)), replay.nodes)


class _Replay:
    """Scale-outs in the order in which a rising load causes them (Algorithm 2); operators are numbers."""

    def __init__(
        self, first: int, per_row: Mapping[str, float], model: ExecutionModel, kind: NodeKind
    ) -> None:
        """`per_row` has the cores that each operator takes per row/s offered."""
        self.slots, self.cores, self.hard = kind.slots, kind.cores, not model.oversubscribes
        self.nodes = first
        self.per_row = list(per_row.values())
        self.per_instance = np.array(self.per_row)  # cores per row/s, in one instance of each operator
        self.per_load = np.zeros(first + 8)  # cores per row/s, on each node
        self.filled = np.zeros(first + 8, dtype=np.intp)  # slots taken, on each node
        self.hosts_operator = np.zeros((first + 8, len(per_row)), dtype=np.bool_)  # node, operator
        self.hosts: list[list[int]] = [[] for _ in per_row]
        for operator in range(len(per_row)):
            self._put(operator, operator % first)

    def scale_out(self, operator: int, load: float, node_limit: float) -> None:
        """Add an instance on the least loaded node or, if that is overloaded, on a new one."""
        loads = self.per_load[: self.nodes] * (load / self.cores)
        if self.hard:
            loads[self.filled[: self.nodes] >= self.slots] = np.inf
        chosen = int(loads.argmin())
        if loads[chosen] > node_limit:
            chosen, self.nodes = self.nodes, self.nodes + 1
        self._put(operator, chosen)

    def relieve(self, load: float, target: float, node_limit: float) -> None:
        """Relieve full nodes: add instances of their heaviest operator elsewhere."""
        for _ in range(4 * len(self.per_row)):
            loads = self.per_load[: self.nodes] * (load / self.cores)
            worst = int(loads.argmax())
            if loads[worst] <= target + 1e-9:
                return
            heaviest = int((self.hosts_operator[worst] * self.per_instance).argmax())
            more = self.per_row[heaviest] / (len(self.hosts[heaviest]) + 1) * load / self.cores
            self.scale_out(heaviest, load, min(node_limit, target - more))

    def _put(self, operator: int, node: int) -> None:
        if node >= len(self.per_load):
            self.per_load = np.concatenate([self.per_load, np.zeros_like(self.per_load)])
            self.filled = np.concatenate([self.filled, np.zeros_like(self.filled)])
            self.hosts_operator = np.concatenate([self.hosts_operator, np.zeros_like(self.hosts_operator)])
        hosts, before = self.hosts[operator], self.per_instance[operator]
        hosts.append(node)
        self.per_instance[operator] = self.per_row[operator] / len(hosts)
        for other in hosts[:-1]:
            self.per_load[other] -= before - self.per_instance[operator]
        self.per_load[node] += self.per_instance[operator]
        self.filled[node] += 1
        self.hosts_operator[node, operator] = True
