"""The live view of a run: load, lag, operators, nodes and the latest decisions, on one screen."""

from collections import deque
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rheostat.cli import console, prose
from rheostat.control.turn import Turn
from rheostat.engines.spark.engine import SparkEngine
from rheostat.engines.spark.observe.meter import Meter, NodeUse
from rheostat.model.decision import Status
from rheostat.model.observation import Event
from rheostat.run.samples import Sample, Sampler

DECISIONS = 4
NOTES = 2
NOTED = ("script", "state", "driver", "refused", "source")  # the kinds of events that a user should hear of
_BARS = " ▁▂▃▄▅▆▇█"


@dataclass
class View:
    """What a terminal shows of a run."""

    title: str
    engine: SparkEngine
    sampler: Sampler
    ends_at: float | None = None
    _decisions: deque[Turn] = field(default_factory=lambda: deque(maxlen=DECISIONS))
    _usage: dict[str, NodeUse] = field(default_factory=dict)
    _meter: Meter | None = None
    _last: Turn | None = None
    _notes: deque[Event] = field(default_factory=lambda: deque(maxlen=NOTES))

    @property
    def samples(self) -> list[Sample]:
        """One per heartbeat."""
        return self.sampler.samples

    def update(self, now: float) -> None:
        """Measure the nodes, at every heartbeat."""
        self._meter = self._meter or self.engine.meter()
        self._usage = self._meter.read(now)

    def add(self, turn: Turn) -> None:
        """Show a turn's decision, if there is any."""
        self._last = turn
        self._notes.extend(notes(turn))
        if turn.plan.changes or turn.plan.alert:
            self._decisions.append(turn)

    def __rich__(self) -> RenderableType:
        return Group(
            self._headline(), Text(), self._operators(), Text(), self._nodes(), Text(), self._latest()
        )

    def _headline(self) -> RenderableType:
        now = self.samples[-1].at if self.samples else 0.0
        left = "" if self.ends_at is None else f", {max(0.0, self.ends_at - now):.0f} s left"
        grid = Table.grid(padding=(0, 2, 0, 0))
        last = self.samples[-1] if self.samples else None
        grid.add_row(Text(self.title, style="bold"), f"{now:.0f} s{left}")
        grid.add_row(
            f"load       {_rate(last.load if last else None)}", self._line([s.load for s in self.samples])
        )
        grid.add_row(
            f"throughput {_rate(last.throughput if last else None)}",
            self._line([s.throughput for s in self.samples]),
        )
        lag = f"{last.lag:7.1f} s     " if last else "      -"
        grid.add_row(f"lag        {lag}", self._line([s.lag for s in self.samples]))
        return grid

    def _line(self, values: list[float], width: int = 44) -> str:
        """Draw the run so far as a row of bars."""
        if not values:
            return ""
        size = max(1, -(-len(values) // width))
        means = [sum(values[i : i + size]) / len(values[i : i + size]) for i in range(0, len(values), size)]
        top = max(*means, 1e-9)
        return "".join(_BARS[round(8 * value / top)] for value in means)

    def _operators(self) -> RenderableType:
        table = console.table("", "operator", "instances", "rows/s", "CPU", "used", "skew")
        table.title = None
        observation = self._last.observation if self._last else None
        evaluations = self._last.evaluation.operators if self._last else {}
        for name, count in self.engine.configuration.parallelism.items():
            measured = observation.operators.get(name) if observation else None
            seconds = observation.seconds if observation else 0.0
            rows = (
                measured.processed / seconds
                if measured and measured.processed is not None and seconds
                else None
            )
            cpu = (
                measured.cpu_seconds / seconds
                if measured and measured.cpu_seconds is not None and seconds
                else None
            )
            used = evaluations[name].utilisation if name in evaluations else None
            skew = measured.skew if measured else None
            table.add_row(
                name,
                str(count),
                console.number(rows),
                console.number(cpu, "cores", 2),
                console.number(used, "%"),
                console.number(skew),
            )
        return table

    def _nodes(self) -> RenderableType:
        table = console.table("", "node", "slots", "CPU", "memory", "")
        table.title = None
        table.columns[-1].justify = "left"
        kinds = {node.name: node.kind for node in self.engine.provider.nodes()}
        for name, use in self._usage.items():
            kind = kinds.get(name, self.engine.kinds[0])
            part = None if use.cores is None else min(1.0, use.cores / kind.cores)
            bar = "" if part is None else "█" * round(10 * part)
            size = None if use.memory_bytes is None else use.memory_bytes / 2**20
            table.add_row(
                name, str(kind.slots), console.number(part, "%"), console.number(size, "MB"), f"{bar:<10}"
            )
        return table

    def _latest(self) -> RenderableType:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(justify="right", no_wrap=True)
        grid.add_column(overflow="fold")
        if self.engine.doing:
            grid.add_row("now", Text(f"changing {self.engine.doing}", style="italic"))
        for turn in reversed(self._decisions):
            grid.add_row(f"{turn.plan.decided_at:.0f} s", describe_turn(turn))
        if not self._decisions and self._last:
            grid.add_row(f"{self._last.plan.decided_at:.0f} s", self._last.plan.reason)
        for event in reversed(self._notes):
            grid.add_row(f"{event.at:.0f} s", Text(prose.plain(event.text), style="dim"))
        return grid


def notes(turn: Turn) -> tuple[Event, ...]:
    """What happened in a turn's window that a user should hear of."""
    return tuple(event for event in turn.observation.events if event.kind in NOTED)


def describe_turn(turn: Turn) -> str:
    """Describe a decision in a few words: what changed, why, how it went."""
    plan, outcome = turn.plan, turn.outcome
    if outcome.status is Status.FAILED:
        return f"FAILED: {outcome.reason}; wanted {plan.describe()} because {plan.reason}"
    if outcome.status is Status.APPLIED:
        took = outcome.finished_at - outcome.started_at
        resized = outcome.configuration != plan.current
        done = outcome.configuration.describe(plan.current) if resized else plan.describe()
        return f"{done} ({took:.1f} s) because {plan.reason}"
    if plan.alert:
        return f"ALERT: {plan.alert}"
    return outcome.reason


def _rate(value: float | None) -> str:
    return f"{'-' if value is None else format(value, ',.0f'):>7} rows/s"
