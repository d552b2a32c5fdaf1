"""What Spark's listeners report, as checked values.

The driver process reads these from Spark, the controller reads them from the driver process. One absurd event
must not cost a whole report: it becomes `Unreadable`, which says which query and batch it belonged to.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WrapValidator,
)
from pydantic.alias_generators import to_camel

from rheostat.model.documents import storable

MOST_ROWS = 10**15  # of one batch
MOST_MS = 86_400_000.0  # of one batch
MOST_WORK = 1e20  # of CPU or time, over all tasks of a stage
MOST_TASKS = 10**6
MOST_BYTES = 10**18
MOST_ID = 10**15
_SHORT = 40  # characters of a value in a message


def _or_none(value: Any, read: Callable[[Any], Any]) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


def _or_empty(value: Any, read: Callable[[Any], Any]) -> Any:
    try:
        return read(value)
    except ValidationError:
        return {}


def _only_mappings(value: Any) -> list[Any]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return "" if value is None else storable(str(value))


def moment(text: str) -> float:
    """A time as Spark writes it, in unix seconds."""
    return datetime.fromisoformat(text).timestamp()


def _check_moment(text: str) -> str:
    try:
        moment(text)
    except (OverflowError, OSError) as error:
        raise ValueError(str(error)) from None
    return text


Name = Annotated[str, Field(min_length=1)]
Text = Annotated[str, BeforeValidator(_text)]
Moment = Annotated[str, AfterValidator(_check_moment)]
Id = Annotated[int, Field(strict=True, ge=0, le=MOST_ID)]
Rows = Annotated[int, Field(strict=True, ge=0, le=MOST_ROWS)]
Work = Annotated[float, Field(strict=True, ge=0, le=MOST_WORK)]
Tasks = Annotated[int, Field(strict=True, ge=1, le=MOST_TASKS)]
# Values without which a batch can still be judged: an absurd one counts as missing.
At = Annotated[Annotated[float, Field(strict=True, ge=0, le=MOST_ID)] | None, WrapValidator(_or_none)]
Milliseconds = Annotated[
    Annotated[float, Field(strict=True, ge=0, le=MOST_MS)] | None, WrapValidator(_or_none)
]
Count = Annotated[Rows | None, WrapValidator(_or_none)]
Bytes = Annotated[Annotated[int, Field(strict=True, ge=0, le=MOST_BYTES)] | None, WrapValidator(_or_none)]
Counts = Annotated[Mapping[str, Count], WrapValidator(_or_empty)]


class _Said:
    """Spark's own objects have more fields than we need."""

    __pydantic_config__: ClassVar = ConfigDict(
        extra="ignore", strict=False, allow_inf_nan=False, alias_generator=to_camel
    )


