from dataclasses import dataclass
from typing import Literal

from rheostat.analyze.execution import ceil
from rheostat.analyze.trend import fit
from rheostat.model.decision import Cause, Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, hold, wish

Action = Literal["in", "nothing", "out"]
_ORDER: dict[str, int] = {"nothing": 0, "in": 1, "out": 2}  # which upstream action prevails (section 4.2)


@dataclass(frozen=True)
class Autoscale(Policy):
    """AUTOSCALE prevents congestion: it acts on the activity expected in the next window (P3).

    Activity = (expected arrivals + waiting rows) / capacity. A local matrix turns activity and trend into an
    action per operator; a global one, from the sources down, keeps actions from contradicting each other.
    The thresholds are not in the paper. Equation (2) as printed sums the fitted line over the window it was
    fitted on, which is just the number that arrived; `printed_equation=true` keeps that form. A window right
    after a change begins with the rows that queued up meanwhile, so its line falls: nothing shrinks on it.

    Kotto-Kombi, Lumineau, Lamarre: Approche préventive pour une gestion élastique du traitement parallèle
    et distribué de flux de données. EGC 2017.

    >>> from rheostat.policies.example import situation
    >>> rising = situation(load=1_900, arrivals=(10_000, 14_000, 18_000, 22_000, 26_000, 30_000))
    >>> proposal, _ = Autoscale().decide(rising, {})
    >>> proposal.target.parallelism["split"] > 1
    True
    """

    period_seconds: float = 60.0
    theta_min: float = 0.5
    theta_max: float = 0.8
    printed_equation: bool = False

    info = Info("autoscale", "operators, then the nodes they need", "preventive", "P3 AUTOSCALE")

    def __post_init__(self) -> None:
        if not 0 <= self.theta_min < self.theta_max <= 1:
            raise ValueError("thresholds must satisfy 0 <= theta_min < theta_max <= 1")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        activity, local, causes = {}, {}, []
        disturbed = bool(memory.get("changed"))
        for name in situation.topology.order:
            activity[name], rising = self._activity(situation, name)
            local[name], cause = self._local(name, activity[name], rising or disturbed)
            if cause:
                causes.append(cause)
        final = self._global(situation, local)
        wanted = dict(situation.configuration.parallelism)
        for name, action in final.items():
            wanted[name] = self._degree(wanted[name], activity[name], action)
        actions = [
            f"{name} {final[name]} at activity {activity[name]:.2f}"
            for name in final
            if final[name] != "nothing"
        ]
        if not actions:
            return hold(situation, "no operator's activity asks for a change"), {"changed": False}
        overruled = tuple(
            f"{name}: local {local[name]} became {final[name]} because of what happens upstream"
            for name in final
            if final[name] != local[name]
        )
        proposal = wish(situation, wanted, "; ".join(actions[:4]), causes=tuple(causes), rejected=overruled)
        return proposal, {"changed": proposal.changes(situation.configuration)}

    def _activity(self, situation: Situation, name: str) -> tuple[float, bool]:
        """NdA of the next window, equations (1) to (6), and whether the arrivals rise."""
        seconds, judged = situation.observation.seconds, situation.evaluation.operators[name]
        parts, waiting = _arrivals(situation, name)
        line = fit(range(len(parts)), parts)
        shift = 0 if self.printed_equation else len(parts)
        expected = sum(max(0.0, line.at(k + shift)) for k in range(len(parts))) + waiting
        if judged.busy <= 0:
            return 0.0, line.slope > 0
        # Capacity as the execution model sees it: for queues it is degree * window / service time.
        slots = sum(node.slots for node in situation.observation.nodes)
        parallelism = situation.configuration.parallelism
        used = situation.model.utilisation(situation.evaluation.busy, parallelism, slots)[name]
        capacity = judged.demand / used * seconds
        return expected / capacity, line.slope > 1e-9 * max(1.0, abs(line.intercept))

    def _local(self, name: str, activity: float, rising: bool) -> tuple[Action, Cause | None]:
        """Table 1 of the paper."""
        if activity > 1:
            return "out", Cause("activity", name, activity, ">", 1.0)
        if rising and activity > self.theta_max:
            return "out", Cause("activity", name, activity, ">", self.theta_max)
        if not rising and activity <= self.theta_min:
            return "in", Cause("activity", name, activity, "<=", self.theta_min)
        return "nothing", None

    @staticmethod
    def _global(situation: Situation, local: dict[str, Action]) -> dict[str, Action]:
        """Table 2: an upstream 'out' forbids 'in' and spreads to those that would do nothing."""
        final: dict[str, Action] = {}
        for name in situation.topology.order:
            upstream = [final[stream.upstream] for stream in situation.topology.inputs[name]]
            prevailing = max(upstream, key=_ORDER.__getitem__, default="nothing")
            action = local[name]
            if prevailing == "out":
                action = {"nothing": "out", "in": "nothing", "out": "out"}[action]  # type: ignore[assignment]
            final[name] = action
        return final

    def _degree(self, degree: int, activity: float, action: Action) -> int:
        if action == "nothing":
            return degree
        if action == "in":
            return max(1, min(degree, ceil(degree * activity)))
        # Turned 'out' from above, or high but not critical: one more. It must never shrink.
        return max(degree + 1, ceil(degree * activity))


def _arrivals(situation: Situation, name: str) -> tuple[tuple[float, ...], float]:
    """Rows offered to an operator in parts of the window, and rows waiting for it.

    Where only the sources have a queue (Spark), theirs are passed on at the operator's rate.
    """
    measures = situation.observation.operators[name]
    if measures.waiting is not None:
        return measures.arrivals or (measures.received or 0.0,), measures.waiting
    sources = [situation.observation.operators[source].arrivals for source in situation.topology.sources]
    rate = situation.evaluation.operators[name].demand / situation.load if situation.load > 0 else 0.0
    parts = tuple(rate * sum(rows) for rows in zip(*sources, strict=False)) or (0.0,)
    return parts, rate * (situation.observation.application.backlog or 0.0)
