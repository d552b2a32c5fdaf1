"""A policy may be anybody's code: whatever it does wrong is its failure, in one line, and ours to survive."""

import json
from collections.abc import Mapping
from typing import Any

from rheostat.model.configuration import Configuration
from rheostat.model.decision import Proposal
from rheostat.model.errors import UserError
from rheostat.policies.base import Memory, Policy, Situation, Start

FAILURES = (Exception, SystemExit)  # a policy that calls sys.exit does not end our process
LONGEST = 300


def failure(error: BaseException) -> str:
    """What went wrong, as one short line.

    >>> failure(KeyError("load")), failure(SystemExit(3))
    ("KeyError: 'load'", 'SystemExit: 3')
    """
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text if len(text) <= LONGEST else f'{text[: LONGEST - 3]}...'}"


def ask(policy: Policy, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
    """Let a policy decide; what is no proposal, or no memory that a journal can keep, raises TypeError."""
    proposal: Any
    proposal, remembered = policy.decide(situation, memory)
    if not isinstance(proposal, Proposal) or not isinstance(proposal.reason, str):
        raise TypeError("it must return a Proposal with a reason, and its memory")
    return proposal, _kept(remembered)


def first_configuration(policy: Policy, start: Start) -> Configuration:
    """The configuration in which a policy begins; UserError when it cannot say."""
    try:
        chosen: Any = policy.initial(start)
    except UserError:
        raise
    except FAILURES as error:
        raise UserError(f"policy {policy.info.name!r} cannot begin: {failure(error)}") from None
    if not isinstance(chosen, Configuration):
        raise UserError(f"policy {policy.info.name!r} cannot begin: its `initial` returns no Configuration")
    return chosen


def _kept(memory: Any) -> Memory:
    if not isinstance(memory, Mapping):
        raise TypeError(f"its memory must be a dictionary, not {type(memory).__name__}")
    try:
        json.dumps(dict(memory))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"its memory must be plain JSON data: {error}") from None
    return memory
