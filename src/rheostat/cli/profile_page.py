"""How `rheostat profile` shows a profile, and how well it predicts."""

from pathlib import Path
from typing import Any

from rheostat.analyze.profiles.contest import CURVES, Contest, mean_error
from rheostat.analyze.profiles.document import as_json as profile_json
from rheostat.analyze.profiles.profile import Profile
from rheostat.analyze.profiles.samples import Points, Samples
from rheostat.cli import console, prose

NODES = "nodes"


def show(profile: Profile, judged: Points, judges: str, as_json: bool, written: list[Path]) -> None:
    """Show a profile, with its error on the windows that judge it; `judges` says which these are."""
    if as_json:
        files = [str(path) for path in written]
        console.print_json({**profile_json(profile), "judged": _errors(profile, judged), "files": files})
        return
    _show_curves(profile, judged, judges)
    _show_selectivity(profile)
    _show_changes(profile)
    for path in written:
        console.out.print(f"written: {path}")


def _show_curves(profile: Profile, judged: Points, judges: str) -> None:
    title = f"{profile.application} ({profile.mode}): CPU of instances by input, of nodes by instances"
    columns = ("of", "best curve", *CURVES, "points", "judged", "points")
    table = console.table(title, *columns, text=2)
    for name, contest, samples in _rows(profile, judged):
        if contest is None:
            table.add_row(name, "too few points", *["-"] * (len(columns) - 2))
            continue
        errors = [_percent(contest.errors.get(kind)) for kind in CURVES]
        error = _judged(contest, samples)
        table.add_row(
            name, contest.curve.name, *errors, f"{contest.samples:,}", _percent(error), f"{len(samples):,}"
        )
    console.out.print(table)
    left_out = f"; {console.count(profile.cold, 'window')} of cold JVMs left out" if profile.cold else ""
    prose.say(
        f"From {console.count(profile.windows, 'window')}{left_out}. Errors are means of "
        "|predicted - measured| / measured: of each curve in ten-fold cross-validation, and, as judged, of "
        f"the best on {judges}.",
        "",
        "",
    )


def _show_selectivity(profile: Profile) -> None:
    if not profile.selectivity:
        return
    table = console.table("selectivity of each stream", "stream", "mean", "deviation", "windows")
    for (upstream, downstream), ratio in profile.selectivity.items():
        numbers = console.number(ratio.mean), console.number(ratio.deviation), f"{ratio.windows:,}"
        table.add_row(f"{upstream} -> {downstream}", *numbers)
    console.out.print(table)


def _show_changes(profile: Profile) -> None:
    if not profile.changes:
        return
    columns = ("change", "fixed", "per GB of state", "per 1,000 rows/s", "changes")
    table = console.table("what changes take, in seconds", *columns)
    for kind, cost in profile.changes.items():
        parts = (cost.fixed, cost.per_gigabyte, cost.per_thousand_rows)
        table.add_row(kind, *(console.number(part) for part in parts), f"{cost.changes:,}")
    console.out.print(table)


def _rows(profile: Profile, judged: Points) -> list[tuple[str, Contest | None, Samples]]:
    none = Samples(judged.nodes.x[:0], judged.nodes.y[:0])
    rows = [
        (name, profile.instances.get(name), judged.instances.get(name, none)) for name in profile.operators
    ]
    return [*rows, (NODES, profile.nodes, judged.nodes)]


def _errors(profile: Profile, judged: Points) -> dict[str, Any]:
    return {
        name: {
            "error": None if contest is None else _judged(contest, samples),
            "points": len(samples),
        }
        for name, contest, samples in _rows(profile, judged)
    }


def _judged(contest: Contest, samples: Samples) -> float | None:
    return mean_error(contest.curve, samples) if len(samples) else None


def _percent(error: float | None) -> str:
    return "-" if error is None else f"{100 * error:.1f} %"
