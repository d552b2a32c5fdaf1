"""`rheostat profile`: what an application's operators and nodes use at which load."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import console, options
from rheostat.model.errors import UserError

HELD_BACK = 0.3  # P2, section 5, holds back 30 % of its data


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("profile", epilog="Example: rheostat profile .rheostat/topk --save topk.json --out topk")(
        _profile
    )


def _profile(
    journals: Annotated[
        list[Path] | None,
        typer.Argument(help="Journals or folders of runs of one application (default: the newest run)."),
    ] = None,
    hold_back: Annotated[
        float,
        typer.Option(
            "--hold-back", min=0.0, max=0.9, help="Share of the windows, the last, that only judge."
        ),
    ] = HELD_BACK,
    save: Annotated[Path | None, typer.Option("--save", help="Write the profile to this JSON file.")] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", help="Learn nothing, but judge a saved profile on all windows."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for a plot of the curves.")] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Learn what load costs from the journals of runs.

    What was learned is judged on windows that were held back: the selectivity of each stream, the CPU of an
    instance at its input rate and of a node with its instances (ELYSIUM's profiles), and what changes cost.
    """
    from rheostat.analyze.profiles.document import read_profile, write_profile
    from rheostat.analyze.profiles.profile import check_operators, learn_and_judge
    from rheostat.cli import profile_page, profile_plot
    from rheostat.cli.journals import find_journal
    from rheostat.journal.profiled import read_runs

    if against and save:
        raise UserError("--against learns nothing that --save could write: omit one of them")
    stored = read_profile(against) if against else None
    given: list[Path | None] = [*journals] if journals else [None]
    paths = [find_journal(path, Path.cwd()) for path in given]
    with console.progress() as begin:
        told = begin("reading journals")
        runs = read_runs(paths, lambda read: told(read / len(paths)))
    if stored is not None:
        check_operators(stored, runs.application, runs.operators)
        profile, judged, judges = stored, runs.points, "all windows of this run"
    else:
        profile, judged = learn_and_judge(
            runs.application, runs.mode, runs.operators, runs.points, runs.changes, hold_back
        )
        judges = f"the last {hold_back:.0%} of the windows, which it never saw"
    plot = profile_plot.draw(profile, runs.points, judged, out) if out else None
    if save:
        write_profile(save, profile)
    profile_page.show(profile, judged, judges, as_json, [path for path in (save, plot) if path])
