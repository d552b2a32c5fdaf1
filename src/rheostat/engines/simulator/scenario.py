"""The conditions of a simulation: the topology, its load, the settings and the limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rheostat.analyze.rates import check_rates, demand, nominal_mix
from rheostat.control.guards import Guards
from rheostat.engines.simulator.deployment import Floats
from rheostat.engines.simulator.engine import Simulator
from rheostat.engines.simulator.oracle import oracle_nodes
from rheostat.engines.simulator.settings import Settings
from rheostat.model.configuration import Bounds
from rheostat.model.errors import UserError
from rheostat.model.topology import Topology
from rheostat.policies.base import Policy, Start
from rheostat.policies.foreign import first_configuration
from rheostat.workloads import Curve, sample

MAX_STEPS = 700_000  # a week of seconds


@dataclass(frozen=True)
class Scenario:
    """The conditions that are the same for all policies of a comparison."""

    topology: Topology
    load: Floats  # rows/s per step
    settings: Settings = field(default_factory=Settings)
    bounds: Bounds = Bounds()
    guards: Guards = field(default_factory=Guards)

    def start(self) -> Start:
        """Return what a policy knows before the first row."""
        first = float(self.load[: round(60 / self.settings.step_seconds)].mean())
        kinds, model = self.settings.kinds, self.settings.model(self.topology)
        return Start(self.topology, model, kinds, self.bounds, first, float(self.load.max()))

    def oracle(self) -> Floats:
        """Return the oracle's nodes for this load."""
        return oracle_nodes(self.topology, self.load, self.settings, self.bounds)


def make_scenario(
    topology: Topology, curve: Curve, settings: Settings, bounds: Bounds, guards: Guards
) -> Scenario:
    """Sample the curve; UserError if the numbers are out of the simulator's range."""
    kind = settings.kinds[0]
    if settings.overhead.room(kind.cores) <= (kind.executors - 1) * settings.executor_idle_cores:
        raise UserError("--node: overhead and executors leave no CPU for work; use more cores")
    if curve.duration_seconds / settings.step_seconds > MAX_STEPS:
        raise UserError("the curve is longer than a week of steps; set duration= or a larger step_seconds")
    load = sample(curve, settings.step_seconds, settings.seed)
    peak = float(load.max())
    check_rates(
        topology, demand(topology, {name: peak * part for name, part in nominal_mix(topology).items()})
    )
    return Scenario(topology, load, settings, bounds, guards)


def check_start(scenario: Scenario, policies: Mapping[str, Policy]) -> None:
    """Raise UserError if a policy cannot start in the scenario, before anything is written."""
    for name, policy in policies.items():
        step = scenario.settings.step_seconds
        if policy.period_seconds < step:
            raise UserError(
                f"policy {name!r}: period_seconds must be at least the step of the simulation, {step:g} s"
            )
        first = first_configuration(policy, scenario.start())
        Simulator(scenario.topology, scenario.load, first, scenario.settings)
