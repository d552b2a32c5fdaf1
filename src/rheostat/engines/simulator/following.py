"""What it costs to follow a forecast: its 90 % quantile alone decides how many simulated nodes there are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from rheostat.analyze.forecasts.calibrated import HIGH
from rheostat.analyze.forecasts.forecast import Forecast
from rheostat.analyze.forecasts.replay import Load
from rheostat.analyze.judging import Measures
from rheostat.engines.simulator.comparison import run_policy
from rheostat.engines.simulator.deployment import Floats
from rheostat.engines.simulator.oracle import highest_load
from rheostat.engines.simulator.scenario import MAX_STEPS, Scenario
from rheostat.engines.simulator.settings import Settings
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.decision import Proposal
from rheostat.model.errors import UserError
from rheostat.model.topology import Operator, Topology
from rheostat.policies.base import Info, Memory, Policy, Situation, wish

PEAK_NODES = 10  # nodes of one core that the oracle needs at the peak ...
FULL = 0.999  # ... where they are so full
MOST_NODES = 40
SIMULATED_STEP_SECONDS = 10.0
REACTIVE_TARGET = 0.8  # of the nodes, which the load may use where no forecast is known


@dataclass(frozen=True)
class Follow(Policy):
    """As many nodes as serve the highest 90 % quantile until a node that is ordered next could help.

    Without a forecast it reacts: the present load may use 80 % of the nodes.
    """

    forecasts: Sequence[Forecast | None] = ()
    limits: tuple[float, ...] = ()  # the highest load of 1, 2, 3 ... nodes
    ahead: int = 1  # steps

    info = Info("follow", "nodes", "proactive", "docs/forecasts.md")

    def decide(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        """Follow the forecast alone: nothing is added where nodes are busy, as it would hide a bad one."""
        return self.propose(situation, memory)

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        issued = int(situation.now / self.period_seconds + 1e-9) - 1
        forecast = self.forecasts[issued] if 0 <= issued < len(self.forecasts) else None
        wanted = situation.load / REACTIVE_TARGET
        if forecast is not None and forecast.knows(HIGH):
            wanted = forecast.highest(HIGH, self.ahead)
        nodes = self.nodes(wanted + situation.load_to_serve - situation.load)
        parallelism = dict.fromkeys(situation.topology.names, nodes)
        return wish(situation, parallelism, f"{wanted:,.0f} rows/s may come", nodes=nodes), memory

    def nodes(self, load: float) -> int:
        """The fewest nodes that serve a load."""
        return min(len(self.limits), int(np.searchsorted(self.limits, load - 1e-9)) + 1)


@dataclass(frozen=True)
class Ground:
    """The simulated cluster on which all methods follow the same load."""

    scenario: Scenario
    oracle: Floats
    follow: Follow

    @property
    def ahead(self) -> int:
        """How many steps ahead the nodes are chosen."""
        return self.follow.ahead

    def cost(self, forecasts: Sequence[Forecast | None]) -> Measures:
        """Follow some forecasts over the whole judged part."""
        policy = replace(self.follow, forecasts=forecasts)
        return run_policy(self.scenario, policy, oracle=self.oracle).measures


def prepare(load: Load) -> Ground:
    """One operator whose cost makes the peak need PEAK_NODES; UserError if it would take too long."""
    parts = ceil(load.step_seconds / SIMULATED_STEP_SECONDS)
    if len(load.judged) * parts > MAX_STEPS:
        raise UserError("the judged part is too long to be simulated; set duration=, or give a longer --step")
    kind = NodeKind("node", cores=1.0, slots=1)
    settings = Settings(kinds=(kind,), step_seconds=load.step_seconds / parts)
    cost = FULL * PEAK_NODES * settings.overhead.room(kind.cores) / max(float(load.judged.max()), 1e-9)
    topology = Topology("work", (Operator("work", cost, max_parallelism=MOST_NODES),))
    scenario = Scenario(topology, np.repeat(load.judged, parts), settings, Bounds(1, MOST_NODES))
    limits = tuple(highest_load(topology, nodes, settings) for nodes in range(1, MOST_NODES + 1))
    lead = kind.startup_seconds + settings.executor_startup_seconds + load.step_seconds
    ahead = ceil(lead / load.step_seconds)
    follow = Follow(load.step_seconds, limits=limits, ahead=ahead)
    return Ground(scenario, scenario.oracle(), follow)
