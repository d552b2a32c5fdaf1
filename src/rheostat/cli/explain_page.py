"""How `rheostat explain` words one decision: the numbers behind it, what was done, and its effect."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from rheostat.analyze.leaves import LEAF_THROUGHPUT, RECENT_SECONDS
from rheostat.cli import console, prose
from rheostat.cli.journals import (
    Times,
    change_text,
    duration,
    measures,
    query_measures,
    title,
    without_outcome,
)
from rheostat.cli.node_table import node_table
from rheostat.control.turn import Decision, Turn
from rheostat.journal.explanation import Effect, Explanation, Prediction, explain
from rheostat.journal.liveness import State
from rheostat.journal.rows import TurnSummary
from rheostat.journal.store import Journal
from rheostat.model.decision import Cause, Outcome, Plan, Status

_RELATIONS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least", "==": "exactly"}


def show(path: Path, number: int | None, as_json: bool) -> None:
    """Explain a turn, or the latest change."""
    now = time.time()
    with Journal.read(path) as journal:
        explanation = explain(journal, number, now)
    if as_json:
        console.print_json(_json(explanation))
    else:
        _print(explanation, Times.of(explanation.facts, now))


def _print(explanation: Explanation, times: Times) -> None:
    turn, decision = explanation.summary, explanation.decision
    what = change_text(turn) if turn.status != Status.UNCHANGED else "nothing was changed"
    prose.say(
        f"Turn {turn.number} of {title(explanation.facts)}, decided at {times.at(turn.at)}: {what}", "", ""
    )
    if decision is None:
        _print_summary(turn)
    else:
        _print_measures(decision, times)
        _print_reason(decision.plan)
        _print_guards(decision.plan)
        prose.heading("What was done")
        if isinstance(decision, Turn):
            _print_outcome(decision.plan, decision.outcome, times)
        else:
            _print_pending(explanation)
    if turn.status == Status.APPLIED:
        _print_effect(explanation)


def _print_summary(turn: TurnSummary) -> None:
    """Print what is left of an old decision."""
    prose.heading("What the journal still has")
    prose.say("The journal kept only a summary of this decision, to stay within its size.")
    nodes, instances = console.count(turn.nodes, "node"), console.count(turn.instances, "instance")
    prose.say(
        f"Measured: load {console.number(turn.load, 'rows/s')}, throughput "
        f"{console.number(turn.throughput, 'rows/s')}, lag {duration(turn.lag_seconds)}, "
        f"highest utilisation {console.number(turn.utilisation)}, {nodes}, {instances}."
    )
    prose.say(f"Why: {turn.reason}.")
    if turn.veto:
        prose.say(f"The guards: {turn.veto}.")
    if turn.alert:
        prose.say(f"Alert: {turn.alert}.")
    prose.say(f"Outcome ({turn.status}): {turn.outcome}.")


def _print_measures(decision: Decision, times: Times) -> None:
    window, current = decision.observation, decision.plan.current
    prose.heading("What was measured")
    nodes, instances = console.count(current.nodes, "node"), console.count(current.instances, "instance")
    prose.say(f"In the {duration(window.seconds)} until {times.at(window.end)}, on {nodes} with {instances}:")
    prose.say(f"{measures(window.application)}.")
    prose.items(f"{query}." for query in query_measures(window))
    if decision.evaluation.missing:
        prose.say(f"Not measured: {', '.join(decision.evaluation.missing)}.")
    for event in window.events:
        prose.say(f"At {times.at(event.at)}, {event.kind}: {event.text}.")
    if decision.evaluation.operators:
        console.out.print()
        prose.show(_operator_table(decision))
    if window.nodes:
        console.out.print()
        prose.show(node_table(window.nodes, "  "))


def _operator_table(decision: Decision) -> Table:
    columns = ("  operator", "instances", "demand rows/s", "capacity rows/s", "utilisation", "health")
    table = console.table("", *columns)
    table.title = None
    for name, evaluated in decision.evaluation.operators.items():
        measured = decision.observation.operators.get(name)  # absent where somebody edited the journal
        table.add_row(
            f"  {prose.plain(name)}",
            str(measured.parallelism) if measured else "-",
            console.number(evaluated.demand),
            console.number(evaluated.capacity),
            console.number(evaluated.utilisation, "%"),
            console.number(evaluated.health, "%"),
        )
    return table


def _print_reason(plan: Plan) -> None:
    prose.heading("Why")
    prose.say(f"{plan.reason}." if plan.asked_by else f"The policy said: {plan.reason}.")
    prose.items(f"{_cause(cause)}." for cause in plan.causes)
    if plan.alert:
        prose.say(f"It raised an alert: {plan.alert}.")
    if plan.advice:
        prose.say(f"What would help: {plan.advice}.")
    if plan.rejected:
        prose.heading("What was rejected")
        prose.items(f"{alternative}." for alternative in plan.rejected)


def _cause(cause: Cause) -> str:
    relation = _RELATIONS[cause.relation]
    return f"{cause.measure} of {cause.subject}: {cause.value:.4g}, {relation} {cause.threshold:.4g}"


def _print_guards(plan: Plan) -> None:
    prose.heading("What the guards did")
    if not plan.vetoes:
        passed = "the proposal passed unchanged" if plan.changes else "there was no change to check"
        prose.say(f"Nothing: {passed}.")
        return
    proposed = plan.wished.describe(plan.current) if plan.wished else "a change"
    who = plan.asked_by or "The policy"
    prose.say(f"{who} proposed {proposed}. The guards {'changed' if plan.changes else 'refused'} it:")
    prose.items(f"{veto}." for veto in plan.vetoes)


def _print_pending(explanation: Explanation) -> None:
    sentence = without_outcome(explanation.liveness)
    prose.say(f"{sentence[0].upper()}{sentence[1:]}.")
    if explanation.liveness.state in (State.STOPPED, State.GONE):
        prose.say("Repeat `rheostat run` with --resume: it continues and records how this change ended.")


def _print_outcome(plan: Plan, outcome: Outcome, times: Times) -> None:
    if outcome.status is Status.UNCHANGED:
        prose.say("Nothing.")
        return
    if outcome.status is Status.DRY_RUN:
        prose.say(f"Nothing, as this was a {outcome.reason}.")
        return
    for number, step in enumerate(outcome.steps, 1):
        prose.say(f"{step}.", f"  {number}. ", "     ")
    word = "Applied" if outcome.status is Status.APPLIED else outcome.status.upper()
    prose.say(f"{word}: {outcome.reason}.")
    if outcome.status is Status.INTERRUPTED:
        prose.say(f"It was resumed at {times.at(outcome.finished_at)}.")
        return
    took, until = duration(outcome.finished_at - outcome.started_at), times.at(outcome.finished_at)
    paused = f"was paused for {duration(outcome.pause_seconds)}" if outcome.pause_seconds else "never paused"
    prose.say(f"It took {took}, until {until}; the application {paused}.")
    if outcome.status is Status.FAILED:
        prose.items(f"{_cause(cause)}." for cause in outcome.causes if cause not in plan.causes)
        remains = outcome.configuration.describe(plan.current)
        unchanged = remains == "no change"
        prose.say("The application runs as before." if unchanged else f"What remained: {remains}.")


def _print_effect(explanation: Explanation) -> None:
    prose.heading("Expected and actual effect")
    decision, effects = explanation.decision, explanation.effects
    by_measure = {effect.measure: effect for effect in effects}
    if explanation.prediction is not None:
        prose.say(f"{_prediction(explanation.prediction)}.")
    for measure, value in (decision.plan.expected if decision else {}).items():
        if measure == LEAF_THROUGHPUT:
            continue
        actual = _actual(by_measure.get(measure))
        prose.say(f"Expected {measure} {console.number(value)}{actual}.")
    if not explanation.following:
        prose.say("The journal has no window after this change.")
        return
    console.out.print()
    prose.show(_effect_table(effects, len(explanation.following)))
    if explanation.changed_again_in is not None:
        prose.say(f"Then turn {explanation.changed_again_in} made another change.")


def _prediction(prediction: Prediction) -> str:
    """Write a predicted throughput beside the real one."""
    change = f"{console.number(prediction.before)} -> {console.number(prediction.expected, 'rows/s')}"
    predicted = f"Predicted throughput of the leaves {change}"
    if prediction.measured is None:
        return f"{predicted}; no window has shown the real one yet"
    windows = "window" if prediction.windows == 1 else f"{prediction.windows} windows"
    took = duration(prediction.seconds)
    shown = f"{predicted}; the next {windows} ({took}) showed {_beside(prediction, prediction.measured)}"
    if prediction.seconds <= 2 * RECENT_SECONDS:
        return shown
    return f"{shown}; the last minute of them {_beside(prediction, prediction.lately)}"


def _beside(prediction: Prediction, measured: float | None) -> str:
    """Write a real throughput, and how far it is from the predicted one."""
    rate = console.number(measured, "rows/s")
    if measured is None or prediction.expected <= 0:
        return rate
    return f"{rate} ({measured / prediction.expected - 1:+.1%})"


def _actual(effect: Effect | None) -> str:
    """Write what the windows after a change showed of an expectation, as the end of a sentence."""
    if effect is None or not effect.after:
        return ""
    windows = "window" if len(effect.after) == 1 else f"{len(effect.after)} windows"
    return f"; the next {windows} showed {', '.join(console.number(value) for value in effect.after)}"


def _effect_table(effects: tuple[Effect, ...], windows: int) -> Table:
    ordinals = ("next window", "2nd", "3rd")
    table = console.table("", "  ", "before", *ordinals[:windows])
    table.title = None
    for effect in effects:
        values = (effect.before, *effect.after)
        table.add_row(f"  {effect.measure}", *(console.number(value) for value in values))
    return table


def _json(explanation: Explanation) -> dict[str, Any]:
    summary, decision = explanation.summary, explanation.decision
    return {
        "facts": explanation.facts,
        "number": summary.number,
        "kept": "line" if decision is None else "full",
        "line": asdict(summary),
        "next": [asdict(turn) for turn in explanation.following],
        "predicted": asdict(explanation.prediction) if explanation.prediction else None,
        **(_decision_json(decision) if decision else {}),
    }


def _decision_json(decision: Decision) -> dict[str, Any]:
    plan = decision.plan
    return {
        "seen": asdict(decision.observation),
        "evaluation": asdict(decision.evaluation),
        "causes": [{**asdict(cause), "holds": cause.holds()} for cause in plan.causes],
        "rejected": plan.rejected,
        "wished": asdict(plan.wished) if plan.wished else None,
        "vetoes": plan.vetoes,
        "rewrite": asdict(plan.rewrite) if plan.rewrite else None,
        "advice": plan.advice,
        "asked_by": plan.asked_by,
        "expected": dict(plan.expected),
        "current": asdict(plan.current),
        "target": asdict(plan.target),
        "outcome": asdict(decision.outcome) if isinstance(decision, Turn) else None,
    }
