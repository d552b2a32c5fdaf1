from dataclasses import dataclass

from rheostat.model.configuration import Configuration
from rheostat.model.decision import Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, Start, hold


@dataclass(frozen=True)
class Static(Policy):
    """Never changes anything: the baseline that every paper compares with.

    >>> from rheostat.policies.example import situation
    >>> proposal, _ = Static().decide(situation(load=5_000), {})
    >>> proposal.reason
    'static: the configuration is fixed'
    """

    provision: str = "peak"  # or "first", or "min": one instance each

    info = Info("static", "none", "static", "baseline of every paper")

    def __post_init__(self) -> None:
        if self.provision not in ("peak", "first", "min"):
            raise ValueError("provision must be peak, first or min")

    def initial(self, start: Start) -> Configuration:
        load = {"peak": start.peak_load, "first": start.first_load, "min": 0.0}[self.provision]
        return start.sized_for(load)

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        return hold(situation, "static: the configuration is fixed"), memory
