"""What one turn of E2DF has granted so far (P1): every manager sees what the others were given."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from rheostat.model.decision import Cause
from rheostat.model.observation import NodeMeasures
from rheostat.policies.base import Situation


@dataclass
class Grants:
    """What the AM and the IM have granted so far; it is gone when the turn ends."""

    nodes: dict[str, NodeMeasures]
    assigned: dict[str, int]  # A_n
    parallelism: dict[str, int]
    placed: bool  # whether it is known where the replicas are
    taken: Counter[str] = field(default_factory=Counter)
    put: list[tuple[str, str]] = field(default_factory=list)
    take: list[tuple[str, str]] = field(default_factory=list)
    add: list[tuple[str, str]] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    tokens: float | None = None

    _least: dict[frozenset[str], list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, situation: Situation) -> "Grants":
        nodes = {node.name: node for node in situation.observation.nodes}
        assigned = {name: node.assigned for name, node in nodes.items()}
        parallelism = dict(situation.configuration.parallelism)
        placed = all(node.instances is not None for node in nodes.values())
        if situation.model.takes_turns:  # no fixed place: the slots in use are on the oldest nodes
            placed = True
            left = situation.model.slots_for(parallelism)
            for name, node in nodes.items():
                assigned[name] = min(left, node.slots)
                left -= assigned[name]
        return cls(nodes, assigned, parallelism, placed)

    @cached_property
    def slots(self) -> int:
        return sum(node.slots for node in self.nodes.values())

    def least_used(self, regions: frozenset[str]) -> list[str]:
        """The equally least used nodes with a free slot in these regions (in all of them, if none is known).

        Every OM asks before anything is granted, so one answer serves all operators of a region.
        """
        if regions not in self._least:
            free = [
                node
                for node in self.nodes.values()
                if self.free(node) > 0 and (not regions or node.region in regions)
            ]
            least = min((node.cpu or 0.0 for node in free), default=0.0)
            self._least[regions] = [node.name for node in free if (node.cpu or 0.0) <= least]
        return self._least[regions]

    def occupied(self, node: NodeMeasures) -> bool:
        """Whether it hosts replicas after what was granted this turn."""
        return self.assigned[node.name] + self.taken[node.name] > 0

    def free(self, node: NodeMeasures) -> int:
        """C_n - A_n, what was granted this turn included; nothing on a hidden node."""
        return 0 if node.hidden else node.slots - self.assigned[node.name] - self.taken[node.name]

    def pay(self) -> bool:
        if self.tokens is None:
            return True
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def say(self, words: str, cause: Cause) -> None:
        self.words.append(words)
        self.causes.append(cause)
