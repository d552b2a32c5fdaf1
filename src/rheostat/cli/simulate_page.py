"""How `rheostat simulate` shows the decisions of a run."""

from rich.table import Table

from rheostat.cli import console
from rheostat.control.turn import Turn
from rheostat.model.decision import Status

MAX_DECISIONS = 8  # in the terminal


def show(decisions: list[Turn]) -> None:
    """Print the last decisions."""
    console.out.print()
    console.out.print(
        console.count(len(decisions), "decision")
        + (f", the last {MAX_DECISIONS}:" if len(decisions) > MAX_DECISIONS else ""),
        style="bold",
    )
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    for turn in decisions[-MAX_DECISIONS:]:
        plan, outcome = turn.plan, turn.outcome
        lines = [outcome.configuration.describe(plan.current), f"because {plan.reason}"]
        if outcome.status is Status.FAILED:
            lines.append(f"FAILED: {outcome.reason}")
        if plan.alert:
            lines.append(f"ALERT: {plan.alert}")
        grid.add_row(f"{plan.decided_at:,.0f} s", "\n".join(lines))
    console.out.print(grid)


def decision(turn: Turn) -> dict[str, object]:
    """Return a decision for JSON."""
    return {
        "number": turn.number,
        "at": turn.plan.decided_at,
        "change": turn.outcome.configuration.describe(turn.plan.current),
        "reason": turn.plan.reason,
        "causes": [str(cause) for cause in turn.plan.causes],
        "rejected": list(turn.plan.rejected),
        "vetoes": list(turn.plan.vetoes),
        "alert": turn.plan.alert,
        "status": turn.outcome.status.value,
        "pause_seconds": turn.outcome.pause_seconds,
    }
