"""`rheostat allocate` for a run under way: from its journal to a plan by hand, and `explain` after it."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rheostat.control.guards import Guards
from rheostat.control.loop import Loop
from rheostat.journal.store import Journal
from rheostat.model.configuration import Bounds
from rheostat.model.observation import Observation
from rheostat.policies.static import Static
from rheostat.run.control_api import serving
from tests.cli.commands import call, refused
from tests.control.fakes import FakeClock, FakeEngine
from tests.journal.samples import turns, write


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


@dataclass
class Congested(FakeEngine):
    """`words` at 3,000 rows/s; an instance of split serves 2,000 of them, one of count 2,500."""

    load: float = 3_000.0
    rates: dict[str, float] = field(
        default_factory=lambda: {"lines": 1e9, "split": 2_000.0, "count": 2_500.0}
    )

    def observe(self) -> Observation:
        window = super().observe()
        done = min(1.0, *(self.rates[n] * p / self.load for n, p in self.configuration.parallelism.items()))
        operators = {
            name: replace(
                o,
                processed=done * (o.processed or 0),
                received=o.received if name == "lines" else done * (o.received or 0),
                emitted={below: done * rows for below, rows in o.emitted.items()},
                cpu_seconds=done * (o.cpu_seconds or 0),
                busy_seconds=done * (o.busy_seconds or 0),
                waiting=None,
            )
            for name, o in window.operators.items()
        }
        application = replace(window.application, throughput=done * self.load)
        return replace(window, operators=operators, application=application)


def wait_for_turn(folder: Path, number: int) -> None:
    """Wait until the controller has taken a turn; a minute is plenty even on a busy machine."""
    until = time.monotonic() + 60
    with Journal.read(folder / "journal.sqlite") as journal:
        while (last := journal.last()) is None or last.number < number:
            assert time.monotonic() < until, f"turn {number}"


@contextmanager
def run(
    folder: Path, guards: Guards | None = None, dry_run: bool = False, mode: str = "realtime"
) -> Iterator[None]:
    """A controller in a thread: three turns, then one for each request, and three more after it."""
    ready, stop = threading.Event(), threading.Event()

    def control() -> None:
        engine = Congested(FakeClock())
        folder.mkdir(parents=True)
        with Journal(folder / "journal.sqlite") as journal:
            journal.describe({"application": "words", "policy": "static", "mode": mode})
            loop = Loop(
                engine,
                engine.clock,
                Static(60.0),
                Bounds(1, 4),
                guards or Guards(),
                recorder=journal,
                dry_run=dry_run,
            )
            due = 3
            with serving(folder, loop.requests):
                while not stop.is_set():
                    if due or loop.requests.look():
                        due = due - 1 if due else 3
                        engine.clock.sleep(60.0)
                        loop.turn()
                    elif not ready.is_set():
                        ready.set()
                    else:
                        stop.wait(0.01)

    thread = threading.Thread(target=control)
    thread.start()
    assert ready.wait(60)
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_the_answer_for_a_run_is_applied_and_its_effect_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ".rheostat" / "words"
    with run(folder):
        assert call("allocate", "--units", "1", "--apply") == 0  # the newest run's journal
        shown = capsys.readouterr().out
        assert "combined, residual   split:1" in shown
        assert "From the newest of 3 windows (3m) of the run; a unit is an instance" in shown
        assert "Applied: done." in shown
        assert "It is turn 4: `rheostat explain 4` compares its effect." in shown
        wait_for_turn(folder, 7)
        assert call("allocate", "--units", "1", "--journal", str(folder), "--json") == 0
        now = json.loads(capsys.readouterr().out)
    assert now["allocations"]["combined"]["units"] == {"count": 1}
    assert call("explain") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert " asked by hand: combined allocates 1 more unit." in text
    assert "instances asked for of split: 2, above 1." in text
    assert (
        "Predicted throughput of the leaves 4,000 -> 5,000 rows/s; the next 3 windows (3m) showed 5,000"
        in text
    )
    assert "rows/s (+0.0%); the last minute of them 5,000 rows/s (+0.0%)." in text


def test_one_algorithm_can_be_applied_and_told_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with run(tmp_path / "run"):
        asked = ("--journal", "run", "--units", "1", "--algorithm", "stela", "--apply", "--json")
        assert call("allocate", *asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["allocations"]) == ["stela"]
    assert told["applied"]["status"] == "applied"
    assert (told["applied"]["turn"], told["applied"]["parallelism"]["split"]) == (4, 2)
    assert told["measured"]["windows"] == 3


@pytest.mark.parametrize(
    ("guards", "dry_run", "words"),
    [
        (Guards(changes_per_hour=1), False, "The guards: 1 changes in the last hour, the limit is 1."),
        (Guards(), True, "Not applied: dry run: would change split 1 -> 2."),
    ],
)
def test_what_the_guards_or_a_dry_run_refuse_is_exit_code_1(
    guards: Guards, dry_run: bool, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with run(tmp_path / "run", guards, dry_run):
        call("allocate", "--journal", "run", "--units", "1", "--apply")
        wait_for_turn(tmp_path / "run", 7)
        assert call("allocate", "--journal", "run", "--units", "1", "--apply") == 1
    assert words in " ".join(capsys.readouterr().out.split())


def test_nothing_is_asked_of_a_run_to_which_no_instance_would_bring_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with run(tmp_path / "run"):
        assert call("allocate", "--journal", "run", "--units", "5", "--apply") == 0
        wait_for_turn(tmp_path / "run", 7)
        capsys.readouterr()
        assert call("allocate", "--journal", "run", "--units", "1", "--apply") == 1
    assert "Nothing to apply: combined finds no instance" in capsys.readouterr().out


def test_a_run_that_is_not_under_way_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with run(tmp_path / "run"):
        pass
    assert call("allocate", "--journal", "run", "--units", "1") == 0
    capsys.readouterr()
    assert call("allocate", "--journal", "run", "--units", "1", "--apply") == 2
    assert capsys.readouterr().err.splitlines() == [
        "rheostat: run: no run is under way here; start it with `rheostat run` (--resume continues it)"
    ]


def test_micro_batch_is_refused_with_what_to_do_instead(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(3), mode="microbatch")
    line = refused(capsys, "allocate", "--journal", "j.sqlite", "--units", "1")
    assert "the stages take turns on all slots" in line
    assert "`rheostat run --policy ds2`" in line


def test_a_run_without_a_window_of_its_present_configuration_is_told_to_wait(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(Path("j.sqlite"), turns(10))  # the tenth changed it
    line = refused(capsys, "allocate", "--journal", "j.sqlite", "--units", "1")
    assert "has no window of the present configuration yet; wait for more windows and ask again" in line


@pytest.mark.parametrize("option", ["--apply", "--journal=run"])
def test_a_file_and_a_run_exclude_each_other(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is for a run: omit t.json" in refused(capsys, "allocate", "t.json", "--units", "1", option)


def test_without_a_file_and_a_run_there_is_nothing_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no journal under .rheostat here" in refused(capsys, "allocate", "--units", "1")
