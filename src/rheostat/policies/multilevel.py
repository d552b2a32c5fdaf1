from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from rheostat.analyze.execution import ceil
from rheostat.analyze.levels import Level, derive_level, load_containers, load_map
from rheostat.analyze.schedule import Schedule
from rheostat.analyze.trend import fit
from rheostat.model.configuration import Configuration
from rheostat.model.decision import Cause, Placement, Proposal, Relation
from rheostat.policies.base import Info, Memory, Policy, Situation, Start, hold, wish
from rheostat.workloads import parse_curve

ORDERS = ("slot+node", "node")
REMEMBERED = 10  # windows, of all loads, from which a cost is learned: it changes, not only at the start
TOLD_APART = 0.2  # two loads that differ by less than this part of the usual one are the same
NOISE = 0.02  # differences of this part of a load or level mean nothing


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
        return Schedule(parse_curve(self.schedule)) if self.schedule else None

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
        return Configuration(few.parallelism, nodes * start.kinds[0].executors, nodes)

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        stranger = self._stranger(situation)
        if stranger:
            return hold(situation, f"hold: the map names {stranger!r}, which is no operator here"), memory
        history = [*memory.get("loads", []), [situation.now, situation.load]][-self.observations :]
        learned = self._learn(situation, memory)
        load, rising = self._trend(situation, history)
        alert, word = None, "load"
        if self._schedule:
            load, alert, word = self._expected(situation, self._schedule, load)
        memory = {"loads": history, **learned}
        stale, few = situation.observation.application.stale, len(learned["seen"]) < self.observations
        if stale and few and not self._levels:
            told = f"hold: a batch runs, and fewer than {self.observations} have told what a row costs"
            return replace(hold(situation, told), alert=alert), memory
        level = self._level(situation, load, learned)

        slow = congested(situation, self.minHealth)
        current = situation.configuration.parallelism
        if slow and all(level.parallelism[name] <= current[name] for name in current):
            return scale_out(
                situation, slow, self.minHealth, self.overloaded, nodes_only=self._nodes_only, alert=alert
            ), memory
        quiet = f"{word} {load:,.0f} is within the present level"
        young = len(learned["seen"]) < REMEMBERED and not self._levels
        if young and not slow and self._suffices(situation, level):
            return replace(hold(situation, f"{quiet}, by what the newest window cost"), alert=alert), memory
        if (rising or slow) and word == "load":
            level = _no_smaller(level, situation.configuration)
            quiet = f"{word} {load:,.0f} asks for no more; nothing shrinks while it may rise or is not served"
        if dict(current) == dict(level.parallelism) and situation.configuration.nodes == level.nodes:
            return replace(hold(situation, quiet), alert=alert), memory
        relation: Relation = "<=" if load <= level.load else ">"
        cause = Cause(word, situation.topology.name, load, relation, level.load)
        belongs = "belongs to" if load <= level.load * (1 + NOISE) else "is above"
        reason = f"{word} {load:,.0f} rows/s {belongs} the level up to {level.load:,.0f}"
        # More nodes and no new instances to put there: only then do running instances move.
        moves = level.nodes > situation.configuration.nodes and all(
            count <= current[name] for name, count in level.parallelism.items()
        )
        place = Placement(keep=not moves)
        return wish(
            situation,
            level.parallelism,
            reason,
            nodes=level.nodes,
            causes=(cause,),
            placement=place,
            alert=alert,
        ), memory

    def _trend(self, situation: Situation, history: list[list[float]]) -> tuple[float, bool]:
        """Frequent samples vary too much to act on one: the fitted line's value now, and whether it rises."""
        if situation.observation.seconds >= 60:
            return situation.load, False
        if len(history) < self.observations:
            return situation.load, True  # too few to know, so nothing shrinks yet
        line = fit([time for time, _ in history], [load for _, load in history])
        lowest, highest = min(load for _, load in history), max(load for _, load in history)
        rising = line.slope > 0 and highest - lowest > NOISE * situation.load
        # After a jump the line overshoots what was ever seen.
        return min(highest, max(lowest, line.at(situation.now))), rising

    def _expected(
        self, situation: Situation, schedule: Schedule, load: float
    ) -> tuple[float, str | None, str]:
        """The schedule's highest load from now until the lead time, while the window's was as expected."""
        seen, local = situation.observation, situation.local_start
        # A source that counts nothing itself shows its load by batches, the first of which began earlier.
        before = (seen.application.trigger_seconds or 0.0) + (seen.application.batch_seconds or 0.0)
        then = schedule.between(seen.start - before, seen.end, local)[:-1]
        low, high = float(then.min()), float(then.max())
        if not low * (1 - self.band) <= situation.load <= high * (1 + self.band):
            around = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
            left = f"load {situation.load:,.0f} rows/s left the expected band around {around}"
            return load, left, "load"
        ahead = schedule.between(situation.now, situation.now + self.lead_seconds, local)
        return max(load, float(ahead.max())), None, "expected load"

    def _learn(self, situation: Situation, memory: Memory) -> dict[str, Any]:
        """The latest windows, from which `_busy` draws a line, and the distance of levels."""
        busy, step = situation.evaluation.busy, memory.get("step")
        # A resumed run may have had other operators.
        windows = [seen for seen in memory.get("seen", []) if seen[1].keys() == busy.keys()]
        known = bool(windows) and situation.observation.application.stale  # that batch was learned from
        if situation.load > 0 and not known:
            at = _served_at(situation)
            cost = {name: slots * at / situation.load for name, slots in busy.items()}
            windows = _latest([*windows, [at, cost]])
            most = max(busy.values()) / situation.load
            step = self.delta_load or step or 0.25 / max(most, 1e-12)
        return {"seen": windows, "step": step}

    def _level(self, situation: Situation, load: float, learned: dict[str, Any]) -> Level:
        current = situation.configuration
        if self._levels:
            found = next((level for level in self._levels if load <= level.load), self._levels[-1])
        elif not learned["seen"]:
            found = Level(load, current.parallelism, current.nodes)
        else:
            upper = learned["step"] * max(1, ceil(min(load / learned["step"] - NOISE, 1e6)))
            found = derive_level(
                upper,
                {name: slots / upper for name, slots in _busy(upper, learned["seen"]).items()},
                situation.model,
                situation.kind,
                target=self.minHealth,
                node_limit=self.overloaded,
                nodes_only=self._nodes_only,
            )
        wanted = situation.bounds.parallelism(
            situation.topology, {**current.parallelism, **found.parallelism}
        )
        # Where an operator's own limit caps it, nodes beyond one per instance would stay empty.
        nodes = min(found.nodes, situation.model.slots_for(wanted))
        return Level(found.load, wanted, situation.bounds.nodes(nodes))

    def _suffices(self, situation: Situation, level: Level) -> bool:
        """Whether a larger level is not needed: the first windows cost more than the newest.

        All that it cost counts as the rows', so this expects no less of a higher load than a line does.
        """
        current = situation.configuration
        grows = any(level.parallelism[name] > count for name, count in current.parallelism.items())
        if not situation.load or not (grows or level.nodes > current.nodes):
            return False
        times = level.load / situation.load
        busy = {name: slots * times for name, slots in situation.evaluation.busy.items()}
        slots = current.nodes * situation.kind.slots
        used = situation.model.utilisation(busy, current.parallelism, slots)
        return max(used.values()) <= self.minHealth

    def _stranger(self, situation: Situation) -> str | None:
        """A name in the map that the topology does not have: it was made for another application."""
        known = set(situation.topology.names)
        return next((name for level in self._levels for name in level.parallelism if name not in known), None)


