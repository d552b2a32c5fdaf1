from dataclasses import dataclass, replace
from typing import Literal

from rheostat.analyze.execution import ceil
from rheostat.analyze.rates import visits
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
        activity, rising = self._activity(situation)
        shrinkable = not memory.get("changed") and _queues_known(situation)
        local = {name: self._local(activity[name], rising[name], shrinkable) for name in activity}
        final = self._global(situation, local)
        current = situation.configuration.parallelism
        wanted = situation.bounds.parallelism(
            situation.topology,
            {name: self._degree(current[name], activity[name], final[name]) for name in final},
        )
        acting = [name for name in final if wanted[name] != current[name]]
        overruled = tuple(
            f"{name}: local {local[name]} became {final[name]} because of what happens upstream"
            for name in final
            if final[name] != local[name]
        )
        if not acting:
            quiet = hold(situation, "no operator's activity asks for a change that its limits allow")
            return replace(quiet, rejected=overruled), {"changed": False}
        reason = "; ".join(f"{name} {final[name]} at activity {activity[name]:.2f}" for name in acting[:4])
        causes = tuple(
            self._cause(name, activity[name])
            for name in final
            if final[name] == local[name] and (final[name] == "out" or wanted[name] != current[name])
        )
        return wish(situation, wanted, reason, causes=causes, rejected=overruled), {"changed": True}

    def _activity(self, situation: Situation) -> tuple[dict[str, float], dict[str, bool]]:
        """NdA of every operator in the next window, equations (1) to (6), and whether its arrivals rise.

        For queues capacity is degree * window / service time; the execution model knows it for stages too.
        """
        busy, rising = {}, {}
        reach = visits(situation.topology)
        for name in situation.topology.order:
            parts, waiting = _arrivals(situation, name, reach[name])
            line = fit(range(len(parts)), parts)
            shift = 0 if self.printed_equation else len(parts)
            expected = sum(max(0.0, line.at(k + shift)) for k in range(len(parts))) + waiting
            # Service time by CPU: where threads share cores, the time measured now is not what a slot offers.
            service = situation.evaluation.operators[name].cost_seconds / situation.kind.slot_cores
            busy[name] = expected * service / situation.observation.seconds
            rising[name] = line.slope > 1e-9 * max(1.0, abs(line.intercept))
        slots = sum(node.slots for node in situation.observation.nodes)
        return situation.model.utilisation(busy, situation.configuration.parallelism, slots), rising

    def _local(self, activity: float, rising: bool, shrinkable: bool = True) -> Action:
        """Table 1 of the paper."""
        if activity > 1 or (rising and activity > self.theta_max):
            return "out"
        return "in" if shrinkable and not rising and activity <= self.theta_min else "nothing"

    def _cause(self, name: str, activity: float) -> Cause:
        """The threshold that the activity passed."""
        if activity <= self.theta_min:
            return Cause("activity", name, activity, "<=", self.theta_min)
        return Cause("activity", name, activity, ">", 1.0 if activity > 1 else self.theta_max)

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


def _queues_known(situation: Situation) -> bool:
    """Whether rows that wait would show: at every operator, or where only the sources have a queue, there."""
    measured = situation.observation.operators.values()
    return situation.observation.application.backlog is not None or all(
        one.waiting is not None for one in measured
    )


def _arrivals(situation: Situation, name: str, reach: float) -> tuple[tuple[float, ...], float]:
    """Rows offered to an operator in parts of the window, and rows waiting for it.

    Where only the sources have a queue (Spark), theirs are passed on at the operator's rate; where arrivals
    were not told apart, the window is one part at the rate that the load asks for.
    """
    measures, demand = situation.observation.operators[name], situation.evaluation.operators[name].demand
    whole = (demand * situation.observation.seconds,)
    if measures.waiting is not None:
        received = whole if measures.received is None else (measures.received,)
        return measures.arrivals or received, measures.waiting
    sources = [situation.observation.operators[source].arrivals for source in situation.topology.sources]
    rate = demand / situation.load if situation.load > 0 else reach
    parts = tuple(rate * sum(rows) for rows in zip(*sources, strict=False))
    return parts or whole, rate * (situation.observation.application.backlog or 0.0)
