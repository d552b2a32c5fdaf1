"""The question behind `rheostat explain`: why a decision was made, what was done, and its effect."""

from dataclasses import dataclass
from typing import Any

from rheostat.analyze.leaves import LEAF_THROUGHPUT, leaf_throughput
from rheostat.control.turn import Decision, Turn
from rheostat.journal.liveness import Liveness, judge_liveness, pending_after
from rheostat.journal.measured import WINDOWS
from rheostat.journal.reader import JournalReader
from rheostat.journal.rows import EFFECT_TURNS, PENDING, TurnSummary, summarise_pending
from rheostat.model.decision import TRIED, Outcome, Status
from rheostat.model.errors import UserError
from rheostat.model.observation import Measure, Observation

# What policies promise, and the measure of a turn that shows it.
EFFECTS = {
    "highest utilisation": "utilisation",
    "load (rows/s)": "load",
    "throughput (rows/s)": "throughput",
    "lag (s)": "lag_seconds",
    "backlog (rows)": "backlog",
    "nodes": "nodes",
}

PREDICTED_TURNS = 60  # whose windows are compared with a prediction


@dataclass(frozen=True, slots=True)
class Effect:
    """A measure before a change and in the windows after it."""

    measure: str
    before: Measure
    after: tuple[Measure, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A throughput that P4's compute model predicted, and the real one from then to the next change."""

    before: Measure  # rows/s that the leaves finished in the last windows before
    expected: float
    measured: Measure  # None: no window shows it yet
    lately: Measure  # in the last minute of them: queues that drained at first have less effect on it
    windows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """One decision, from the measures behind it to its effect."""

    facts: dict[str, Any]
    liveness: Liveness  # of the controller, which may be applying the decision right now
    summary: TurnSummary
    decision: Decision | None  # None: the journal kept its summary only
    following: tuple[TurnSummary, ...]  # the turns that show its effect, up to the next change
    prediction: Prediction | None = None  # where it predicted the throughput of the leaves

    @property
    def outcome(self) -> Outcome | None:
        """What applying it did; None where that is not known."""
        return self.decision.outcome if isinstance(self.decision, Turn) else None

    @property
    def pending(self) -> bool:
        """Whether its change is under way, or was when its controller was killed."""
        return self.summary.status == PENDING

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Every measure before and after."""
        return tuple(
            Effect(measure, getattr(self.summary, column), tuple(getattr(t, column) for t in self.following))
            for measure, column in EFFECTS.items()
        )

    @property
    def changed_again_in(self) -> int | None:
        """The turn that ended its effect by another change."""
        last = self.following[-1] if self.following else None
        return last.number if last and last.status == Status.APPLIED else None


def explain(journal: JournalReader, number: int | None, now: float) -> Explanation:
    """Explain a turn, or the latest change, at a time in unix seconds."""
    last = journal.last()
    pending = pending_after(journal, last)
    newest = pending or last
    if newest is None:
        raise UserError(f"{journal.path}: has no turns yet, so there is nothing to explain")
    if number is not None and not 1 <= number <= newest.number:
        raise UserError(f"there is no turn {number}; {journal.path} has turns 1 to {newest.number}")
    facts, liveness = journal.facts(), judge_liveness(journal, now)
    if pending and number in (None, pending.number):
        return Explanation(facts, liveness, summarise_pending(pending), pending, ())
    summary = _summary(journal, number or _latest_change(journal) or newest.number)
    following = _until_next_change(journal.following(summary.number, EFFECT_TURNS))
    decision = journal.turn(summary.number)
    predicted = _prediction(journal, decision) if decision else None
    return Explanation(facts, liveness, summary, decision, following, predicted)


def _prediction(journal: JournalReader, decision: Turn) -> Prediction | None:
    """Compare a prediction with all windows up to the next change: the first few may still drain a queue."""
    expected = decision.plan.expected.get(LEAF_THROUGHPUT)
    if expected is None or decision.outcome.status != Status.APPLIED:
        return None
    number = decision.number
    before = _since_the_last_change(journal, number)
    after = _up_to_the_next_change(journal, number)
    seconds = after[-1].end - after[0].start if after else 0.0
    return Prediction(
        leaf_throughput(before, lately=True),
        expected,
        leaf_throughput(after),
        leaf_throughput(after, lately=True),
        len(after),
        seconds,
    )


def _since_the_last_change(journal: JournalReader, number: int) -> list[Observation]:
    """The windows up to a turn, its own included, that ran in its configuration, as far as they are kept."""
    windows: list[Observation] = []
    for turn in filter(None, map(journal.turn, range(number, max(0, number - WINDOWS), -1))):
        if windows and turn.outcome.status in TRIED:
            break
        windows.insert(0, turn.observation)
    return windows


def _up_to_the_next_change(journal: JournalReader, number: int) -> list[Observation]:
    """The windows after a turn, as far as they are kept."""
    windows: list[Observation] = []
    for turn in filter(None, map(journal.turn, range(number + 1, number + 1 + PREDICTED_TURNS))):
        windows.append(turn.observation)
        if turn.outcome.status in TRIED:
            break
    return windows


def _latest_change(journal: JournalReader) -> int | None:
    changes = journal.changes(last=1)
    return changes[0].number if changes else None


def _summary(journal: JournalReader, number: int) -> TurnSummary:
    summary = journal.summary(number)
    if summary is None:
        raise UserError(
            f"turn {number} was rolled up, as nothing happened in it; `rheostat status` lists the changes"
        )
    return summary


def _until_next_change(turns: list[TurnSummary]) -> tuple[TurnSummary, ...]:
    ends = (place for place, turn in enumerate(turns, 1) if turn.status == Status.APPLIED)
    return tuple(turns[: next(ends, len(turns))])
