"""The options of `simulate` and `compare`, read as a scenario."""

import dataclasses
from collections.abc import Sequence

from rheostat.analyze.node_overhead import Overhead
from rheostat.cli.values import bounds, node_kinds, number
from rheostat.control.guards import Guards
from rheostat.engines.simulator.scenario import Scenario, make_scenario
from rheostat.engines.simulator.settings import Settings
from rheostat.model.errors import UserError, nearest
from rheostat.model.topology_file import find_topology
from rheostat.workloads import parse_curve

_SET_BY_OTHER_OPTIONS = {"mode", "kinds", "overhead", "regions", "seed", "rebalance_seconds"}
_SETTINGS = {f.name for f in dataclasses.fields(Settings)} - _SET_BY_OTHER_OPTIONS
_GUARDS = ("cooldown_seconds", "changes_per_hour")


def read_scenario(
    topology: str,
    curve: str,
    mode: str,
    seed: int,
    node: Sequence[str],
    nodes: str,
    settings: list[str] | None,
) -> Scenario:
    """Build the scenario that the options describe; UserError if they are invalid."""
    parsed = parse_curve(curve)
    values = _read_settings(settings or [])
    limits = {key: values.pop(key) for key in _GUARDS if key in values}
    if "overhead" in values:
        values["overhead"] = Overhead(slope=float(str(values["overhead"])))
    simulation = Settings(mode=mode, kinds=node_kinds(node), seed=seed, **values)  # type: ignore[arg-type]
    guards = Guards(**limits)  # type: ignore[arg-type]
    return make_scenario(find_topology(topology), parsed, simulation, bounds(nodes), guards)


def _read_settings(texts: Sequence[str]) -> dict[str, object]:
    """Read each `--set KEY=VALUE`."""
    values: dict[str, object] = {}
    for text in texts:
        key, equals, raw = text.partition("=")
        allowed = {*_SETTINGS, *_GUARDS, "overhead"}
        if key not in allowed:
            raise UserError(f"--set {text!r}: unknown setting{nearest(key, allowed)}")
        if not equals:
            raise UserError(f"--set {text!r}: write it as {key}=VALUE")
        values[key] = raw if key == "on_full" else number("--set", key, raw)
    return values
