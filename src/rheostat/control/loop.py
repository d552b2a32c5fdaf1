"""The control loop: one turn observes, evaluates, decides, guards, applies and records."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rheostat.analyze.evaluation import Evaluation, evaluate
from rheostat.control.guards import Guards
from rheostat.control.ports import Clock, Engine
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Outcome, Plan, Status
from rheostat.model.errors import UserError
from rheostat.model.observation import Observation
from rheostat.policies.base import Memory, Policy, Situation


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the loop, from measures to outcome."""

    number: int
    observation: Observation
    evaluation: Evaluation
    plan: Plan
    outcome: Outcome
    memory: Memory


@dataclass
class Loop:
    """Keeps an engine as large as a policy and the guards want it."""

    engine: Engine
    clock: Clock
    policy: Policy
    bounds: Bounds = Bounds()
    guards: Guards = field(default_factory=Guards)
    seed: int = 0
    memory: Mapping[str, Any] = field(default_factory=dict)
    changed_at: tuple[float, ...] = ()
    turns: int = 0

    def run(self, until: float) -> Iterator[Turn]:
        """Turn once per period until the clock reaches a time."""
        while (before := self.clock.now()) < until:
            self.clock.sleep(min(self.policy.period_seconds, until - before))
            if (now := self.clock.now()) <= before:  # it would never end
                raise UserError(f"a period of {self.policy.period_seconds:g} s is too short for this clock")
            if now < until:
                yield self.turn()

    def turn(self) -> Turn:
        """Do one turn; the clock is read once."""
        now = self.clock.now()
        observation = self.engine.observe()
        evaluation = evaluate(self.engine.topology, observation, self.engine.model, self.engine.kinds[0])
        situation = Situation(
            now=now,
            topology=self.engine.topology,
            configuration=self.engine.configuration,
            observation=observation,
            evaluation=evaluation,
            model=self.engine.model,
            kinds=self.engine.kinds,
            bounds=self.bounds,
            seed=self.seed,
        )
        proposal, self.memory = self.policy.decide(situation, self.memory)
        plan = self.guards.check(proposal, situation, self.changed_at)
        outcome = self.engine.apply(plan)
        if outcome.status is not Status.UNCHANGED:
            self.changed_at += (outcome.started_at,)
        self.turns += 1
        return Turn(self.turns, observation, evaluation, plan, outcome, self.memory)
