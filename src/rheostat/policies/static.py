"""The peers that never change: as small or as large as the load ever needs."""

from dataclasses import dataclass

from rheostat.model.configuration import Configuration
from rheostat.model.decision import Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, Start, hold

MOST_INSTANCES = 10_000


@dataclass(frozen=True)
class Static(Policy):
    """Never changes anything: the baseline that every paper compares with.

    >>> from rheostat.policies.example import situation
    >>> proposal, _ = Static().decide(situation(load=5_000), {})
    >>> proposal.reason
    'static: the configuration is fixed'
    """

    provision: str = "peak"  # or "first", "min" (one instance each), "slots" (all of them, shared evenly)
    instances: int = 0  # of every operator, on as few nodes as the bounds allow; 0: as provisioned

    info = Info("static", "none", "static", "baseline of every paper")

    def __post_init__(self) -> None:
        if self.provision not in ("peak", "first", "min", "slots"):
            raise ValueError("provision must be peak, first, min or slots")
        if not 0 <= self.instances <= MOST_INSTANCES:
            raise ValueError(f"instances must be from 0 to {MOST_INSTANCES}")

    def initial(self, start: Start) -> Configuration:
        if self.instances:
            wanted = dict.fromkeys(start.topology.names, self.instances)
            nodes = start.bounds.nodes(1)
            parallelism = start.bounds.parallelism(start.topology, wanted)
            return Configuration(parallelism, nodes * start.kind.executors, nodes)
        if self.provision == "slots":
            return _full(start)
        load = {"peak": start.peak_load, "first": start.first_load, "min": 0.0}[self.provision]
        return start.sized_for(load)

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        return hold(situation, "static: the configuration is fixed"), memory


def _full(start: Start) -> Configuration:
    """The most nodes with an instance in every slot: one more for whoever has fewest, while there is room."""
    nodes, model = start.bounds.max_nodes, start.model
    slots = nodes * start.kind.slots
    parallelism = start.bounds.parallelism(start.topology, dict.fromkeys(start.topology.names, 1))
    growing = set(parallelism)
    while growing:
        name = min(sorted(growing), key=parallelism.__getitem__)
        more = {**parallelism, name: parallelism[name] + 1}
        if model.slots_for(more) > slots or start.bounds.parallelism(start.topology, more) != more:
            growing.discard(name)
        else:
            parallelism = more
    return Configuration(parallelism, nodes * start.kind.executors, nodes)
