"""The protocol between a controller and its driver process: a dataclass per request and per answer.

`wire.py` writes and reads them; both sides check what they read. Raise PROTOCOL_VERSION with every change to
a message or to an event (`events.py`): `rheostat run --resume` may find a driver process that an older or
newer Rheostat started. Imports neither Spark nor the engine, so that both sides, and tests, can use it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Generic, Literal, Protocol, TypeVar, get_args

from pydantic import ConfigDict, Field

from rheostat.engines.spark.events import MOST_BYTES, MOST_ID, MOST_MS, MOST_TASKS, MOST_WORK, AnyEvent
from rheostat.model.errors import RheostatError, UserError

PROTOCOL_VERSION = 5
ANSWER_SECONDS = 60.0


class Message:
    """Plain data that crosses the socket."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


# -- what a driver process describes ----------------------------------------------------------------------


@dataclass(frozen=True)
class Step(Message):
    """A source or an operator that the application declares."""

    name: str
    inputs: tuple[str, ...]
    query: str
    stateful: bool
    min_parallelism: int
    max_parallelism: int


@dataclass(frozen=True)
class QueryStage(Message):
    """One stage of each batch; stages are listed from the source up."""

    operator: str
    parents: tuple[int, ...] = ()
    stateful: bool = False
    shuffle: int | None = None  # the rank of the script's own shuffle that begins it, if one does
    tasks: int | None = None  # as planned; None: as its source pleases


# When, in unix milliseconds, and the rows that a source was offered until then.
Arrival = tuple[Annotated[float, Field(ge=0, le=MOST_ID)], Annotated[float, Field(ge=0, le=MOST_BYTES)]]


@dataclass(frozen=True)
class RunningBatch(Message):
    """A batch that runs: its stages and tasks submitted so far, and how many of the tasks ended."""

    batch: Annotated[int, Field(ge=-1, le=MOST_ID)]
    since: Annotated[int, Field(ge=0, le=MOST_ID)]  # unix milliseconds at which its first stage began
    stages: Annotated[int, Field(ge=0, le=MOST_TASKS)]
    tasks: Annotated[int, Field(ge=0, le=MOST_TASKS)]
    done: Annotated[int, Field(ge=0, le=MOST_TASKS)]


@dataclass(frozen=True)
class StateRewrite(Message):
    """How the rewrite of a script's state went that was done before the script started."""

    checkpoint: str
    seconds: float
    error: str | None = None  # why it was rolled back; None: it was done, or nothing had to be


@dataclass(frozen=True)
class QueryStatus(Message):
    """A query as it runs now; ids are None until it has started."""

    name: str
    id: str | None
    run: str | None
    busy: bool
    stages: tuple[QueryStage, ...] = ()
    arrived: tuple[Arrival, ...] = ()  # since the last report
    trigger_seconds: float | None = None  # between its batches; None: they follow each other without a pause
    running: RunningBatch | None = None
    checkpoint: str | None = None  # of a script's query that keeps state; None: there is none to keep
    sink: str | None = None  # of a script's query, as Spark calls it


Seconds = Annotated[float, Field(ge=0, le=MOST_WORK, allow_inf_nan=False)]


@dataclass(frozen=True)
class Vitals(Message):
    """What an executor uses, with its Python workers; times count from its start. None: it does not know."""

    at: Annotated[int, Field(ge=0, le=MOST_ID)]  # milliseconds of its own clock
    gc_seconds: Seconds
    heap: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None  # left by a collection / its limit
    cpu_seconds: Seconds | None = None
    compile_seconds: Seconds | None = None  # the part of cpu_seconds that the JVM's compilers took
    load_seconds: Seconds | None = None  # in which the JVM loaded classes
    memory_bytes: Annotated[float, Field(ge=0, le=MOST_BYTES, allow_inf_nan=False)] | None = None


@dataclass(frozen=True)
class Executor(Message):
    """An executor that is registered with the application."""

    id: str
    host: str
    slots: Annotated[int, Field(ge=0, le=MOST_TASKS)]
    page: str | None = None  # where its Worker shows its log
    ready: bool = True  # whether it has finished warming up
    vitals: Vitals | None = None


@dataclass(frozen=True)
class ServiceTime(Message):
    """For how long rows held a task of Real-Time Mode: it worked, or waited, but not for a core."""

    stage: Annotated[int, Field(ge=0, le=MOST_ID)]
    partition: Annotated[int, Field(ge=0, le=MOST_TASKS)]
    seconds: Annotated[float, Field(ge=-MOST_MS, le=MOST_MS, allow_inf_nan=False)]  # sampled: may be below 0


# -- answers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Done(Message):
    """The request was carried out; there is nothing to tell."""

    kind: Literal["done"] = "done"


