"""A policy may be anybody's code: whatever it does wrong is its failure, in one line, and ours to survive."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rheostat.model.configuration import Configuration
from rheostat.model.decision import Proposal
from rheostat.model.errors import UserError
from rheostat.model.topology import Topology
from rheostat.policies.base import Memory, Policy, Situation, Start

FAILURES = (Exception, SystemExit)  # a policy that calls sys.exit does not end our process
LONGEST = 300
T = TypeVar("T")
_EXPECTED = re.compile(r"Expected `.*?`.*?\[.*?\]")  # what pydantic says is the matter, and with what
_PROPOSAL, _CONFIGURATION = TypeAdapter(Proposal), TypeAdapter(Configuration)
_MEMORY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


def failure(error: BaseException) -> str:
    """What went wrong, as one short line.

    >>> failure(KeyError("load")), failure(SystemExit(3))
    ("KeyError: 'load'", 'SystemExit: 3')
    """
    try:
        text = " ".join(str(error).split())
    except FAILURES:
        text = "its message cannot be shown"
    return f"{type(error).__name__}: {text if len(text) <= LONGEST else f'{text[: LONGEST - 3]}...'}"


def ask(policy: Policy, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
    """Let a policy decide; what is no proposal, or no memory that a journal can keep, raises TypeError."""
    proposal: Any
    proposal, remembered = policy.decide(situation, memory)
    if not isinstance(proposal, Proposal):
        raise TypeError("it must return a Proposal and its memory")
    plain = _plain(_PROPOSAL, proposal, "its proposal")
    _check_operators(plain.target, situation.topology)
    return plain, _kept(remembered)


def first_configuration(policy: Policy, start: Start) -> Configuration:
    """The configuration in which a policy begins; UserError when it cannot say."""
    try:
        chosen: Any = policy.initial(start)
        if not isinstance(chosen, Configuration):
            raise TypeError("its `initial` must return a Configuration")
        first = _plain(_CONFIGURATION, chosen, "its first configuration")
        _check_operators(first, start.topology)
    except UserError:
        raise
    except FAILURES as error:
        raise UserError(f"policy {policy.info.name!r} cannot begin: {failure(error)}") from None
    return first


def _plain(kind: TypeAdapter[T], value: T, what: str) -> T:
    """The value with every field of its very type: engines rely on it, and journals write it."""
    try:
        return kind.validate_json(kind.dump_json(value, warnings="error"), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise TypeError(f"{what} is wrong at {place}: {first['msg']}, not {first['input']!r}") from None
    except ValueError as error:
        expected = _EXPECTED.search(str(error))
        raise TypeError(f"{what} is wrong: {expected.group() if expected else error}") from None


def _check_operators(wanted: Configuration, topology: Topology) -> None:
    if set(wanted.parallelism) != set(topology.names):
        raise TypeError(f"it must name the parallelism of {_listed(topology.names)}, and of no other")
    if min(wanted.nodes, wanted.executors, *wanted.parallelism.values()) < 1:
        raise TypeError("there must be at least one node, executor and instance of each operator")


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:8]) + (f" and {len(every) - 8} more" if len(every) > 8 else "")


def _kept(memory: Any) -> Memory:
    if not isinstance(memory, Mapping):
        raise TypeError(f"its memory must be a dictionary, not {type(memory).__name__}")
    try:
        json.dumps(dict(memory))
        _MEMORY.dump_json(dict(memory), warnings="error")  # as the journal does
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"its memory must be plain JSON data: {error}") from None
    return memory
