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

    provision: str = "peak"  # or "first", or "min": one instance each
    instances: int = 0  # of every operator, on as few nodes as the bounds allow; 0: as provisioned

    info = Info("static", "none", "static", "baseline of every paper")

    def __post_init__(self) -> None:
        if self.provision not in ("peak", "first", "min"):
            raise ValueError("provision must be peak, first or min")
        if not 0 <= self.instances <= MOST_INSTANCES:
            raise ValueError(f"instances must be from 0 to {MOST_INSTANCES}")

    def initial(self, start: Start) -> Configuration:
        if self.instances:
            wanted = dict.fromkeys(start.topology.names, self.instances)
            nodes = start.bounds.nodes(1)
            parallelism = start.bounds.parallelism(start.topology, wanted)
            return Configuration(parallelism, nodes * start.kinds[0].executors, nodes)
        load = {"peak": start.peak_load, "first": start.first_load, "min": 0.0}[self.provision]
        return start.sized_for(load)

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        return hold(situation, "static: the configuration is fixed"), memory
