"""The options that `simulate` and `compare` share: what runs, where, and under which load."""

import dataclasses
import math
from typing import Annotated

import typer

from rheostat.analyze.profiles import Overhead
from rheostat.engines.simulator.comparison import Scenario
from rheostat.engines.simulator.settings import Settings
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.errors import UserError, nearest
from rheostat.model.topology_file import find_topology
from rheostat.workloads import parse_curve, sample

MAX_STEPS = 700_000  # a week of seconds

TopologyOption = Annotated[
    str,
    typer.Option("--topology", "-t", help="A topology file, or the name of one that comes with Rheostat."),
]
CurveOption = Annotated[str, typer.Option("--curve", "-c", help="A load curve, see `rheostat load list`.")]
ModeOption = Annotated[str, typer.Option("--mode", "-m", help="pipelined, staged or storm.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of all noise and chance.")]
NodeOption = Annotated[
    str,
    typer.Option("--node", help="The nodes: cores=2,slots=2,executors=1,memory_mb=4096,startup_seconds=60."),
]
NodesOption = Annotated[str, typer.Option("--nodes", help="MIN:MAX nodes.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Another setting of the simulated world, such as noise=0.1.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

_FREE = {f.name for f in dataclasses.fields(Settings)} - {
    "mode",
    "kinds",
    "overhead",
    "regions",
    "seed",
    "rebalance_seconds",
}


def scenario(
    topology: str, curve: str, mode: str, seed: int, node: str, nodes: str, settings: list[str] | None
) -> Scenario:
    """Build what the options say; UserError when they make no sense."""
    parsed = parse_curve(curve)
    values: dict[str, object] = {}
    for text in settings or []:
        key, equals, raw = text.partition("=")
        if not equals or key not in {*_FREE, "overhead"}:
            raise UserError(f"--set {text!r}: unknown setting{nearest(key, _FREE)}")
        values[key] = raw if key == "on_full" else _number(f"--set {key}", raw)
    if "overhead" in values:
        values["overhead"] = Overhead(slope=max(1.0, float(str(values["overhead"]))))
    world = Settings(mode=mode, kinds=(node_kind(node),), seed=seed, **values)  # type: ignore[arg-type]
    if parsed.duration_seconds / world.step_seconds > MAX_STEPS:
        raise UserError("the curve is longer than a week of steps; set duration= or a larger step_seconds")
    load = sample(parsed, world.step_seconds, seed)
    return Scenario(find_topology(topology), load, world, bounds(nodes))


def node_kind(text: str) -> NodeKind:
    """Read `cores=2,slots=2`.

    >>> node_kind("cores=0.5,slots=1").slot_cores
    0.5
    """
    fields = {field.name: field.type for field in dataclasses.fields(NodeKind)}
    values: dict[str, object] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, _, raw = part.partition("=")
        if key not in fields or key == "name":
            raise UserError(f"--node {part!r}: unknown part{nearest(key, fields)}")
        value = _number(f"--node {key}", raw)
        if key in ("slots", "executors"):
            if value != int(value) or value < 1:
                raise UserError(f"--node {key} must be a whole number of at least 1, not {raw}")
            values[key] = int(value)
        elif value < 0 or (value == 0 and key != "startup_seconds"):
            raise UserError(f"--node {key} must be greater than 0, not {raw}")
        else:
            values[key] = value
    return NodeKind(**values)  # type: ignore[arg-type]


def bounds(text: str) -> Bounds:
    """Read `MIN:MAX`.

    >>> bounds("1:20")
    Bounds(min_nodes=1, max_nodes=20)
    """
    low, colon, high = text.partition(":")
    try:
        found = Bounds(int(low), int(high) if colon else int(low))
    except ValueError:
        raise UserError(f"--nodes must be MIN:MAX, such as 1:20, not {text!r}") from None
    if not 1 <= found.min_nodes <= found.max_nodes <= 100_000:
        raise UserError(f"--nodes must satisfy 1 <= MIN <= MAX <= 100000, not {text!r}")
    return found


def _number(what: str, raw: str) -> float:
    try:
        value = float(raw)
    except ValueError:
        raise UserError(f"{what} must be a number, not {raw!r}") from None
    if not math.isfinite(value) or value < 0:
        raise UserError(f"{what} must be a finite number of at least 0, not {raw!r}")
    return value
