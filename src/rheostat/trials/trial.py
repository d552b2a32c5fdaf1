"""A trial as values: the conditions of all contestants, and the result of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from rheostat.analyze.judging import Series
from rheostat.analyze.lag import Count
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.errors import FileError
from rheostat.model.secrets import without_secrets
from rheostat.workloads import parse_curve

COUNTING = 2  # the version of how rows and times are counted; a trial of another version is not continued


@dataclass(frozen=True)
class Trial:
    """The conditions that are the same for all contestants."""

    app: str
    script: Path
    curve: str
    seed: int
    nodes: Bounds
    node: NodeKind
    mode: str
    trigger_seconds: float
    period_seconds: float
    cooldown_seconds: float
    warm_up_seconds: float
    partitions: int
    kafka: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)  # Spark's, of --conf
    counting: int = COUNTING

    @property
    def load(self) -> str:
        """The offered curve: its first load is held while everything warms up."""
        return f"{self.curve}:lead={self.warm_up_seconds:g}" if self.warm_up_seconds else self.curve

    @property
    def seconds(self) -> float:
        """How long the load lasts."""
        return parse_curve(self.load).duration_seconds

    @property
    def silent_seconds(self) -> float:
        """How long the load is silent at first."""
        ticks = Count.of_curve(parse_curve(self.load), self.seed, begins=0.0)
        return float(ticks.at[max(0, int(np.argmax(ticks.rows > 0)) - 1)])

    def json(self) -> str:
        """Return the options that identify a trial, as JSON."""
        options = replace(
            self,
            script=Path(self.script.name),
            kafka="yes" if self.kafka else None,
            settings=without_secrets(self.settings),
        )
        return _TRIAL.dump_json(options, indent=2).decode()

    def has_options(self, text: bytes) -> bool:
        """Whether these are its options; what an earlier version did not know yet has its default."""
        try:
            return _TRIAL.validate_json(text).json() == self.json()
        except ValueError:  # pydantic's own error is one
            return False


@dataclass(frozen=True)
class Result:
    """A run, second by second from the start of its load."""

    contestant: str
    number: int
    load: list[float] = field(default_factory=list)
    throughput: list[float] = field(default_factory=list)
    lag: list[float] = field(default_factory=list)
    nodes: list[float] = field(default_factory=list)
    instances: list[float] = field(default_factory=list)
    work: list[tuple[float, float]] = field(
        default_factory=list
    )  # per window: the load, and the cores that the nodes used
    startups: list[float] = field(default_factory=list)  # seconds from ordering a node to its executors
    changes: int = 0
    failed: int = 0
    failure: str = ""  # why it could not run
    refused: bool = False  # as the user's options were invalid

    @property
    def columns(self) -> tuple[list[float], ...]:
        """The values of every second."""
        return self.load, self.throughput, self.lag, self.nodes, self.instances

    @property
    def series(self) -> Series:
        """The same values as arrays."""
        return Series(1.0, *(np.array(column, dtype=np.float64) for column in self.columns))

    def line(self) -> str:
        """Summarise it in one line."""
        if self.failure:
            return f"did not run: {self.failure}"
        return (
            f"{sum(self.nodes):,.0f} node-seconds, p99 lag {np.percentile(self.lag, 99):.1f} s, "
            f"{self.changes} changes" + (f", {self.failed} failed" if self.failed else "")
        )

    def json(self) -> bytes:
        """Return the content of its file."""
        return _RESULT.dump_json(self)


_TRIAL = TypeAdapter(Trial)
_RESULT = TypeAdapter(Result)


def read_result(path: Path) -> Result:
    """Read the result of a run."""
    try:
        result = _RESULT.validate_json(path.read_bytes())
        seconds = {len(column) for column in result.columns}
        if not result.failure and (len(seconds) > 1 or 0 in seconds):
            raise ValueError
        return result
    except (OSError, ValueError):  # pydantic's error is a ValueError
        raise FileError(f"{path}: is not the result of a trial; delete it to repeat the run") from None
