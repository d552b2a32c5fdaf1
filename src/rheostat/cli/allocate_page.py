"""How `rheostat allocate` shows allocations, and what became of one that was applied."""

from pathlib import Path
from typing import Any

from rheostat.allocate import Allocation, MeasuredTopology, cores_used, throughput
from rheostat.cli import console, prose
from rheostat.cli.journals import duration
from rheostat.journal.measured import MeasuredRun
from rheostat.run.control_messages import PlanAnswer
from rheostat.run.hand_allocation import apply_allocation

FULL = 0.99  # of the cores
STEADY = 0.1  # by which the model's present throughput may differ from the measured one
Answers = dict[str, Allocation]


def show(
    topology: MeasuredTopology, units: int, answers: Answers, as_json: bool, run: MeasuredRun | None = None
) -> None:
    """Show the allocations of a topology, perhaps as measured in a run."""
    if as_json:
        console.print_json(_json(topology, answers, run))
    else:
        _print(topology, units, answers, run)


def apply(folder: Path, run: MeasuredRun, units: int, answers: Answers, algorithm: str, as_json: bool) -> int:
    """Show the allocations, hand one of them to the run, and say what became of it; the exit code."""
    if not as_json:
        _print(run.topology, units, answers, run)
        console.out.print()
    answer = apply_allocation(folder, run, answers[algorithm], algorithm)
    if as_json:
        console.print_json({**_json(run.topology, answers, run), "applied": _applied_json(answer)})
    else:
        _print_applied(algorithm, answer)
    return 0 if answer is not None and answer.status == "applied" else 1


def _print(topology: MeasuredTopology, units: int, answers: Answers, run: MeasuredRun | None) -> None:
    now = throughput(topology)
    title = f"{topology.name}: {console.count(units, 'unit')}; now {console.number(now, 'rows/s')}"
    table = console.table(title, "algorithm", "units to add", "throughput", "gain", "proven within", text=2)
    both = False
    for name, answer in answers.items():
        if answer.optimal is None:
            table.add_row(name, *_cells(answer))
            continue
        both = True
        table.add_row(f"{name}, optimal", *_cells(answer.optimal))
        table.add_row(f"{name}, residual", *_cells(answer))
    console.out.print(table)
    if both:
        prose.say(
            "Of each pair, optimal worsens no congestion and may leave units unspent; residual spends all.",
            "",
            "",
        )
    if run is not None:
        _print_measured(run)


def _cells(answer: Allocation) -> tuple[str, str, str, str]:
    units = ", ".join(f"{component}:{added}" for component, added in answer.units.items())
    proven = "" if answer.gap is None else "exact" if answer.gap == 0 else f"{100 * answer.gap:.2f} %"
    gain = ("+" if answer.gain >= 0 else "") + console.number(answer.gain)
    return units or "none", console.number(answer.throughput), gain, proven


def _print_measured(run: MeasuredRun) -> None:
    windows = "the newest window" if run.windows == 1 else f"the newest of {run.windows} windows"
    prose.say(
        f"From {windows} ({duration(run.seconds)}) of the run; a unit is an instance, throughput is what the "
        f"leaves finish: measured {console.number(run.throughput, 'rows/s')}.",
        "",
        "",
    )
    if run.topology.cores is not None:
        used, cores = cores_used(run.topology), run.topology.cores
        prose.say(
            f"By the compute model they use {console.number(used)} of the {console.number(cores, 'cores')} "
            "that all instances share"
            + (": more instances get no more CPU." if used > FULL * cores else "."),
            "",
            "",
        )
    now = throughput(run.topology)
    if run.throughput is not None and now > 0 and abs(run.throughput / now - 1) > STEADY:
        prose.say(
            f"The compute model says {console.number(now, 'rows/s')}, which is far from that: rates are not "
            "steady yet, as while queues drain. Ask again later.",
            "",
            "",
        )


def _print_applied(algorithm: str, answer: PlanAnswer | None) -> None:
    if answer is None:
        prose.say(f"Nothing to apply: {algorithm} finds no instance that would raise the throughput.", "", "")
        return
    for veto in answer.vetoes:
        prose.say(f"The guards: {veto}.", "", "")
    if answer.status == "unchanged":
        prose.say("Not applied: the run stays as it is.", "", "")
    else:
        for number, step in enumerate(answer.steps, 1):
            prose.say(f"{step}.", f"  {number}. ", "     ")
        words = {"applied": "Applied", "failed": "Failed", "dry-run": "Not applied"}
        prose.say(f"{words.get(answer.status, answer.status)}: {answer.outcome}.", "", "")
    prose.say(f"It is turn {answer.number}: `rheostat explain {answer.number}` compares its effect.", "", "")


def _json(topology: MeasuredTopology, answers: Answers, run: MeasuredRun | None) -> dict[str, Any]:
    measured = {} if run is None else {"measured": {"throughput": run.throughput, "windows": run.windows}}
    allocations = {name: _allocation_json(answer) for name, answer in answers.items()}
    return {"throughput": throughput(topology), **measured, "allocations": allocations}


def _allocation_json(answer: Allocation) -> dict[str, Any]:
    proven = {} if answer.gap is None else {"gap": answer.gap}
    optimal = {} if answer.optimal is None else {"optimal": _allocation_json(answer.optimal)}
    whole = {"units": dict(answer.units), "throughput": answer.throughput, "gain": answer.gain}
    return {**whole, **proven, **optimal}


def _applied_json(answer: PlanAnswer | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    return {
        "status": answer.status,
        "turn": answer.number,
        "change": answer.change,
        "vetoes": answer.vetoes,
        "outcome": answer.outcome,
        "parallelism": answer.parallelism,
    }
