from dataclasses import dataclass

from rheostat.model.decision import Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, hold


@dataclass(frozen=True)
class Static(Policy):
    """Never changes anything: the baseline that every paper compares with.

    >>> from rheostat.policies.example import situation
    >>> proposal, _ = Static().decide(situation(load=5_000), {})
    >>> proposal.reason
    'static: the configuration is fixed'
    """

    info = Info("static", "none", "static", "baseline of every paper")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        return hold(situation, "static: the configuration is fixed"), memory
