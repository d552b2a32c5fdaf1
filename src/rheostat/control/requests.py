"""Plans that people ask for by hand: they wait in an inbox until the loop takes its next turn.

Whoever receives a request (the control API, from another thread) puts it in and waits for the answer. Only
the loop takes requests out, so only the loop's thread ever touches the engine.
"""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from rheostat.model.configuration import Configuration
from rheostat.model.decision import Cause, Outcome, Plan, Proposal
from rheostat.model.errors import RheostatError, UserError, nearest
from rheostat.model.topology import Topology
from rheostat.policies.base import Situation

MOST_WAITING = 20
ENDED = "the run has ended"


@dataclass(frozen=True, slots=True)
class Request:
    """A size that somebody wants; operators that it does not name stay as they are."""

    parallelism: Mapping[str, int]
    reason: str
    by: str  # who asks, as they say
    expected: Mapping[str, float] = field(default_factory=dict)  # the effect, by measure
    preview: bool = False  # say what the guards would make of it, and change nothing

    def check(self, topology: Topology) -> None:
        """Refuse operators that the application does not have."""
        for name in self.parallelism:
            if name not in topology.names:
                raise UserError(f"there is no operator {name!r}{nearest(name, topology.names)}")

    def proposal(self, situation: Situation) -> Proposal:
        """The request as a proposal, as a policy would make it; the guards see to nodes for it."""
        now = situation.configuration
        target = Configuration({**now.parallelism, **self.parallelism}, now.executors, now.nodes)
        causes = tuple(
            Cause("instances asked for", name, float(count), ">" if count > had else "<", float(had))
            for name, count in self.parallelism.items()
            if count != (had := now.parallelism.get(name, 0))
        )
        reason = f"{self.by} asked by hand: {self.reason}"
        return Proposal(target, reason, causes, expected=self.expected, asked_by=self.by)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request: the plan that the guards made of it, and, if it was tried, its outcome."""

    plan: Plan
    outcome: Outcome | None = None  # None: a preview


class RefusedError(RheostatError):
    """A request that became no turn: the run has ended, or too many wait."""


class Ticket:
    """A request that waits, and where its answer will be."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._answered = threading.Event()
        self._answer: Answer | RheostatError = RefusedError(ENDED)

    def answer(self, answer: Answer | RheostatError) -> None:
        """Answer it; only the first answer counts."""
        if not self._answered.is_set():
            self._answer = answer
            self._answered.set()

    def wait(self, seconds: float | None = None) -> Answer:
        """Wait for the answer; RheostatError if the request was refused, TimeoutError if nobody answers."""
        if not self._answered.wait(seconds):
            raise TimeoutError
        if isinstance(self._answer, RheostatError):
            raise self._answer
        return self._answer


class Inbox:
    """The requests that wait, in order; any thread may put one in, the loop takes them out."""

    def __init__(self) -> None:
        self._waiting: deque[Ticket] = deque()
        self._lock = threading.Lock()
        self._closed = False

    def put(self, request: Request) -> Ticket:
        """Add a request; after `close` it is refused at once."""
        ticket = Ticket(request)
        with self._lock:
            if self._closed:
                ticket.answer(RefusedError(ENDED))
            elif len(self._waiting) >= MOST_WAITING:
                ticket.answer(RefusedError(f"{MOST_WAITING} requests wait already: try again later"))
            else:
                self._waiting.append(ticket)
        return ticket

    def look(self) -> Ticket | None:
        """The first request, which stays."""
        with self._lock:
            return self._waiting[0] if self._waiting else None

    def take(self) -> Ticket | None:
        """Take the first request out; whoever takes it answers it."""
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def close(self) -> None:
        """Refuse all that wait, and all that come."""
        with self._lock:
            self._closed = True
            while self._waiting:
                self._waiting.popleft().answer(RefusedError(ENDED))
