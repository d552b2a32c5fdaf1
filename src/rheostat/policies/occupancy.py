"""The share of the trigger interval that batches take, as proposed for Spark (SPARK-24815)."""

from dataclasses import dataclass

from rheostat.analyze.execution import ceil
from rheostat.model.decision import Cause, Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, hold, wish


@dataclass(frozen=True)
class Occupancy(Policy):
    """Scale the whole application by the part of the trigger interval that its batches take.

    Amadeus built this for Spark, and SPARK-24815 proposes it for Spark itself. Where there are no batches
    the busiest operator's utilisation stands in for the occupancy.

    >>> from rheostat.analyze.execution import Staged
    >>> from rheostat.policies.example import situation
    >>> busy = situation(load=3_000, parallelism=(2, 2, 2), nodes=1, model=Staged())
    >>> proposal, _ = Occupancy().decide(busy, {})
    >>> proposal.target.nodes, proposal.reason
    (2, 'occupancy 1.53 is outside [0.75, 1.0]: 2 slots x 1.53 -> 4')
    """

    period_seconds: float = 30.0
    alpha: float = 0.5  # weight of the newest window
    low: float = 0.75
    high: float = 1.0

    info = Info("occupancy", "executors and nodes", "reactive", "Amadeus; SPARK-24815")

    def __post_init__(self) -> None:
        if not (0 < self.alpha <= 1 and 0 <= self.low < self.high):
            raise ValueError("alpha must be in (0, 1] and low below high")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        now = self._occupancy(situation)
        mean = memory.get("occupancy")
        occupancy = now if mean is None else self.alpha * now + (1 - self.alpha) * mean
        if self.low <= occupancy <= self.high:
            inside = f"occupancy {occupancy:.2f} is within [{self.low}, {self.high}]"
            return hold(situation, inside), {"occupancy": occupancy}
        slots = sum(node.slots for node in situation.observation.nodes)
        wanted = self._scaled(situation, occupancy, slots)
        before = min(slots, situation.model.slots_for(situation.configuration.parallelism))
        if occupancy > self.high:
            cause = Cause("occupancy", situation.topology.name, occupancy, ">", self.high)
        else:
            cause = Cause("occupancy", situation.topology.name, occupancy, "<", self.low)
        outside = f"occupancy {occupancy:.2f} is outside [{self.low}, {self.high}]"
        reason = f"{outside}: {before} slots x {occupancy:.2f} -> {situation.model.slots_for(wanted)}"
        proposal = wish(situation, wanted, reason, causes=(cause,))
        # The average starts anew after a change: it spoke of another size.
        changes = proposal.changes(situation.configuration)
        return proposal, {"occupancy": None if changes else occupancy}

    def _scaled(self, situation: Situation, occupancy: float, slots: int) -> dict[str, int]:
        """Every operator's parallelism times the occupancy; instances beyond the slots did no work."""
        wanted = {}
        for name, count in situation.configuration.parallelism.items():
            scaled = situation.model.whole_steps(max(1, ceil(min(count, slots) * occupancy)))
            wanted[name] = max(count, scaled) if occupancy > self.high else scaled
        return wanted

    def _occupancy(self, situation: Situation) -> float:
        application = situation.observation.application
        batches = situation.model.takes_turns  # in Real-Time Mode a batch is a span of time, never shorter
        if batches and application.batch_seconds is not None and application.trigger_seconds:
            return application.batch_seconds / application.trigger_seconds
        busiest = max(operator.utilisation for operator in situation.evaluation.operators.values())
        return max(busiest, situation.evaluation.cpu) * situation.catch_up
