"""Multi-level elasticity (P0): a map from load levels to configurations."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from rheostat.analyze.cost_profiles import BatchCosts
from rheostat.analyze.cost_profiles.per_batch import REMEMBERED
from rheostat.analyze.execution import ceil
from rheostat.analyze.forecasts import Schedule
from rheostat.analyze.levels import Level, derive_level, load_containers, load_map
from rheostat.model.configuration import Configuration
from rheostat.model.decision import Cause, Placement, Proposal, Relation
from rheostat.policies.base import Info, Memory, Policy, Situation, Start, hold, wish
from rheostat.policies.bottleneck import congested, scale_out
from rheostat.policies.level_choice import (
    any_more,
    bounded,
    from_map,
    no_smaller,
    suffices_without,
    unknown_operator,
)
from rheostat.policies.outlook import NOISE, Outlook, ahead, trend

ORDERS = ("slot+node", "node")


@dataclass(frozen=True)
class Multilevel(Policy):
    """Multi-level elasticity: the cheapest container that heals the bottleneck, from a map (P0).

    Load levels map to configurations: read from a file that the benchmark procedure wrote (`map`), or worked
    out from the costs measured so far. Scale-out moves nothing that runs; scale-in frees the containers
    that came last. With a `schedule` (a load curve or trace of one period) it acts `lead_seconds` ahead, and
    falls back to reacting, with an alert, when the load leaves the expected band. A schedule of a day or a
    week follows the local time, any other the run.

    Marangozova-Martin, de Palma, El Rheddane: Multi-Level Elasticity for Data Stream Processing. IEEE TPDS
    30(10), 2019.

    >>> from rheostat.policies.example import situation
    >>> proposal, _ = Multilevel().decide(situation(load=2_500, parallelism=(1, 1, 1), nodes=2), {})
    >>> proposal.target.parallelism["split"], proposal.placement.keep
    (2, True)
    """

    period_seconds: float = 30.0
    minHealth: float = 0.9  # noqa: N815 - the paper's name
    overloaded: float = 0.9  # a node's CPU or memory above this takes no more instances
    observations: int = 3  # samples in a trend, when monitoring is more frequent than once a minute
    delta_load: float = 0.0  # rows/s between levels; 0: a quarter of what one bottleneck instance serves
    containers: str = "slot+node"  # the order in which to provision; "node": machines only
    platform: str = ""  # a file of `rheostat bench platform`, which says that order
    map: str = ""
    schedule: str = ""
    lead_seconds: float = 120.0
    band: float = 0.25  # part by which the load may differ from the schedule

    info = Info("multilevel", "all, cheapest container first", "reactive or proactive", "P0 Multi-level")

    def __post_init__(self) -> None:
        if self._order not in ORDERS:
            raise ValueError(f"containers must be {' or '.join(map(repr, ORDERS))}")
        if not 0 < self.minHealth <= 1 or self.observations < 3 or self.delta_load < 0:
            raise ValueError("minHealth must be in (0, 1], observations at least 3, delta_load not negative")
        if self.band < 0 or self.lead_seconds < 0 or not 0 < self.overloaded <= 1:
            raise ValueError("overloaded must be in (0, 1], band and lead_seconds not negative")
        _ = (
            self._levels,
            self._schedule,
        )  # read once, and now: a mistake in them is the user's, not the loop's

    @cached_property
    def _levels(self) -> tuple[Level, ...]:
        return load_map(Path(self.map)) if self.map else ()

    @cached_property
    def _schedule(self) -> Schedule | None:
        return Schedule.parse(self.schedule) if self.schedule else None

    @cached_property
    def _order(self) -> str:
        return (load_containers(Path(self.platform)) if self.platform else self.containers).strip()

    @property
    def _nodes_only(self) -> bool:
        return self._order == "node"

    def initial(self, start: Start) -> Configuration:
        """One instance of each operator on as few machines as take them (section 5.2)."""
        few = start.sized_for(0.0)
        nodes = start.bounds.nodes(1) if start.model.oversubscribes else few.nodes
        return Configuration(few.parallelism, nodes * start.kind.executors, nodes)

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        if stranger := unknown_operator(self._levels, situation):
            return hold(situation, f"hold: the map names {stranger!r}, which is not an operator here"), memory
        history = [*memory.get("loads", []), [situation.now, situation.load]][-self.observations :]
        costs = BatchCosts(situation.topology, memory.get("seen", []))
        costs.learn(situation.observation, situation.evaluation)
        step = self._step(situation, memory)
        outlook = trend(situation, history, self.observations)
        if self._schedule:
            outlook = ahead(situation, self._schedule, outlook, self.lead_seconds, self.band)
        proposal = self._respond(situation, outlook, costs, step)
        memory = {"loads": history, "seen": costs.state, "step": step}
        return replace(proposal, alert=outlook.alert), memory

    def _respond(self, situation: Situation, outlook: Outlook, costs: BatchCosts, step: float) -> Proposal:
        """Reach the level of the load; where that does not help, heal the bottleneck (Algorithm 1)."""
        running, windows = situation.observation.application.stale, costs.windows
        if running and windows < self.observations and not self._levels:
            unsure = (
                f"hold: a batch is running, and fewer than {self.observations} windows show what a row costs"
            )
            return hold(situation, unsure)
        level = bounded(self._level(situation, outlook.load, costs, step), situation)
        slow, current = congested(situation, self.minHealth), situation.configuration
        if slow and not any_more(level.parallelism, current.parallelism):
            return scale_out(situation, slow, self.minHealth, self.overloaded, nodes_only=self._nodes_only)
        quiet = f"{outlook.word} {outlook.load:,.0f} is within the present level"
        cold = windows < REMEMBERED and not self._levels  # the first windows cost more than the newest
        if cold and not slow and suffices_without(level, situation, self.minHealth):
            return hold(situation, f"{quiet}, by what the newest window cost")
        if (outlook.may_rise or slow) and not outlook.expected:
            level = no_smaller(level, current)
            asks = f"{outlook.word} {outlook.load:,.0f} asks for no more"
            quiet = f"{asks}; nothing shrinks while it may rise or is not served"
        if dict(current.parallelism) == dict(level.parallelism) and current.nodes == level.nodes:
            return hold(situation, quiet)
        return self._reach(situation, level, outlook)

    def _level(self, situation: Situation, load: float, costs: BatchCosts, step: float) -> Level:
        """The level of the map, or what the benchmark procedure would reach at the costs learned."""
        if self._levels:
            return from_map(self._levels, load)
        if not costs.windows:
            return Level(load, situation.configuration.parallelism, situation.configuration.nodes)
        upper = step * max(1, ceil(min(load / step - NOISE, 1e6)))
        per_row = {name: slots / upper for name, slots in costs.busy(situation.rates_at(upper)).items()}
        return derive_level(
            upper,
            per_row,
            situation.model,
            situation.kind,
            target=self.minHealth,
            node_limit=self.overloaded,
            nodes_only=self._nodes_only,
            cores_per_row=situation.evaluation.cores_of(per_row),
        )

    def _step(self, situation: Situation, memory: Memory) -> float:
        """The distance between levels; 0 until there was any load."""
        if self.delta_load or memory.get("step") or not situation.load:
            return float(self.delta_load or memory.get("step") or 0.0)
        bottleneck = max(situation.evaluation.busy.values()) / situation.load  # slots per row/s
        return 0.25 / max(bottleneck, 1e-12)

    @staticmethod
    def _reach(situation: Situation, level: Level, outlook: Outlook) -> Proposal:
        relation: Relation = "<=" if outlook.load <= level.load else ">"
        cause = Cause(outlook.word, situation.topology.name, outlook.load, relation, level.load)
        belongs = "belongs to" if outlook.load <= level.load * (1 + NOISE) else "is above"
        reason = f"{outlook.word} {outlook.load:,.0f} rows/s {belongs} the level up to {level.load:,.0f}"
        # More nodes and no new instances to put there: only then do running instances move.
        current = situation.configuration
        moves = level.nodes > current.nodes and not any_more(level.parallelism, current.parallelism)
        placement = Placement(keep=not moves)
        return wish(
            situation, level.parallelism, reason, nodes=level.nodes, causes=(cause,), placement=placement
        )
