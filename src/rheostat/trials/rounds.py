"""The rounds of a trial: who runs when, and what its folder holds."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from rheostat.model.errors import UserError
from rheostat.model.files import make_folder, write_whole
from rheostat.policies.registry import split_top
from rheostat.trials.contestant_run import run_one
from rheostat.trials.contestants import Contestant, contestant
from rheostat.trials.trial import Result, Trial, read_result

RESULT, ABOUT = "result.json", "trial.json"


def split_names(text: str) -> list[str]:
    """Split a list of contestants at its commas, except those inside parentheses."""
    return [name.strip() for name in split_top(text) if name.strip()]


def schedule(names: list[str], repeat: int) -> Iterator[tuple[int, Contestant]]:
    """Yield every contestant once per round; every second round in reverse, so that no place is better."""
    for number in range(1, repeat + 1):
        for name in names if number % 2 else reversed(names):
            yield number, contestant(name)


def prepare(out: Path, trial: Trial) -> None:
    """Make the folder of a trial, or check that it holds the same one."""
    make_folder(out)
    about = out / ABOUT
    if about.exists():
        if about.read_text() != trial.json():
            raise UserError(f"{out} holds a trial with other options: choose another folder with --out")
    elif any(out.iterdir()):
        raise UserError(f"{out} is not empty and holds no trial: choose another folder with --out")
    else:
        write_whole(about, trial.json().encode())


def folder_of(out: Path, one: Contestant, number: int) -> Path:
    """Return where a run keeps its files."""
    return out / one.folder / str(number)


def run(trial: Trial, one: Contestant, number: int, out: Path, say: Callable[[str], None]) -> Result | None:
    """Run a contestant, unless it ran already; a run that failed is a result, too."""
    folder = folder_of(out, one, number)
    if (folder / RESULT).exists():
        return None
    shutil.rmtree(folder, ignore_errors=True)
    result = run_one(trial, one, number, folder, say)
    if result.refused and not any(out.glob(f"*/*/{RESULT}")):  # the first: the options are wrong
        shutil.rmtree(out / one.folder, ignore_errors=True)
        (out / ABOUT).unlink()
        raise UserError(result.failure)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / RESULT, result.json())
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    return result


def read_results(out: Path, names: list[str]) -> list[Result]:
    """Read all results in the folder, those that were asked for first."""
    found = [read_result(path) for path in sorted(out.glob(f"*/*/{RESULT}"))]
    order = {name: place for place, name in enumerate(names)}
    return sorted(found, key=lambda one: (order.get(one.contestant, len(order)), one.contestant, one.number))
