"""What the control API of a run and its clients say to each other, as JSON; versioned by its path.

A later version adds a path beside `/v1`; a key that a message does not have is refused, so that a client
of a later version is told, not misunderstood.
"""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from rheostat.control.requests import Answer, Request
from rheostat.model.errors import UserError, nearest

VERSION = 1
PLANS = f"/v{VERSION}/plans"  # POST: propose a plan; with ?dry, only say what the guards would make of it
CONTROL = "control.json"  # in the run's folder
MAX_BYTES = 64 * 1024  # of a request
MOST_INSTANCES = 10_000
PREVIEW = "preview"  # the status of a plan that was not to be applied
_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

Name = Annotated[str, Field(min_length=1, max_length=200)]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ControlFile:
    """Where a run's control API listens, and what proves that somebody may use it."""

    __pydantic_config__ = ConfigDict(extra="ignore", strict=True)  # a later version may say more

    version: int
    host: Annotated[str, Field(pattern=r"^127\.0\.0\.1$")]  # a client sends its token nowhere else
    port: Annotated[int, Field(ge=1, le=65535)]
    pid: int
    token: Annotated[str, Field(min_length=32, max_length=200, pattern=r"^[\w-]+$")]


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A size that somebody wants; operators that it does not name stay as they are."""

    __pydantic_config__ = _STRICT

    parallelism: Annotated[
        dict[Name, Annotated[int, Field(ge=1, le=MOST_INSTANCES)]], Field(min_length=1, max_length=3000)
    ]
    reason: Annotated[str, Field(min_length=1, max_length=500)]
    by: Annotated[str, Field(min_length=1, max_length=100)]  # USER@HOST
    expected: Annotated[dict[Name, float], Field(max_length=20)] = field(default_factory=dict)

    def as_request(self, *, preview: bool) -> Request:
        """The request as the loop takes it; its texts become one line each."""
        texts = [" ".join(text.split()) for text in (self.reason, self.by)]
        return Request(
            self.parallelism, texts[0] or "no reason given", texts[1] or "somebody", self.expected, preview
        )


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """What became of a requested plan."""

    __pydantic_config__ = _STRICT

    status: str  # as a turn's outcome: applied, failed, unchanged, dry-run; or preview
    number: int | None  # of the turn, for `rheostat explain`; None: a preview
    change: str  # what passed the guards, in words
    vetoes: list[str]  # what the guards changed or refused, and why
    outcome: str
    steps: list[str]
    parallelism: dict[str, int]  # afterwards; of a preview, as it would be

    @classmethod
    def of(cls, answer: Answer) -> "PlanAnswer":
        """Word an answer of the loop."""
        plan, outcome = answer.plan, answer.outcome
        if outcome is None:
            return cls(
                PREVIEW, None, plan.describe(), list(plan.vetoes), "", [], dict(plan.target.parallelism)
            )
        return cls(
            outcome.status.value,
            plan.number,
            plan.describe(),
            list(plan.vetoes),
            outcome.reason,
            list(outcome.steps),
            dict(outcome.configuration.parallelism),
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request got no other answer."""

    __pydantic_config__ = _STRICT

    error: str


def write(message: Any) -> bytes:
    """A message as JSON."""
    return TypeAdapter(type(message)).dump_json(message)


def read(kind: type[T], text: bytes, source: str | Path) -> T:
    """A message from JSON; UserError says in one line what is wrong with it."""
    try:
        return TypeAdapter(kind).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        if first["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
            known = [each.name for each in fields(kind)]  # type: ignore[arg-type] # a dataclass
            raise UserError(f"{source}: unknown key {place!r}{nearest(place, known)}") from None
        what = f"{place}: {first['msg']}" if place else first["msg"]
        raise UserError(f"{source}: {what[:300]}") from None
