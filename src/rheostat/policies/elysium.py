"""ELYSIUM (P2): the fewest instances, then the fewest nodes, for the present or the expected load."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import floor

import numpy as np

from rheostat.analyze.cost_profiles import PROFILES
from rheostat.analyze.execution import ceil
from rheostat.analyze.forecasts.calibrated import LEVELS
from rheostat.analyze.forecasts.forecast import MEDIAN
from rheostat.analyze.node_overhead import Overhead, OverheadProfile, even_node_loads
from rheostat.analyze.selectivity_profile import SelectivityProfile
from rheostat.model.decision import Cause, Proposal, Relation
from rheostat.policies.base import Info, Memory, Policy, Situation, hold, wish
from rheostat.policies.foresight import Foresight

MOST_MINUTES = 60


@dataclass(frozen=True)
class Elysium(Policy):
    """ELYSIUM: the smallest parallelism, then the fewest nodes, each by itself ("symbiotic", P2).

    Algorithm 1 asks an estimator what instances and nodes would use at the load; here the estimator's
    profiles are `linear` (learned from all windows so far) or `exact` (the topology's stated costs).
    Proactive: the highest load that a forecast expects within the horizon, where that is more than now.

    Lombardi, Aniello, Bonomi, Querzoni: Elastic Symbiotic Scaling of Operators and Resources in Stream
    Processing Systems. IEEE TPDS 29(3), 2018.

    >>> from rheostat.policies.example import situation
    >>> proposal, _ = Elysium().decide(situation(load=2_500, parallelism=(1, 2, 1), nodes=4), {})
    >>> dict(proposal.target.parallelism), proposal.target.nodes
    ({'lines': 1, 'split': 2, 'count': 2}, 3)
    """

    period_seconds: float = 60.0
    cpu_max_thr: float = 0.8
    core_min_thr: float = 0.25
    core_max_thr: float = 0.65
    profile: str = "linear"
    proactive: bool = False
    horizon_minutes: float = 2.0
    forecast: str = "best"  # docs/forecasts.md lists them
    history: str = ""  # a load curve or a trace from before the run, for the forecast to learn from
    quantile: float = 0.5  # of the forecast: 0.1, 0.5 or 0.9

    info = Info(
        "elysium", "operators and nodes, independently", "reactive or proactive", "P2 ELYSIUM, Algorithm 1"
    )

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise ValueError(f"profile must be {' or '.join(PROFILES)}")
        if not 0 <= self.core_min_thr < self.core_max_thr or self.cpu_max_thr <= 0:
            raise ValueError("thresholds must satisfy 0 <= core_min_thr < core_max_thr and cpu_max_thr > 0")
        if self.quantile not in LEVELS or not 0 < self.horizon_minutes <= MOST_MINUTES:
            raise ValueError("quantile must be 0.1, 0.5 or 0.9, horizon_minutes positive and at most 60")
        self._foresight.check()  # now: a mistake in it is the user's, not the loop's

    @cached_property
    def _foresight(self) -> Foresight:
        return Foresight(self.forecast, self.history, self.horizon_minutes)

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        window, learned = situation.observation, memory.get("profile", {})
        costs = PROFILES[self.profile](situation.topology, situation.instance_cores, learned)
        costs.learn(window, situation.evaluation)
        selectivity = SelectivityProfile(situation.topology, learned)
        selectivity.learn(window)
        nodes_profile = OverheadProfile(memory.get("profile"))
        nodes_profile.learn(window)
        profile = {**costs.state, **selectivity.state, **nodes_profile.state}
        load, seen, alert = self._load(situation, memory.get("foresight", {}))
        memory = {"profile": profile, "foresight": seen}
        busy = costs.busy(selectivity.rates(situation.source_loads(load)))
        parallelism = self._parallelism(situation, busy)
        overhead = nodes_profile.overhead() if self.profile != "exact" else Overhead()
        cores = situation.evaluation.cores_of(busy)
        nodes, highest = self._nodes(situation, parallelism, cores, overhead)
        proposal = self._proposal(situation, load, parallelism, nodes, highest)
        return replace(proposal, alert=alert), memory

    def _proposal(
        self, situation: Situation, load: float, parallelism: dict[str, int], nodes: int, highest: float
    ) -> Proposal:
        current = situation.configuration
        word = f"expected load {load:,.0f}" if self.proactive else f"load {load:,.0f}"
        if dict(current.parallelism) == parallelism and current.nodes == nodes:
            return hold(situation, f"{word} rows/s: the configuration is already the smallest correct one")
        causes = tuple(
            Cause(
                "instances needed", name, parallelism[name], ">" if parallelism[name] > count else "<", count
            )
            for name, count in current.parallelism.items()
            if parallelism[name] != count
        )
        if nodes != current.nodes:
            relation: Relation = ">" if nodes > current.nodes else "<"
            causes += (Cause("nodes needed", situation.topology.name, nodes, relation, current.nodes),)
        reason = (
            f"{word} rows/s: the fewest instances that are at most {self.core_max_thr:.0%} busy, "
            f"then the fewest nodes; the busiest of {nodes} would be at {highest:.0%}"
        )
        return wish(situation, parallelism, reason, nodes=nodes, causes=causes)

    def _load(self, situation: Situation, seen: Memory) -> tuple[float, Memory, str | None]:
        """The present load with what waits, or the highest of the forecast if that is higher."""
        if not self.proactive:
            return situation.load_to_serve, {}, None
        window, local = situation.observation, situation.local_start
        seen = self._foresight.observe(seen, window.start, window.end, situation.load, local)
        forecast = self._foresight.expected(seen, situation.now, local)
        if forecast is None or not situation.load:  # of no rows there is no mix to scale
            return situation.load_to_serve, seen, self._foresight.alert(seen)
        level = self.quantile if forecast.knows(self.quantile) else MEDIAN
        return max(situation.load_to_serve, forecast.highest(level)), seen, None

    def _parallelism(self, situation: Situation, busy: dict[str, float]) -> dict[str, int]:
        """Lines 2 to 9: as few instances as keep each at or below core_max, and not below core_min."""
        wanted = situation.bounds.parallelism(
            situation.topology, situation.model.parallelism_for(busy, self.core_max_thr)
        )
        if situation.model.takes_turns or not self.core_min_thr:
            return wanted  # stages share the slots, so there is no instance of an operator's own to under-use
        for name, count in wanted.items():
            used = floor(busy[name] / self.core_min_thr + 1e-9)  # as many would each be at core_min
            wanted[name] = min(count, max(situation.topology.operator(name).min_parallelism, used, 1))
        return wanted

    def _nodes(
        self, situation: Situation, parallelism: dict[str, int], cores: dict[str, float], overhead: Overhead
    ) -> tuple[int, float]:
        """Lines 10 to 16, started at the smallest number that could possibly do."""
        kind = situation.kind
        least = 1
        if not situation.model.oversubscribes:
            least = situation.nodes_with(situation.model.slots_for(parallelism))
        room = overhead.room(self.cpu_max_thr * kind.cores)
        total = sum(cores.values())
        first = max(
            least, ceil(total / room) if room > 0 else situation.bounds.max_nodes, situation.bounds.min_nodes
        )
        shares = {name: (parallelism[name], cores[name] / parallelism[name]) for name in parallelism}
        nodes = min(first, situation.bounds.max_nodes)
        while True:
            loads = even_node_loads(shares, nodes)
            highest = float(overhead.node_cpu(float(np.max(loads)))) / kind.cores
            if highest <= self.cpu_max_thr + 1e-9 or nodes >= situation.bounds.max_nodes:
                return nodes, highest
            if nodes >= sum(parallelism.values()):  # every instance is alone: more nodes change nothing
                return nodes, highest
            nodes += 1
