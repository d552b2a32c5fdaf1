"""What was measured in one window. None means "not measured", which is never the same as zero."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import ConfigDict

Measure = float | None
ARRIVAL_PARTS = 6  # of a window, for each of which the arrivals are told


@dataclass(frozen=True, slots=True)
class InstanceMeasures:
    """One parallel copy of an operator, if the engine can tell the copies apart.

    `utilisation` is the CPU that it used / the most that it can use while it may work: one core, or the cores
    of its node where these are fewer. Slots may outnumber cores: the instances of a full node may look idle.
    """

    node: str
    received: Measure = None  # rows in the window
    processed: Measure = None
    utilisation: Measure = None


@dataclass(frozen=True, slots=True)
class OperatorMeasures:
    """One operator over the window."""

    parallelism: int
    received: Measure = None  # rows that arrived
    processed: Measure = None  # rows that it finished
    emitted: Mapping[str, float] = field(default_factory=dict)  # rows per downstream operator
    cpu_seconds: Measure = None
    busy_seconds: Measure = None  # summed over instances: working, not waiting for input or output
    partitions: int | None = None  # of its state
    partition_seconds: Measure = None  # for which a batch holds a slot per state partition, rows or not
    state_seconds: Measure = None  # the part of busy_seconds that the state partitions took
    waiting: Measure = None  # rows in its queue at the window's end
    arrivals: tuple[float, ...] = ()  # rows that arrived in equal parts of the window, in order
    instances: tuple[InstanceMeasures, ...] = ()
    skew: Measure = None  # the largest instance's rows (or CPU) over their mean; 1: even

    @property
    def row_busy_seconds(self) -> Measure:
        """The part of busy_seconds that the rows took: ten times the rows need no more state partitions."""
        if self.busy_seconds is None or self.state_seconds is None:
            return self.busy_seconds
        return max(0.0, self.busy_seconds - self.state_seconds)

    @property
    def row_cpu_seconds(self) -> Measure:
        """The part of cpu_seconds that the rows took, by their share of the time.

        >>> OperatorMeasures(200, cpu_seconds=3.0, busy_seconds=40.0, state_seconds=38.0).row_cpu_seconds
        0.15
        """
        rows = self.row_busy_seconds
        if self.cpu_seconds is None or not rows or not self.busy_seconds or self.state_seconds is None:
            return self.cpu_seconds
        return self.cpu_seconds * rows / self.busy_seconds


@dataclass(frozen=True, slots=True)
class NodeMeasures:
    """One machine over the window."""

    name: str
    slots: int
    cores: float
    kind: str = "small"
    region: str = "local"
    executors: int = 1
    cpu: Measure = None  # 0..1 of its cores
    memory: Measure = None  # 0..1
    instances: Mapping[str, int] | None = None  # per operator, running at the same time; None: unknown
    hidden: bool = False  # not offered for placement while it is being emptied
    price_per_hour: float = 0.0
    gc: Measure = None  # the share of the window in which its executors collected garbage
    compiling: Measure = None  # seconds of the JVMs' compilers and class loading / all CPU seconds
    heap: Measure = None  # heap that is in use after a collection / its limit

    @property
    def assigned(self) -> int:
        """The number of instances it hosts, as far as is known."""
        return sum((self.instances or {}).values())


@dataclass(frozen=True, slots=True)
class ApplicationMeasures:
    """The application as a whole over the window."""

    load: Mapping[str, Measure] = field(default_factory=dict)  # rows/s offered, per source
    throughput: Measure = None  # rows/s completed, counted in source rows
    backlog: Measure = None  # source rows waiting
    lag_seconds: Measure = None
    batch_seconds: Measure = None  # mean duration of the window's batches (staged)
    trigger_seconds: Measure = None
    state_bytes: Measure = None
    state_memory_bytes: Measure = None  # what state takes in memory: RocksDB's own, beside the heap
    state_rows: Measure = None
    batches: int | None = None  # that ended in the window (staged)
    batch_parts: Mapping[str, float] = field(
        default_factory=dict
    )  # seconds per part of a batch, Spark's names
    stale: bool = False  # no batch ended in the window: the operators' measures are the last batch's
    running_seconds: Measure = None  # since the batch that runs began
    tasks_done: int | None = None  # of the batch that runs
    tasks_left: int | None = None
    late_batches: int | None = (
        None  # in a row that took longer than the trigger; in Real-Time Mode, after which rows wait
    )

    @property
    def total_load(self) -> Measure:
        """Rows/s offered at all sources, or None if any of them is unknown."""
        loads = list(self.load.values())
        if not loads or any(load is None for load in loads):
            return None
        return sum(load for load in loads if load is not None)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the application: a query restarted, an executor lost, a node gone."""

    at: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Observation:
    """One window: [start, end) in seconds."""

    __pydantic_config__ = ConfigDict(
        allow_inf_nan=False
    )  # an observation read from a file has only finite numbers

    start: float
    end: float
    operators: Mapping[str, OperatorMeasures]
    nodes: tuple[NodeMeasures, ...]
    application: ApplicationMeasures
    events: tuple[Event, ...] = ()
    queries: Mapping[str, ApplicationMeasures] = field(default_factory=dict)  # of several, each by itself

    @property
    def seconds(self) -> float:
        """The window's length."""
        return self.end - self.start

    @property
    def total_load(self) -> Measure:
        """Rows/s offered at all sources, or None if any of them is unknown."""
        return self.application.total_load
