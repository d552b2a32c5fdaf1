from dataclasses import dataclass

from rheostat.analyze.evaluation import measured_selectivity
from rheostat.analyze.rates import demand
from rheostat.model.decision import Cause, Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, hold, wish


@dataclass(frozen=True)
class Ds2(Policy):
    """Three steps is all you need: parallelism from true rates, as Flink's autoscaler applies it.

    An instance's true rate is what it processes per second of useful time. The rate to sustain is the load
    at the target utilisation, plus the backlog over the catch-up time, plus what a restart would queue.

    Kalavri, Liagouris, Hoffmann, Dimitrova, Forshaw, Roscoe: Three steps is all you need. OSDI 2018.
    Apache Flink Kubernetes Operator, autoscaler (utilisation band, catch-up and restart terms).

    >>> from rheostat.policies.example import situation
    >>> proposal, _ = Ds2().decide(situation(load=3_000, parallelism=(1, 2, 1)), {})
    >>> dict(proposal.target.parallelism)
    {'lines': 1, 'split': 3, 'count': 2}
    """

    period_seconds: float = 60.0
    utilization_target: float = 0.7
    utilization_min: float = 0.4
    utilization_max: float = 1.0
    catch_up_duration: float = 1800.0
    restart_time: float = 300.0

    info = Info(
        "ds2", "operators, then the nodes they need", "reactive", "DS2 (OSDI 2018), Flink's autoscaler"
    )

    def __post_init__(self) -> None:
        if not 0 < self.utilization_min < self.utilization_target < self.utilization_max:
            raise ValueError("utilisations must rise: 0 < min < target < max")
        if self.catch_up_duration <= 0 or self.restart_time < 0:
            raise ValueError("catch_up_duration must be positive and restart_time not negative")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        application = situation.observation.application
        if application.backlog is None:
            return hold(situation, "hold: not measured in this window: backlog"), memory
        load = {name: application.load[name] or 0.0 for name in situation.topology.sources}
        total = sum(load.values())
        extra = (
            application.backlog / self.catch_up_duration + total * self.restart_time / self.catch_up_duration
        )
        needed = {  # rows/s at each source that the new parallelism must sustain
            name: rate / self.utilization_target + (extra * rate / total if total else extra / len(load))
            for name, rate in load.items()
        }
        rates = demand(
            situation.topology, needed, measured_selectivity(situation.topology, situation.observation)
        )
        busy = {name: rates[name] * self._seconds_per_row(situation, name) for name in rates}
        wanted = situation.model.parallelism_for(busy, 1.0)
        # A busy queue shows in the true rate, so judge the band on the load without the target.
        slots = sum(node.slots for node in situation.observation.nodes)
        plain = {name: busy[name] * total / sum(needed.values()) if total else 0.0 for name in busy}
        used = situation.model.utilisation(plain, situation.configuration.parallelism, slots)
        causes = [
            Cause("utilisation", name, used[name], ">", self.utilization_max)
            for name in used
            if used[name] > self.utilization_max
        ]
        causes += [
            Cause("utilisation", name, used[name], "<", self.utilization_min)
            for name in used
            if used[name] < self.utilization_min and wanted[name] < situation.configuration.parallelism[name]
        ]
        behind = application.backlog > total * self.catch_up_duration / 30 > 0
        if behind:
            causes.append(
                Cause("backlog", "sources", application.backlog, ">", total * self.catch_up_duration / 30)
            )
        if not causes:
            band = f"[{self.utilization_min}, {self.utilization_max}]"
            return hold(situation, f"every operator's true utilisation is within {band}"), memory
        reason = f"sustain {sum(needed.values()):,.0f} rows/s for a load of {total:,.0f}: " + "; ".join(
            map(str, causes[:3])
        )
        return wish(situation, wanted, reason, causes=tuple(causes)), memory

    @staticmethod
    def _seconds_per_row(situation: Situation, name: str) -> float:
        """Useful time per row; the CPU cost stands in where the engine cannot tell waiting from working."""
        measures = situation.observation.operators[name]
        if measures.busy_seconds and measures.processed:
            return measures.busy_seconds / measures.processed
        return situation.evaluation.operators[name].cost_seconds / situation.kind.slot_cores