class _Heard:
    """An event as `StageTap.java` writes it."""

    __pydantic_config__: ClassVar = ConfigDict(extra="ignore", strict=False, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class StageEnded(_Heard):
    """A stage of a batch ended."""

    id: Id
    query: Name
    batch: Id
    parents: tuple[Id, ...]
    tasks: Tasks
    failed: bool
    cpu_ns: Work
    run_ms: Work
    wait_ms: Work
    python_ms: Work
    # Per task: executor, CPU ns, rows read, ms in its slot, index, rows that left it (None: not counted).
    each: tuple[tuple[str, Work, Rows, Work, Id, Count], ...]
    place: Count = None  # which stage of its batch's plan it is; None: of another plan, or not known
    places: Count = None  # the stages that this plan has
    event: Literal["stage"] = "stage"


@dataclass(frozen=True, slots=True)
class StateProgress(_Said):
    """What a stateful operator holds."""

    num_rows_total: Count = None
    memory_used_bytes: Bytes = None
    all_updates_time_ms: Milliseconds = None  # its rows took, summed over its partitions
    commit_time_ms: Milliseconds = None
    num_shuffle_partitions: Count = None
    custom_metrics: Annotated[Mapping[str, Bytes], WrapValidator(_or_empty)] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceProgress(_Said):
    """Where a source stands; what an offset looks like is the connector's business."""

    description: Text = ""
    end_offset: Any = None
    latest_offset: Any = None


@dataclass(frozen=True, slots=True)
class Progress(_Said):
    """A batch of a query ended, by Spark's own names."""

    id: Name
    timestamp: Moment
    batch_id: Id
    duration_ms: Mapping[str, Milliseconds]
    run_id: str = ""
    batch_duration: Milliseconds = None
    num_input_rows: Count = None
    observed_metrics: Annotated[Mapping[str, Counts], WrapValidator(_or_empty)] = field(default_factory=dict)
    state_operators: Annotated[tuple[StateProgress, ...], BeforeValidator(_only_mappings)] = ()
    sources: Annotated[tuple[SourceProgress, ...], BeforeValidator(_only_mappings)] = ()


@dataclass(frozen=True, slots=True)
class BatchEnded(_Heard):
    """A batch ended."""

    progress: Progress
    event: Literal["progress"] = "progress"


@dataclass(frozen=True, slots=True)
class Idle(_Heard):
    """A trigger at which a query had nothing to do."""

    query: Name
    timestamp: Moment
    event: Literal["idle"] = "idle"


@dataclass(frozen=True, slots=True)
class ExecutorAdded(_Heard):
    """An executor registered."""

    id: Text
    slots: Text = ""
    at: At = None
    event: Literal["executor added"] = "executor added"


@dataclass(frozen=True, slots=True)
class ExecutorRemoved(_Heard):
    """An executor is gone."""

    id: Text
    reason: Text = ""
    at: At = None
    event: Literal["executor removed"] = "executor removed"


@dataclass(frozen=True, slots=True)
class QueryStarted(_Heard):
    """A run of a query began."""

    run: Text = ""
    name: Text = ""
    at: At = None
    event: Literal["query started"] = "query started"


@dataclass(frozen=True, slots=True)
class QueryEnded(_Heard):
    """A run of a query ended; `reason` says why, if it died."""

    reason: Text = ""
    at: At = None
    event: Literal["query ended"] = "query ended"


@dataclass(frozen=True, slots=True)
class Note(_Heard):
    """The driver process's own remark."""

    kind: Text
    text: Text
    at: At = None
    event: Literal["note"] = "note"


@dataclass(frozen=True, slots=True)
class Unreadable(_Heard):
    """An event that makes no sense."""

    why: Text
    query: str | None = None  # None: not known
    ends_batch: bool = False
    batch: int | None = None  # the batch that it ends, as far as is known
    event: Literal["unreadable"] = "unreadable"


Reported = ExecutorAdded | ExecutorRemoved | QueryStarted | QueryEnded | Note
Event = StageEnded | BatchEnded | Idle | Reported | Unreadable


def _or_unreadable(value: Any, read: Callable[[Any], Event]) -> Event:
    try:
        return read(value)
    except ValidationError as error:
        return _unreadable(value, error)


def _unreadable(value: Any, error: ValidationError) -> Unreadable:
    heard = value if isinstance(value, Mapping) else {}
    progress = heard.get("progress") if heard.get("event") == "progress" else None
    if isinstance(progress, Mapping):
        query, batch = progress.get("id"), _BATCH.validate_python(progress.get("batchId"))
    else:
        query, batch = heard.get("query"), None
    known = storable(query) if isinstance(query, str) and query else None
    return Unreadable(_first_mistake(error), known, isinstance(progress, Mapping), batch)


def _first_mistake(error: ValidationError) -> str:
    mistake = error.errors(include_url=False)[0]
    place = next((str(part) for part in reversed(mistake["loc"]) if isinstance(part, str)), "an event")
    return f"{place} is {'missing' if mistake['type'] == 'missing' else short(mistake['input'])}"


def short(value: object) -> str:
    """Any value in a few words.

    >>> short("x" * 100), short(None)
    ('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...', 'missing')
    """
    text = "missing" if value is None else " ".join(str(value).split())
    return storable(text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}...")


AnyEvent = Annotated[
    Annotated[Event, Field(discriminator="event")],
    WrapValidator(_or_unreadable),
]
_BATCH: TypeAdapter[int | None] = TypeAdapter(Count)
_EVENTS: TypeAdapter[tuple[Event, ...]] = TypeAdapter(tuple[AnyEvent, ...])


def read_events(heard: Sequence[Any]) -> tuple[Event, ...]:
    """Check plain data; what makes no sense becomes `Unreadable`.

    >>> read_events([{"event": "note", "kind": "query", "text": "died"}])
    (Note(kind='query', text='died', at=None, event='note'),)
    """
    return _EVENTS.validate_python(list(heard))


def parse_events(text: str) -> tuple[Event, ...]:
    """The same for JSON, as the tap in Spark's JVM writes it."""
    return _EVENTS.validate_json(text)
