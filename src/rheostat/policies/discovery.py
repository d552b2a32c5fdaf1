from collections.abc import Mapping
from dataclasses import dataclass, field

from rheostat.model.configuration import Configuration
from rheostat.model.decision import Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, Start, hold
from rheostat.policies.bottleneck import congested, scale_out


@dataclass(frozen=True)
class Discovery(Policy):
    """What the benchmark procedure does at each load level (P0, Algorithms 1 and 2); it never shrinks.

    `rheostat bench app` runs it while the load rises, and keeps the configurations that it reaches; it is no
    policy for production, so it is not in the list.

    >>> from rheostat.policies.example import situation
    >>> proposal, _ = Discovery().decide(situation(load=2_500, parallelism=(1, 1, 1), nodes=2), {})
    >>> proposal.target.parallelism["split"], proposal.reason.partition(":")[0]
    (2, 'heal split')
    """

    period_seconds: float = 30.0
    minHealth: float = 0.9  # noqa: N815 - the paper's name
    overloaded: float = 0.9
    nodes_only: bool = False
    parallelism: Mapping[str, int] = field(default_factory=dict)  # to begin with; none: one instance each
    nodes: int = 1  # to begin with

    info = Info("discovery", "all, cheapest container first", "reactive", "P0 Multi-level, section 3.1")

    def initial(self, start: Start) -> Configuration:
        few = start.sized_for(0.0)
        nodes = start.bounds.nodes(max(self.nodes, 1 if start.model.oversubscribes else few.nodes))
        stated = {name: count for name, count in self.parallelism.items() if name in few.parallelism}
        parallelism = start.bounds.parallelism(start.topology, {**few.parallelism, **stated})
        return Configuration(parallelism, nodes * start.kind.executors, nodes)

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        slow = congested(situation, self.minHealth)
        if slow is None:
            return hold(situation, f"every operator's health is at least {self.minHealth:g}"), memory
        return scale_out(situation, slow, self.minHealth, self.overloaded, nodes_only=self.nodes_only), memory