@dataclass(frozen=True)
class Description(Message):
    """What runs: enough for a controller to build its topology from."""

    steps: tuple[Step, ...] | None  # None: a plain script
    trigger_seconds: float | None
    begun: bool
    parallelism: Mapping[str, int]  # as it was set last
    state: Mapping[str, int]  # partitions of each stateful operator, by its checkpoint
    reserved: int  # slots that readers inside a graph hold in Real-Time Mode
    queries: tuple[QueryStatus, ...]
    rewrites: tuple[StateRewrite, ...] = ()
    kind: Literal["description"] = "description"


@dataclass(frozen=True)
class Report(Message):
    """Everything that happened since the last report."""

    events: tuple[AnyEvent, ...]
    executors: tuple[Executor, ...]
    queries: tuple[QueryStatus, ...]
    served: tuple[ServiceTime, ...] = ()
    kind: Literal["report"] = "report"


@dataclass(frozen=True)
class Refusal(Message):
    """Why something cannot be done; None: it can."""

    why: str | None
    kind: Literal["refusal"] = "refusal"


@dataclass(frozen=True)
class Rescaled(Message):
    """How the rewriting of state went."""

    pause_seconds: float  # from the stop to the first batch after it
    rewrite_seconds: float
    kind: Literal["rescaled"] = "rescaled"


@dataclass(frozen=True)
class Failed(Message):
    """The request was not carried out; `refused` if the user can mend it."""

    error: str
    refused: bool = False
    kind: Literal["failed"] = "failed"

    def as_error(self) -> RheostatError:
        """The same, to raise."""
        return (UserError if self.refused else RheostatError)(self.error)


Answer = Done | Description | Report | Refusal | Rescaled
A = TypeVar("A", Done, Description, Report, Refusal, Rescaled)


# -- requests ---------------------------------------------------------------------------------------------


class Request(Message, Generic[A]):
    """What a controller asks; its parameter is the type of the answer."""

    @classmethod
    def answer_type(cls) -> type[A]:
        """The class of the answer."""
        [base] = vars(cls)["__orig_bases__"]
        [answer] = get_args(base)
        kind: type[A] = answer
        return kind


@dataclass(frozen=True)
class Ping(Request[Done]):
    """Say that you are there."""

    do: Literal["ping"] = "ping"


@dataclass(frozen=True)
class Describe(Request[Description]):
    """Say what you run."""

    do: Literal["describe"] = "describe"


@dataclass(frozen=True)
class Begin(Request[Done]):
    """Start the queries: the nodes that they need are there."""

    parallelism: Mapping[str, int]
    do: Literal["begin"] = "begin"


@dataclass(frozen=True)
class TakeReport(Request[Report]):
    """Say what happened since you were last asked."""

    do: Literal["report"] = "report"


@dataclass(frozen=True)
class RequestExecutors(Request[Done]):
    """Ask the cluster manager to keep this many executors; a lower number ends none."""

    total: int
    do: Literal["executors"] = "executors"


@dataclass(frozen=True)
class Decommission(Request[Done]):
    """Let executors finish their tasks and leave."""

    executors: tuple[str, ...]
    do: Literal["decommission"] = "decommission"


@dataclass(frozen=True)
class KillExecutors(Request[Done]):
    """End executors at once; a micro-batch runs their tasks again elsewhere."""

    executors: tuple[str, ...]
    do: Literal["kill"] = "kill"


@dataclass(frozen=True)
class SetParallelism(Request[Done]):
    """Change stateless operators from the next batch on."""

    targets: Mapping[str, int]
    do: Literal["parallelism"] = "parallelism"


@dataclass(frozen=True)
class CheckRescale(Request[Refusal]):
    """Say whether Spark can rewrite the state of this operator's query."""

    operator: str
    do: Literal["refusal"] = "refusal"


@dataclass(frozen=True)
class Rescale(Request[Rescaled]):
    """Rewrite the state of this operator's query for another number of instances."""

    operator: str
    count: int
    do: Literal["rescale"] = "rescale"


@dataclass(frozen=True)
class Stop(Request[Done]):
    """End the application between two batches."""

    do: Literal["stop"] = "stop"


AnyRequest = (
    Ping
    | Describe
    | Begin
    | TakeReport
    | RequestExecutors
    | Decommission
    | KillExecutors
    | SetParallelism
    | CheckRescale
    | Rescale
    | Stop
)


class Channel(Protocol):
    """Carries requests to a driver process; the engine owns it and hands it to observer and actuator."""

    def ask(self, request: Request[A], timeout: float = ANSWER_SECONDS) -> A:
        """Send a request and wait for its answer; what the driver refuses is a UserError."""

    def hang_up(self) -> None:
        """Give up a request that is under way; the next one opens another connection."""
