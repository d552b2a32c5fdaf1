"""The rounds of a trial: who runs when, and what lies in its folder."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from rheostat.cli import console, results
from rheostat.cli.contest import Contest, Contestant, Result, contestant, read_result
from rheostat.cli.contest_run import run_one
from rheostat.model.errors import UserError
from rheostat.model.files import write_whole
from rheostat.policies.registry import split_top

RESULT, ABOUT = "result.json", "contest.json"


def named(text: str) -> list[str]:
    """The contestants that a text names."""
    return [name.strip() for name in split_top(text) if name.strip()]


def schedule(names: list[str], repeat: int) -> Iterator[tuple[int, Contestant]]:
    """Every contestant once per round; every second round in reverse, so that no place is an advantage."""
    for number in range(1, repeat + 1):
        for name in names if number % 2 else reversed(names):
            yield number, contestant(name)


def prepare(out: Path, contest: Contest) -> None:
    """A folder of this very contest, or a new one."""
    results.make_folder(out)
    about = out / ABOUT
    if about.exists():
        if about.read_text() != contest.json():
            raise UserError(f"{out} holds a trial with other options: choose another folder with --out")
    elif any(out.iterdir()):
        raise UserError(f"{out} is not empty and holds no trial: choose another folder with --out")
    else:
        write_whole(about, contest.json().encode())


def run(contest: Contest, one: Contestant, number: int, out: Path, place: str) -> None:
    """Run a contestant, unless that was done: a run that failed is a result, too."""
    folder = out / one.folder / str(number)
    if (folder / RESULT).exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    with console.err.status("") as status:
        result = run_one(
            contest, one, number, folder, lambda text: status.update(f"{place}: {one.name}: {text}")
        )
    if result.refused and not any(out.glob(f"*/*/{RESULT}")):  # the first: it is the options that are wrong
        shutil.rmtree(out / one.folder, ignore_errors=True)
        (out / ABOUT).unlink()
        raise UserError(result.failure)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / RESULT, result.json())
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    again = f"; delete {folder} to try it again" if result.failure else ""
    console.out.print(f"{place:>9}  {one.name:<24} {result.line()}{again}", soft_wrap=True)


def read(out: Path, names: list[str]) -> list[Result]:
    """All that lies in the folder, those that were asked for first."""
    found = [read_result(path) for path in sorted(out.glob(f"*/*/{RESULT}"))]
    order = {name: place for place, name in enumerate(names)}
    return sorted(found, key=lambda one: (order.get(one.contestant, len(order)), one.contestant, one.number))
