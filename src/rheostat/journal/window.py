"""The latest window of a run, per operator: what one would put into a table."""

from dataclasses import dataclass

from rheostat.control.turn import Decision
from rheostat.model.observation import OperatorMeasures


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One operator in one window; None: not measured."""

    name: str
    parallelism: int
    rows_per_second: float | None
    utilisation: float | None
    cpu_cores: float | None
    skew: float | None
    waiting: float | None


def operator_rows(decision: Decision) -> tuple[OperatorRow, ...]:
    """The operators of a decision's window, in the order of the topology."""
    evaluated, seconds = decision.evaluation.operators, decision.observation.seconds
    return tuple(
        OperatorRow(
            name,
            operator.parallelism,
            _per_second(operator.processed, seconds),
            evaluated[name].utilisation if name in evaluated else None,
            _per_second(operator.cpu_seconds, seconds),
            skew(operator),
            operator.waiting,
        )
        for name, operator in decision.observation.operators.items()
    )


def skew(operator: OperatorMeasures) -> float | None:
    """The largest instance's rows over their mean, as measured or as its instances show it."""
    rows = [instance.processed for instance in operator.instances if instance.processed is not None]
    if operator.skew is not None or not rows or not sum(rows):
        return operator.skew
    return max(rows) * len(rows) / sum(rows)


def _per_second(value: float | None, seconds: float) -> float | None:
    return value / seconds if value is not None and seconds > 0 else None
