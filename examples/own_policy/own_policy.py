"""A policy of one's own in one file: follow the load in proportion, with some headroom."""

from dataclasses import dataclass

from rheostat.model.decision import Cause, Proposal, Relation
from rheostat.policies import Info, Memory, Policy, Situation, hold, wish


@dataclass(frozen=True)
class Proportional(Policy):
    """Keep the busiest operator at the target utilisation.

    >>> from rheostat.policies.example import situation
    >>> proposal, _ = Proportional().decide(situation(load=1_800), {})
    >>> dict(proposal.target.parallelism)
    {'lines': 1, 'split': 2, 'count': 2}
    """

    target: float = 0.6
    tolerance: float = 0.15

    info = Info("proportional", "operators, then the nodes they need", "reactive", "examples/own_policy")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        name, busiest = max(situation.evaluation.operators.items(), key=lambda item: item[1].utilisation)
        if abs(busiest.utilisation - self.target) <= self.tolerance:
            return hold(situation, f"{name} is close to {self.target:.0%} busy"), memory
        relation: Relation = ">" if busiest.utilisation > self.target else "<"
        cause = Cause("utilisation", name, busiest.utilisation, relation, self.target)
        wanted = situation.model.parallelism_for(situation.evaluation.busy, self.target)
        return wish(situation, wanted, f"bring {name} to {self.target:.0%}: {cause}", causes=(cause,)), memory
