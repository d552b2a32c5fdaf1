"""What `simulate` and `compare` share: what runs, where, and under which load, as the options say it."""

import dataclasses
from collections.abc import Mapping

from rheostat.analyze.profiles import Overhead
from rheostat.analyze.rates import check_rates, demand, nominal_mix
from rheostat.cli.sizes import bounds, node_kind, number
from rheostat.control.guards import Guards
from rheostat.engines.simulator.comparison import Scenario
from rheostat.engines.simulator.engine import Simulator
from rheostat.engines.simulator.settings import Settings
from rheostat.model.errors import UserError, nearest
from rheostat.model.topology_file import find_topology
from rheostat.policies.base import Policy
from rheostat.policies.foreign import first_configuration
from rheostat.workloads import parse_curve, sample

MAX_STEPS = 700_000  # a week of seconds
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
        values[key] = raw if key == "on_full" else number("--set", key, raw)
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


def check_start(scene: Scenario, policies: Mapping[str, Policy]) -> None:
    """Refuse a world in which a policy cannot even start, before anything is written."""
    for spec, policy in policies.items():
        step = scene.settings.step_seconds
        if policy.period_seconds < step:
            raise UserError(
                f"policy {spec!r}: period_seconds must be at least the step of the simulation, {step:g} s"
            )
        Simulator(scene.topology, scene.load, first_configuration(policy, scene.start()), scene.settings)