def _served_at(situation: Situation) -> float:
    """The load of which one batch per trigger is as large as this window's were.

    A batch that took too long leaves a small one behind it, on whose rows weighs more what a batch costs
    anyway: taken for what they cost at the present load, it would double the nodes.
    """
    return situation.evaluation.load


def _latest(windows: list[Any]) -> list[Any]:
    """All but the oldest at the load that was seen most often: a quiet night does not forget the day.

    >>> [load for load, _ in _latest([[100.0, {}]] * 9 + [[300.0, {}], [310.0, {}]])].count(100.0)
    8
    """
    if len(windows) <= REMEMBERED:
        return windows
    alike = [round(log(load, 1 + TOLD_APART)) for load, _ in windows]
    often = max(alike, key=alike.count)
    oldest = alike.index(often)
    return [*windows[:oldest], *windows[oldest + 1 :]]


def _busy(load: float, windows: list[Any]) -> dict[str, float]:
    """Slots that operators keep busy at a load: a part that every batch takes, and one for each row.

    Medians, because windows in which JVMs were cold cost several times as much. Loads that hardly differed
    do not tell the two parts apart; then all of it is for the rows. What did not grow with the load is for
    the batch.

    >>> _busy(400, [[100, {"a": 2.0, "b": 1.1}], [300, {"a": 4.0, "b": 1.0}]])
    {'a': 5.0, 'b': 1.05}
    >>> _busy(400, [[100, {"a": 9.0}], [100, {"a": 2.0}], [102, {"a": 2.04}]])
    {'a': 8.0}
    """
    names = list(windows[-1][1])
    at = np.array([[seen] for seen, _ in windows])
    slots = np.array([[busy[name] for name in names] for _, busy in windows])
    found = np.median(slots / at, axis=0) * load
    one, other = np.triu_indices(len(windows), 1)
    apart = np.flatnonzero(np.abs(at[other] - at[one]) > TOLD_APART * np.median(at))
    if len(apart):
        one, other = one[apart], other[apart]
        slope = np.maximum(0.0, np.median((slots[other] - slots[one]) / (at[other] - at[one]), axis=0))
        base = np.median(slots - slope * at, axis=0)
        found = np.where(base >= 0, base + slope * load, found)
    return dict(zip(names, found.tolist(), strict=True))


