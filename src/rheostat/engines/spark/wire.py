"""Writes and reads the messages of the protocol, each a line of JSON.

A line is `{"version": 1, "request": {...}}` or `{"version": 1, "answer": {...}}`. An unknown field, another
type or another version is refused in one line.
"""

import json
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from rheostat.engines.spark.events import short
from rheostat.engines.spark.protocol import (
    PROTOCOL_VERSION,
    A,
    Answer,
    AnyRequest,
    Failed,
    Message,
    Request,
)
from rheostat.model.documents import storable
from rheostat.model.errors import UserError


class ProtocolError(ValueError):
    """A message is malformed; says in one line what is wrong with it."""


class OtherVersionError(UserError):
    """The other side speaks another version of the protocol."""


@dataclass(frozen=True)
class _RequestLine(Message):
    version: int
    request: Annotated[AnyRequest, Field(discriminator="do")]


@dataclass(frozen=True)
class _AnswerLine(Message):
    version: int
    answer: Annotated[Answer | Failed, Field(discriminator="kind")]


_REQUEST, _ANSWER = TypeAdapter(_RequestLine), TypeAdapter(_AnswerLine)


def write_request(request: Request[Any]) -> bytes:
    """A request as a line."""
    assert isinstance(request, AnyRequest)
    return _REQUEST.dump_json(_RequestLine(PROTOCOL_VERSION, request)) + b"\n"


def write_answer(answer: Answer | Failed) -> bytes:
    """An answer as a line."""
    return _ANSWER.dump_json(_AnswerLine(PROTOCOL_VERSION, answer), by_alias=True) + b"\n"


def read_request(line: bytes) -> AnyRequest:
    """The request in a line; ProtocolError, or OtherVersionError."""
    try:
        content = _REQUEST.validate_json(line)
    except ValidationError as error:
        _check_version(_version_in(line))
        raise ProtocolError(f"not a request: {_mistake(error)}") from None
    _check_version(content.version)
    return content.request


def read_answer(request: Request[A], line: bytes) -> A:
    """The answer in a line; raises the failure that it reports, ProtocolError or OtherVersionError."""
    try:
        content = _ANSWER.validate_json(line)
    except ValidationError as error:
        _check_version(_version_in(line))
        raise ProtocolError(f"not an answer: {_mistake(error)}") from None
    _check_version(content.version)
    if isinstance(content.answer, Failed):
        raise content.answer.as_error()
    kind = request.answer_type()
    if not isinstance(content.answer, kind):
        raise ProtocolError(f"a {kind.__name__} was expected, not a {type(content.answer).__name__}")
    return content.answer


def failed(error: str, refused: bool = False) -> Failed:
    """A failure in words that any line can carry."""
    return Failed(storable(error), refused)


def _version_in(line: bytes) -> int | None:
    """The version that a line names, 0 if it is from before there were versions; None: it is no message."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    version = content.get("version", 0 if content.keys() & {"do", "ok", "error"} else None)
    return version if type(version) is int else None


def _check_version(version: int | None) -> None:
    if version not in (None, PROTOCOL_VERSION):
        raise OtherVersionError(
            f"the other side speaks version {version} of the driver's protocol, this side {PROTOCOL_VERSION}"
        )


def _mistake(error: ValidationError) -> str:
    """The first mistake in one line: where, and what is wrong."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"] if part != "function-wrap[_or_unreadable]")
    words = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    if first["type"] not in ("missing", "unexpected_keyword_argument", "json_invalid"):
        words = f"{words}, not {short(first['input'])}"
    return storable(f"{place}: {words}" if place else words)
