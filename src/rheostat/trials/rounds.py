"""The rounds of a trial: who runs when, and what its folder holds."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rheostat.model.errors import UserError
from rheostat.model.files import make_folder, write_whole
from rheostat.trials.contestant_run import run_contestant
from rheostat.trials.contestants import Contestant, contestant
from rheostat.trials.report import Report, make_report
from rheostat.trials.setup import Contestants
from rheostat.trials.trial import Result, Trial, read_result

RESULT, ABOUT, REPORT = "result.json", "trial.json", "trial.md"
EARLIER_ABOUT = "contest.json"  # what trial.json was called


def schedule(names: list[str], repeat: int) -> Iterator[tuple[int, Contestant]]:
    """Yield every contestant once per round; every second round in reverse, so that no place is better."""
    for number in range(1, repeat + 1):
        for name in names if number % 2 else reversed(names):
            yield number, contestant(name)


def prepare(out: Path, trial: Trial) -> None:
    """Create the folder of a trial, or check that it holds the same trial."""
    make_folder(out)
    about = out / ABOUT
    if (out / EARLIER_ABOUT).exists() and not about.exists():
        (out / EARLIER_ABOUT).rename(about)
    if about.exists():
        if not trial.has_options(about.read_bytes()):
            raise UserError(f"{out} holds a trial with other options: choose another folder with --out")
    elif any(out.iterdir()):
        raise UserError(f"{out} is not empty and holds no trial: choose another folder with --out")
    else:
        write_whole(about, trial.json().encode())


def folder_of(out: Path, contestant: Contestant, number: int) -> Path:
    """Return where a run keeps its files."""
    return out / contestant.folder / str(number)


def run(
    trial: Trial, contestant: Contestant, number: int, out: Path, say: Callable[[str], None]
) -> Result | None:
    """Run a contestant, unless it has a result already; a failed run is a result, too."""
    folder = folder_of(out, contestant, number)
    if (folder / RESULT).exists():
        return None
    shutil.rmtree(folder, ignore_errors=True)
    result = run_contestant(trial, contestant, number, folder, say)
    if result.refused and not any(out.glob(f"*/*/{RESULT}")):  # the first run: the options are wrong
        shutil.rmtree(out / contestant.folder, ignore_errors=True)
        (out / ABOUT).unlink()
        raise UserError(result.failure)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / RESULT, result.json())
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    return result


def report(out: Path, trial: Trial, contestants: Contestants) -> Report | None:
    """Judge the results in the folder; None without any."""
    results = read_results(out, contestants.names)
    return make_report(trial, contestants.policies, results) if results else None


def write_report(out: Path, report: Report, plots: Sequence[str]) -> Path:
    """Write the report as Markdown, with its plots."""
    write_whole(out / REPORT, report.markdown(plots).encode())
    return out / REPORT


def read_results(out: Path, names: list[str]) -> list[Result]:
    """Read all results in the folder, in the order of these names; others follow."""
    results = [read_result(path) for path in sorted(out.glob(f"*/*/{RESULT}"))]
    order = {name: place for place, name in enumerate(names)}

    def rank(result: Result) -> tuple[int, str, int]:
        return order.get(result.contestant, len(order)), result.contestant, result.number

    return sorted(results, key=rank)
