"""AUTOSCALE (P3): every operator as large as its own arrivals, and what comes from upstream, will need."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from rheostat.analyze.cost_profiles import NewestCosts
from rheostat.analyze.execution import ExecutionModel, ceil
from rheostat.analyze.forecasts import Expectation, LeastSquares
from rheostat.analyze.forecasts.line import Line
from rheostat.analyze.rates import visits
from rheostat.model.decision import Cause, Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, hold, wish

PastWindow = list[Any]  # its middle in seconds, rows/s by operator: plain JSON data
Action = Literal["in", "nothing", "out"]
POINTS = 3  # a line needs this many; a window with fewer parts borrows from the windows before it
_ORDER: dict[str, int] = {"nothing": 0, "in": 1, "out": 2}  # which upstream action prevails (section 4.2)


@dataclass(frozen=True)
class Autoscale(Policy):
    """AUTOSCALE prevents congestion: it acts on the activity expected in the next window (P3).

    Activity = (expected arrivals + waiting rows) / capacity. A local matrix turns activity and trend into an
    action per operator; a global one, from the sources down, keeps actions from contradicting each other.
    The thresholds are not in the paper. Equation (2) as printed sums the fitted line over the window it was
    fitted on, which is just the number that arrived; `printed_equation=true` keeps that form. A window right
    after a change begins with the rows that queued up meanwhile, so its line falls: nothing shrinks on it.
    Where a window tells fewer than three parts apart, as with one batch per decision, the line goes through
    the last three windows.

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
        windows = _windows(situation, memory)
        activity, rising = self._activity(situation, windows)
        shrinkable = not memory.get("changed") and _queues_known(situation)
        local = {name: self._local(activity[name], rising[name], shrinkable) for name in activity}
        final = self._global(situation, local)
        current = situation.configuration.parallelism
        wanted = situation.bounds.parallelism(
            situation.topology,
            {
                name: self._degree(current[name], activity[name], final[name], situation.model)
                for name in final
            },
        )
        acting = [name for name in final if wanted[name] != current[name]]
        short = situation.short_of_cpu  # hypothesis H2, that the resources suffice, is for the nodes to meet
        overruled = tuple(
            f"{name}: local {local[name]} became {final[name]} because of what happens upstream"
            for name in final
            if final[name] != local[name]
        )
        if not acting and not short:
            quiet = hold(situation, "no operator's activity asks for a change that its limits allow")
            return replace(quiet, rejected=overruled), {"changed": False, "windows": windows}
        words = [f"{name} {final[name]} at activity {activity[name]:.2f}" for name in acting[:4]]
        reason = "; ".join([*words, *([f"nodes for {short}"] if short else [])])
        causes = ((short,) if short else ()) + tuple(
            self._cause(name, activity[name])
            for name in final
            if final[name] == local[name] and (final[name] == "out" or wanted[name] != current[name])
        )
        memory = {"changed": True, "windows": windows}
        return wish(situation, wanted, reason, causes=causes, rejected=overruled), memory

    def _activity(
        self, situation: Situation, windows: list[PastWindow]
    ) -> tuple[dict[str, float], dict[str, bool]]:
        """NdA of every operator in the next window, equations (1) to (6), and whether its arrivals rise.

        For queues capacity is degree * window / service time; the execution model knows it for stages too.
        """
        rates, rising = {}, {}
        reach, seconds = visits(situation.topology), situation.observation.seconds
        for name in situation.topology.order:
            parts, waiting = _arrivals(situation, name, reach[name])
            forecast = _forecast(situation, name, parts, windows)
            length = seconds / max(POINTS, len(parts))
            first = -seconds if self.printed_equation else 0.0  # of this window, or of the next
            middles = [first + length * (part + 0.5) for part in range(max(POINTS, len(parts)))]
            expected = sum(max(0.0, forecast.at(middle)) * length for middle in middles) + waiting
            rates[name] = expected / seconds
            rising[name] = forecast.change(0.0, seconds) > 1e-9 * max(1.0, abs(forecast.at(0.0)))
        costs = NewestCosts(situation.topology, situation.instance_cores)
        costs.learn(situation.observation, situation.evaluation)
        slots = sum(node.slots for node in situation.observation.nodes)
        return situation.model.utilisation(
            costs.busy(rates), situation.configuration.parallelism, slots
        ), rising

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

    def _degree(self, degree: int, activity: float, action: Action, model: ExecutionModel) -> int:
        if action == "nothing":
            return degree
        if action == "in":
            return max(1, min(degree, model.whole_steps(ceil(degree * activity))))
        # Turned 'out' from above, or high but not critical: one step more. It must never shrink.
        return max(degree + model.step, model.whole_steps(ceil(degree * activity)))


def _windows(situation: Situation, memory: Memory) -> list[PastWindow]:
    """The middle of each of the last windows, and the rows/s that arrived at the operators in it."""
    window, names = situation.observation, situation.topology.names
    rates = {name: _rate(situation, name) for name in names}
    # What is long past, or of other operators, is of a run that was resumed.
    oldest = window.end - 2 * POINTS * window.seconds
    kept = [
        [middle, before]
        for middle, before in memory.get("windows", [])
        if oldest <= middle < window.start and before.keys() == rates.keys()
    ]
    return [*kept, [(window.start + window.end) / 2, rates]][-POINTS:]


def _rate(situation: Situation, name: str) -> float:
    """Rows/s that arrived; where an operator has no queue of its own, what the load asks of it."""
    measures = situation.observation.operators[name]
    if measures.waiting is None or measures.received is None:
        return situation.evaluation.operators[name].demand
    return measures.received / situation.observation.seconds


def _forecast(
    situation: Situation, name: str, parts: tuple[float, ...], windows: list[PastWindow]
) -> Expectation:
    """Rows/s by seconds from the window's end: through its parts, or through the last windows."""
    window = situation.observation
    if len(parts) >= POINTS:
        length = window.seconds / len(parts)
        history = [(length * (part + 0.5) - window.seconds, rows / length) for part, rows in enumerate(parts)]
    else:
        history = [(middle - window.end, rates[name]) for middle, rates in windows]
    return LeastSquares(POINTS).line(history) or Line(_rate(situation, name), 0.0)


def _queues_known(situation: Situation) -> bool:
    """Whether rows that wait would show: at every operator, or where only the sources have a queue, there."""
    operators = situation.observation.operators.values()
    return situation.observation.application.backlog is not None or all(
        operator.waiting is not None for operator in operators
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