def congested(situation: Situation, least_health: float) -> str | None:
    """The congested operator nearest to the sources (Algorithm 1, line 8) that may still grow."""
    names = sorted(situation.topology.names, key=situation.topology.depth.__getitem__)
    judged, current = situation.evaluation.operators, situation.configuration.parallelism
    for name in names:
        may_grow = current[name] < situation.topology.operator(name).max_parallelism
        if may_grow and judged[name].health < least_health:
            return name
    return None


def scale_out(
    situation: Situation,
    name: str,
    least_health: float,
    overloaded: float,
    *,
    nodes_only: bool = False,
    alert: str | None = None,
) -> Proposal:
    """Algorithm 2 on a congested operator: a slot where a node has some left, else a node."""
    current, kind = situation.configuration, situation.kind
    cause = Cause("health", name, situation.evaluation.operators[name].health, "<", least_health)
    wanted = {**current.parallelism, name: current.parallelism[name] + 1}
    full = all(
        (node.cpu or 0.0) > overloaded or (node.memory or 0.0) > overloaded
        for node in situation.observation.nodes
    )
    slots = sum(node.slots for node in situation.observation.nodes)
    hard = not situation.model.oversubscribes and situation.model.slots_for(wanted) > slots
    nodes = current.nodes + (1 if full or hard or nodes_only else 0)
    if situation.model.takes_turns:  # the slots are everybody's: all operators take what there is
        unused = any(
            count < min(slots, operator.max_parallelism) and not operator.stateful
            for operator in situation.topology.operators
            for count in [current.parallelism[operator.name]]
            if situation.topology.inputs[operator.name]
        )
        nodes = current.nodes + (0 if unused and not nodes_only else 1)
        wanted = situation.model.filling(current.parallelism, nodes * kind.slots)
        # Where the operators' own limits cap them, more nodes would stay empty.
        most = situation.model.slots_for(situation.bounds.parallelism(situation.topology, wanted))
        nodes = max(current.nodes, min(nodes, ceil(most / kind.slots)))
    return wish(
        situation,
        wanted,
        f"heal {name}: {cause}",
        nodes=nodes,
        causes=(cause,),
        placement=Placement(keep=True),
        alert=alert,
    )


def _no_smaller(level: Level, current: Configuration) -> Level:
    """The level, but with nothing less than there is."""
    parallelism = {name: max(count, current.parallelism[name]) for name, count in level.parallelism.items()}
    return replace(level, parallelism=parallelism, nodes=max(level.nodes, current.nodes))
