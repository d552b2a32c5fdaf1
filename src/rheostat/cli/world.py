"""What `simulate` and `compare` share: what runs, where, and under which load, as the options say it."""

import dataclasses
from collections.abc import Mapping

from rheostat.analyze.profiles import Overhead
from rheostat.analyze.rates import demand, nominal_mix
from rheostat.control.guards import Guards
from rheostat.engines.simulator.comparison import Scenario
from rheostat.engines.simulator.engine import Simulator
from rheostat.engines.simulator.settings import Settings
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.errors import UserError, nearest
from rheostat.model.topology import Topology
from rheostat.model.topology_file import find_topology
from rheostat.policies.base import Policy
from rheostat.policies.foreign import first_configuration
from rheostat.workloads import parse_curve, sample

MAX_STEPS = 700_000  # a week of seconds
MAX_RATE = 1e15  # rows/s; beyond, floating point no longer counts rows
MAX_CORES = 1e9
# What the simulation can compute with, where the smallest number is not 0 or the largest has an end.
LIMITS = {
    "cores": (0.001, 10_000.0),
    "slots": (1.0, 10_000.0),
    "executors": (1.0, 10_000.0),
    "memory_mb": (1.0, 1e9),
    "startup_seconds": (0.0, 86_400.0),
    "step_seconds": (0.01, 60.0),
    "trigger_seconds": (0.01, 86_400.0),
    "stage_overhead_seconds": (0.0, 86_400.0),
    "executor_startup_seconds": (0.0, 86_400.0),
    "incremental_seconds": (0.0, 86_400.0),
    "restart_seconds": (0.0, 86_400.0),
    "noise": (0.0, 2.0),
    "overhead": (1.0, 100.0),
    "queue_rows": (1.0, 1e15),
    "state_bytes_per_second": (1.0, 1e15),
}

_FREE = {f.name for f in dataclasses.fields(Settings)} - {
    "mode",
    "kinds",
    "overhead",
    "regions",
    "seed",
    "rebalance_seconds",
}

_GUARDS = ("cooldown_seconds", "changes_per_hour")


def scenario(
    topology: str, curve: str, mode: str, seed: int, node: str, nodes: str, settings: list[str] | None
) -> Scenario:
    """Build what the options say; UserError when they make no sense."""
    parsed = parse_curve(curve)
    values: dict[str, object] = {}
    for text in settings or []:
        key, equals, raw = text.partition("=")
        known = {*_FREE, *_GUARDS, "overhead"}
        if key not in known:
            raise UserError(f"--set {text!r}: unknown setting{nearest(key, known)}")
        if not equals:
            raise UserError(f"--set {text!r}: write it as {key}=VALUE")
        values[key] = raw if key == "on_full" else _number("--set", key, raw)
    limits = {key: values.pop(key) for key in _GUARDS if key in values}
    if "overhead" in values:
        values["overhead"] = Overhead(slope=float(str(values["overhead"])))
    world = Settings(mode=mode, kinds=(node_kind(node),), seed=seed, **values)  # type: ignore[arg-type]
    kind = world.kinds[0]
    if world.overhead.room(kind.cores) <= (kind.executors - 1) * world.executor_idle_cores:
        raise UserError("--node: its overhead and its executors leave no CPU for work; give it more cores")
    if parsed.duration_seconds / world.step_seconds > MAX_STEPS:
        raise UserError("the curve is longer than a week of steps; set duration= or a larger step_seconds")
    load = sample(parsed, world.step_seconds, seed)
    found, peak = find_topology(topology), float(load.max())
    check_rates(found, demand(found, {name: peak * part for name, part in nominal_mix(found).items()}))
    return Scenario(found, load, world, bounds(nodes), Guards(**limits))  # type: ignore[arg-type]


def check_rates(topology: Topology, rates: Mapping[str, float]) -> None:
    """Refuse loads, selectivities and costs that are finite each and together beyond computing."""
    for operator in topology.operators:
        rate = rates[operator.name]
        if not rate <= MAX_RATE:
            raise UserError(
                f"operator {operator.name!r} would get {rate:g} rows/s; {MAX_RATE:g} is the limit"
            )
        if not rate * operator.cost_seconds <= MAX_CORES:
            cores = rate * operator.cost_seconds
            raise UserError(
                f"operator {operator.name!r} would need {cores:g} cores; {MAX_CORES:g} is the limit"
            )


def check_start(scene: Scenario, policies: Mapping[str, Policy]) -> None:
    """Refuse a world in which a policy cannot even start, before anything is written."""
    for spec, policy in policies.items():
        step = scene.settings.step_seconds
        if policy.period_seconds < step:
            raise UserError(
                f"policy {spec!r}: period_seconds must be at least the step of the simulation, {step:g} s"
            )
        Simulator(scene.topology, scene.load, first_configuration(policy, scene.start()), scene.settings)


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
        value = _number("--node", key, raw)
        whole = key in ("slots", "executors")
        if whole and value != int(value):
            raise UserError(f"--node {key} must be a whole number, not {raw!r}")
        values[key] = int(value) if whole else value
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


def _number(option: str, key: str, raw: str) -> float:
    try:
        value = float(raw)
    except ValueError:
        raise UserError(f"{option} {key} must be a number, not {raw!r}") from None
    low, high = LIMITS.get(key, (0.0, 1e15))
    if not low <= value <= high:
        raise UserError(f"{option} {key} must be from {low:g} to {high:g}, not {raw!r}")
    return value
