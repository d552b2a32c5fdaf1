"""The control loop: a turn observes, evaluates, decides, guards, records, applies, records the outcome."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from rheostat.analyze.evaluation import evaluate
from rheostat.control.guards import Guards
from rheostat.control.ports import Clock, Engine, Recorder
from rheostat.control.requests import Answer, Inbox, RefusedError, Ticket
from rheostat.control.rescaling import Rescaling
from rheostat.control.turn import Decision, Turn
from rheostat.model.configuration import Bounds
from rheostat.model.decision import TRIED, Outcome, Plan, Proposal, Status
from rheostat.model.errors import RheostatError, UserError
from rheostat.policies.base import Policy, Situation, hold
from rheostat.policies.foreign import FAILURES, ask, failure

ALARM_TRIGGERS, ALARM_SECONDS = 3, 5.0  # an alarm brings no turn sooner than this after the last one
LEAST_SECONDS = 1.0  # before the first turn, so that there is something to see
NOT_FINISHED = "the controller stopped before this change was finished"


class NoRecorder:
    """Records nothing: for simulations that are only judged, and for tests."""

    def decided(self, decision: Decision) -> None:
        """Do nothing."""

    def done(self, turn: Turn) -> None:
        """Do nothing."""


@dataclass
class Loop:
    """Keeps an engine at the size that a policy and the guards ask for."""

    engine: Engine
    clock: Clock
    policy: Policy
    bounds: Bounds = Bounds()
    guards: Guards = field(default_factory=Guards)
    rescaling: Rescaling = field(default_factory=Rescaling)
    seed: int = 0
    memory: Mapping[str, Any] = field(default_factory=dict)
    changed_at: tuple[float, ...] = ()  # the times of the changes that the guards still count
    turns: int = 0
    dry_run: bool = False  # decide and record, but change nothing
    recorder: Recorder = field(default_factory=NoRecorder)
    advice: str | None = None  # what would help and is not done, by the last window that was measured
    requests: Inbox = field(default_factory=Inbox)  # plans by hand, which go before the policy's
    _last: Situation | None = None  # of the last turn, for previews
    _operators: Set[str] = field(default_factory=frozenset)  # at the last turn

    def resume(self, last: Decision, changed_at: Iterable[float]) -> None:
        """Continue after another controller's last decision; the clock must have the same zero."""
        self.turns, self.memory = last.number, last.memory
        self.changed_at = self._counted(changed_at, self.clock.now())

    def reconcile(self, unfinished: Decision) -> Turn:
        """Record the outcome of a change whose controller was killed, judging by what the engine runs now."""
        plan, now = unfinished.plan, self.engine.configuration
        changed = now.describe(plan.current)
        ran = "ran as before" if changed == "no change" else f"ran with {changed}"
        if plan.rewrite is not None:
            ran = "ran again; its next windows show on how many state partitions"
        reason = f"{NOT_FINISHED}; when the run was resumed, the application {ran}"
        return self._finish(
            unfinished,
            Outcome(Status.INTERRUPTED, now, plan.decided_at, self.clock.now(), reason, plan.causes),
        )

    def run(self, until: float, since: float | None = None) -> Iterator[Turn]:
        """Do one turn per period, or sooner on an alarm or a request by hand, until the clock reaches a time.

        The first period began when the application did: `since`, if that was earlier.
        """
        period = self.policy.period_seconds
        passed = 0.0 if since is None else self.clock.now() - since
        wait = max(min(LEAST_SECONDS, period), period - passed)
        while (before := self.clock.now()) < until:
            self.clock.sleep(min(wait, until - before), self._roused(before))
            wait = period
            if (now := self.clock.now()) <= before:  # the loop would never end
                raise UserError(f"a period of {self.policy.period_seconds:g} s is too short for this clock")
            if now < until:
                yield self.turn()

    def _roused(self, since: float) -> Callable[[], bool]:
        """Whether a wait should end: a request by hand waits for a turn, or the engine raises an alarm."""
        alarm = self._alarm(since)
        return lambda: self._request_waits() or alarm()

    def _request_waits(self) -> bool:
        """Whether the first request needs a turn; those that need none are answered here."""
        while (ticket := self.requests.look()) is not None:
            try:
                ticket.request.check(self.engine.topology)
                if not ticket.request.preview:
                    return True
                ticket.answer(self._preview(ticket))
            except RheostatError as error:
                ticket.answer(error)
            self.requests.take()
        return False

    def _preview(self, ticket: Ticket) -> Answer:
        """What the guards would make of a request now, by the last window."""
        if self._last is None:
            raise RefusedError("no window is measured yet: ask again after the first turn")
        now, configuration = self.clock.now(), self.engine.configuration
        situation = replace(self._last, now=now, configuration=configuration)
        proposal = ticket.request.proposal(situation)
        return Answer(self.guards.check(proposal, situation, self.changed_at, self.turns + 1))

    def _alarm(self, since: float) -> Callable[[], bool]:
        """Whether the engine's alarm should end a wait: it would be for nothing while a cool-down lasts."""
        earliest = since + max(ALARM_SECONDS, ALARM_TRIGGERS * (self.engine.model.trigger_seconds or 0.0))
        if self.changed_at:
            earliest = max(earliest, self.changed_at[-1] + self.guards.cooldown_seconds)
        return lambda: self.engine.alarmed and self.clock.now() >= earliest

    def turn(self) -> Turn:
        """Do one turn, for the first request if one waits, else for the policy.

        Only a failure to observe raises: without measures there is nothing to decide.
        """
        ticket = self.requests.take() if self._request_waits() else None
        try:
            turn = self._turn(ticket)
            if ticket is not None:
                ticket.answer(Answer(turn.plan, turn.outcome))
        finally:
            if ticket is not None:
                ticket.answer(RefusedError("the run ended before this was answered; see `rheostat explain`"))
        return turn

    def _turn(self, ticket: Ticket | None) -> Turn:
        now = self.clock.now()
        observation = self.engine.observe()
        evaluation = evaluate(self.engine.topology, observation, self.engine.model, self.engine.kinds[0])
        if observation.operators.keys() != self._operators:  # what was learned was about another application
            self.memory = {} if self._operators else self.memory
            self._operators = observation.operators.keys()
        situation = Situation(
            now=now,
            topology=self.engine.topology,
            configuration=self.engine.configuration,
            observation=observation,
            evaluation=evaluation,
            model=self.engine.model,
            kinds=self.engine.kinds,
            bounds=self.bounds,
            seed=self.seed,
            local_start=self.clock.local_time(now) - now,  # changes with daylight saving time
        )
        self._last = situation
        if ticket is None:
            proposal = self._advised(self._ask(situation), situation)
        else:
            proposal = replace(ticket.request.proposal(situation), advice=self.advice)
        self.turns += 1
        plan = self.guards.check(proposal, situation, self.changed_at, self.turns)
        decision = Decision(self.turns, observation, evaluation, plan, self.memory)
        if self.dry_run:
            return self._finish(decision, self._dry(plan))
        if plan.changes:  # otherwise a killed controller leaves nothing half-done
            self.recorder.decided(decision)
        return self._finish(decision, self._apply(plan))

    def _finish(self, decision: Decision, outcome: Outcome) -> Turn:
        """Record a turn with its outcome; the guards count it if it may have changed something."""
        turn = decision.with_outcome(outcome)
        self.recorder.done(turn)
        if outcome.status in TRIED:
            self.changed_at = self._counted((*self.changed_at, outcome.finished_at), outcome.finished_at)
        return turn

    def _ask(self, situation: Situation) -> Proposal:
        """Ask the policy; if it fails, hold, keep its memory and ask again in the next turn."""
        try:
            proposal, self.memory = ask(self.policy, situation, self.memory)
        except FAILURES as error:  # a failing policy must not end the application
            alert = f"policy {self.policy.info.name!r} failed: {failure(error)}"
            return replace(hold(situation, f"hold: {alert}"), alert=alert)
        return proposal

    def _advised(self, proposal: Proposal, situation: Situation) -> Proposal:
        """Add the rewrite that is worth it, or the advice; where nothing was measured, the last advice."""
        proposal = self.rescaling.check(proposal, situation, self.engine)
        if not situation.evaluation.missing:
            self.advice = proposal.advice
        return replace(proposal, advice=self.advice)

    def _apply(self, plan: Plan) -> Outcome:
        """Apply a plan; if the engine fails, the change has failed, but the loop goes on."""
        try:
            return self.engine.apply(plan)
        except RheostatError as error:
            ended = self.clock.now()
            return Outcome(
                Status.FAILED, self.engine.configuration, plan.decided_at, ended, _line(error), plan.causes
            )

    def _dry(self, plan: Plan) -> Outcome:
        now, status, reason = plan.decided_at, Status.UNCHANGED, plan.reason
        if plan.changes:
            status, reason = Status.DRY_RUN, f"dry run: would change {plan.describe()}"
        return Outcome(status, plan.current, now, now, reason, plan.causes)

    def _counted(self, times: Iterable[float], now: float) -> tuple[float, ...]:
        """The times that the guards still need; older ones would only grow the list."""
        return tuple(time for time in times if now - time < self.guards.memory_seconds)


def _line(error: Exception) -> str:
    """The error's message as one short line."""
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:297]}..."
