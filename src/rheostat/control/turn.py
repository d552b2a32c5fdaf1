"""The record of one turn of the loop: a decision and its outcome."""

from dataclasses import dataclass

from rheostat.analyze.evaluation import Evaluation
from rheostat.model.decision import Outcome, Plan
from rheostat.model.observation import Observation
from rheostat.policies.base import Memory


@dataclass(frozen=True, slots=True)
class Decision:
    """From measures to plan: everything that is known before the plan is applied."""

    number: int
    observation: Observation
    evaluation: Evaluation
    plan: Plan
    memory: Memory

    def with_outcome(self, outcome: Outcome) -> "Turn":
        """Return the complete turn."""
        return Turn(self.number, self.observation, self.evaluation, self.plan, self.memory, outcome)


@dataclass(frozen=True, slots=True)
class Turn(Decision):
    """One turn of the loop, from measures to outcome."""

    outcome: Outcome
