"""Which load level an application should be at: from a map, or derived from what rows cost (P0, 3.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rheostat.analyze.levels import Level
from rheostat.model.configuration import Configuration
from rheostat.policies.base import Situation


def unknown_operator(levels: Sequence[Level], situation: Situation) -> str | None:
    """A name in a map that the topology does not have: the map was made for another application."""
    names = set(situation.topology.names)
    return next((name for level in levels for name in level.parallelism if name not in names), None)


def from_map(levels: Sequence[Level], load: float) -> Level:
    """The lowest level that serves a load, or the highest of all."""
    return next((level for level in levels if load <= level.load), levels[-1])


def bounded(level: Level, situation: Situation) -> Level:
    """The level within the bounds; nodes beyond one per instance would stay empty."""
    wanted = {**situation.configuration.parallelism, **level.parallelism}
    parallelism = situation.bounds.parallelism(situation.topology, wanted)
    nodes = min(level.nodes, situation.model.slots_for(parallelism))
    return Level(level.load, parallelism, situation.bounds.nodes(nodes))


def no_smaller(level: Level, current: Configuration) -> Level:
    """The level, but with nothing less than there is."""
    parallelism = {name: max(count, current.parallelism[name]) for name, count in level.parallelism.items()}
    return replace(level, parallelism=parallelism, nodes=max(level.nodes, current.nodes))


def grows(level: Level, current: Configuration) -> bool:
    """Whether the level has more of anything."""
    return level.nodes > current.nodes or any_more(level.parallelism, current.parallelism)


def any_more(wanted: Mapping[str, int], current: Mapping[str, int]) -> bool:
    """Whether any operator gets more instances."""
    return any(count > current[name] for name, count in wanted.items())


def suffices_without(level: Level, situation: Situation, target: float) -> bool:
    """Whether the present size serves a larger level's load, by what the newest window cost.

    All that it cost counts as the rows', so this expects no less of a higher load than a line does.
    """
    current = situation.configuration
    if not situation.load or not grows(level, current):
        return False
    times = level.load / situation.load
    busy = {name: slots * times for name, slots in situation.evaluation.busy.items()}
    slots = situation.slots_on(current.nodes)
    return max(situation.model.utilisation(busy, current.parallelism, slots).values()) <= target
