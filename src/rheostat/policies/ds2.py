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
        total, parts = situation.load, len(situation.topology.sources)
        catch_up = application.backlog / self.catch_up_duration
        restart = total * self.restart_time / self.catch_up_duration
        per_row = {name: situation.seconds_per_row(name) for name in situation.topology.names}
        sigma = measured_selectivity(situation.topology, situation.observation)

        def busy(rate: float) -> dict[str, float]:
            """Slots that every operator keeps busy when all sources together offer so much."""
            offered = {
                name: rate * (load or 0.0) / total if total else rate / parts
                for name, load in application.load.items()
            }
            rows = demand(situation.topology, offered, sigma)
            return {name: rows[name] * per_row[name] for name in rows}

        needed = total / self.utilization_target + catch_up + restart
        current = situation.configuration.parallelism
        wanted = situation.bounds.parallelism(
            situation.topology, situation.model.parallelism_for(busy(needed), 1.0)
        )
        slots = sum(node.slots for node in situation.observation.nodes)
        most = situation.model.utilisation(busy(total / self.utilization_max + catch_up), current, slots)
        causes = [
            Cause("needed / true rate", name, most[name], ">", 1.0)
            for name in most
            if most[name] > 1 and wanted[name] > current[name]
        ]
        # What works off a long backlog must not shrink: it would only grow the backlog.
        if application.backlog <= total * self.lag_threshold:
            least = situation.model.utilisation(
                busy(total / self.utilization_min + catch_up + restart), current, slots
            )
            causes += [
                Cause("most useful / true rate", name, least[name], "<", 1.0)
                for name in least
                if least[name] < 1 and wanted[name] < current[name]
            ]
        if not causes:
            band = f"[{self.utilization_min}, {self.utilization_max}]"
            return hold(situation, f"every operator's true utilisation is within {band}"), memory
        reason = f"sustain {needed:,.0f} rows/s for a load of {total:,.0f}: {'; '.join(map(str, causes[:3]))}"
        return wish(situation, wanted, reason, causes=tuple(causes)), memory
