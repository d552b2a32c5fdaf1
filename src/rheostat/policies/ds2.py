"""DS2's true rates, with the thresholds of Flink's autoscaler."""

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
    It acts when an operator leaves the utilisation band, then on all; catching up counts as utilisation.

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
    lag_threshold: float = 300.0  # seconds of load in the backlog that count as being behind

    info = Info(
        "ds2", "operators, then the nodes they need", "reactive", "DS2 (OSDI 2018), Flink's autoscaler"
    )

    def __post_init__(self) -> None:
        if not 0 < self.utilization_min < self.utilization_target < self.utilization_max:
            raise ValueError("utilisations must rise: 0 < min < target < max")
        if self.catch_up_duration <= 0 or self.restart_time < 0 or self.lag_threshold < 0:
            raise ValueError("catch_up_duration must be positive, restart_time and lag_threshold at least 0")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        backlog, load = situation.observation.application.backlog, situation.load
        if backlog is None:
            return hold(situation, "hold: not measured in this window: backlog"), memory
        catch_up = backlog / self.catch_up_duration
        restart = load * self.restart_time / self.catch_up_duration
        needed = load / self.utilization_target + catch_up + restart
        current, per_row = situation.configuration.parallelism, _busy_per_row(situation)
        wanted = situation.bounds.parallelism(
            situation.topology,
            situation.model.parallelism_for({name: needed * busy for name, busy in per_row.items()}, 1.0),
        )
        cores = situation.evaluation.cores_of({name: needed * busy for name, busy in per_row.items()})

        def utilisation(rate: float) -> dict[str, float]:
            slots = sum(node.slots for node in situation.observation.nodes)
            return situation.model.utilisation(
                {n: rate * busy for n, busy in per_row.items()}, current, slots
            )

        # While a long backlog is worked off nothing need be free beside it, and nothing shrinks.
        behind = backlog > load * self.lag_threshold
        high, low = 1.0 if behind else self.utilization_max, self.utilization_min
        causes = [cause] if (cause := situation.short_of_cpu) else []
        causes += [
            Cause("utilisation", name, used, ">", high)
            for name, used in utilisation(load + high * catch_up).items()
            if used > high and wanted[name] > current[name]
        ]
        if not behind:
            causes += [
                Cause("utilisation", name, used, "<", low)
                for name, used in utilisation(load + low * (catch_up + restart)).items()
                if used < low and wanted[name] < current[name]
            ]
        if not causes:
            inside = f"every operator's true utilisation is within [{low}, {high}], or cannot change"
            return hold(situation, inside), memory
        reason = f"sustain {needed:,.0f} rows/s for a load of {load:,.0f}: " + "; ".join(map(str, causes[:3]))
        nodes = situation.nodes_for(wanted, sum(cores.values()))
        return wish(situation, wanted, reason, nodes=nodes, causes=tuple(causes)), memory


def _busy_per_row(situation: Situation) -> dict[str, float]:
    """Slots that each operator keeps busy per row/s that all sources together offer, by its true rate."""
    sources, total = situation.topology.sources, situation.load
    measured = situation.observation.application.load
    mix = {name: (measured[name] or 0.0) / total if total else 1 / len(sources) for name in sources}
    rows = demand(situation.topology, mix, measured_selectivity(situation.topology, situation.observation))
    return {name: rows[name] * _seconds_per_row(situation, name) for name in rows}


def _seconds_per_row(situation: Situation, name: str) -> float:
    """Useful time per row; the CPU cost stands in where the engine cannot tell waiting from working."""
    measures = situation.observation.operators[name]
    if measures.row_busy_seconds and measures.processed:
        return measures.row_busy_seconds / measures.processed
    return situation.evaluation.operators[name].cost_seconds / situation.instance_cores
