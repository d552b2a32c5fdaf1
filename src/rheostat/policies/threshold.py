"""The simplest peer: one instance more or less by a threshold."""

from dataclasses import dataclass

from rheostat.model.decision import Cause, Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, hold, wish


@dataclass(frozen=True)
class Threshold(Policy):
    """One instance more above a utilisation, one less below another: what most people write first.

    >>> from rheostat.policies.example import situation
    >>> proposal, _ = Threshold().decide(situation(load=1_900), {})
    >>> dict(proposal.target.parallelism)
    {'lines': 1, 'split': 2, 'count': 1}
    """

    period_seconds: float = 30.0
    high: float = 0.8
    low: float = 0.3

    info = Info("threshold", "operators, then the nodes they need", "reactive", "common practice")

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high:
            raise ValueError("low must be at least 0 and below high")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        wanted = dict(situation.configuration.parallelism)
        causes = [cause] if (cause := situation.short_of_cpu) else []
        for name, operator in situation.evaluation.operators.items():
            limits, used = situation.topology.operator(name), operator.utilisation * situation.catch_up
            if used > self.high and wanted[name] < limits.max_parallelism:
                wanted[name] += situation.model.step
                causes.append(Cause("utilisation", name, used, ">", self.high))
            elif used < self.low and wanted[name] > limits.min_parallelism:
                wanted[name] -= situation.model.step
                causes.append(Cause("utilisation", name, used, "<", self.low))
        if not causes:
            inside = f"every operator is between {self.low:.0%} and {self.high:.0%}, or at its limit"
            return hold(situation, inside), memory
        reason = "one step: " + "; ".join(str(cause) for cause in causes[:4])
        return wish(situation, wanted, reason, causes=tuple(causes)), memory
