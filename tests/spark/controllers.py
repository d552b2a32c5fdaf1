"""Runs `rheostat run` as a user does, as a process of its own, and looks at all that it leaves."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import psutil

from rheostat.control.turn import Turn
from rheostat.engines.spark.limits import LIMITS
from rheostat.journal.reader import JournalReader
from rheostat.journal.store import Journal
from rheostat.model.errors import RheostatError
from rheostat.model.observation import Event
from rheostat.run.folder import JOURNAL
from rheostat.services import cleanup_process
from tests import jvm
from tests.cli.commands import RHEOSTAT

from .support import APPS

LIMIT_SECONDS = 120.0
END_SECONDS = LIMITS.stop_seconds + LIMITS.spark_seconds + LIMIT_SECONDS  # a run may wait for its last batch
T = TypeVar("T")
POLICY = """
import json
from dataclasses import dataclass
from pathlib import Path
from rheostat.policies.base import Info, Policy, hold, wish

@dataclass(frozen=True)
class Scripted(Policy):
    file: str = ""  # a file
    info = Info("scripted", "all", "static", "the author of the file")  # whatever the load

    def propose(self, situation, memory):
        memory = {"asked": memory.get("asked", 0) + 1}
        if not Path(self.file).exists():
            return hold(situation, "the file does not exist"), memory
        script = json.loads(Path(self.file).read_text())
        if "fail" in script:
            raise ValueError(script["fail"])
        now = situation.configuration
        wanted = {**now.parallelism, **script.get("parallelism", {})}
        return wish(situation, wanted, "as scripted", nodes=script.get("nodes", now.nodes)), memory
"""


def eventually(
    look: Callable[[], T | None], what: object = "", seconds: float = LIMIT_SECONDS, pause: float = 0.2
) -> T:
    """Call `look` until it returns something; the limit allows for a very busy machine."""
    until = time.monotonic() + seconds
    while not (result := look()):
        assert time.monotonic() < until, f"not within {seconds:g} s: {what}"
        time.sleep(pause)
    return result


def install(folder: Path) -> Path:
    """Install a third party's policy, `scripted(file=FILE)`, as pip would; return its folder."""
    about = folder / "scripted_policy-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "scripted_policy.py").write_text(POLICY)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted_policy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[rheostat.policies]\nscripted = scripted_policy:Scripted\n")
    return folder


class Controller:
    """A `rheostat run`, with the processes, control groups and files that belong to it."""

    def __init__(self, place: Path, script: str | Path, *arguments: str, options: str = "") -> None:
        self.place, self.folder = place, place / "run"
        self.script = script if isinstance(script, Path) else APPS / f"{script}.py"
        self.arguments, self.options = arguments, options
        self.program, self.settings = [RHEOSTAT], jvm.SETTINGS
        self.wishes, self.mark = place / "wishes.json", uuid.uuid4().hex
        self.temporary = Path(tempfile.mkdtemp(prefix="t"))  # short, for sockets
        self.packages = place / "packages"
        if not self.packages.exists():
            install(self.packages)
        self.process: subprocess.Popen[str] | None = None
        self.group = ""

    def start(self, *more: str) -> "Controller":
        """Start it, with `more` options."""
        policy = ["--policy", f"scripted(file={self.wishes})", "--period", "1", "--cooldown", "0"]
        node = ["--node", "cores=1,slots=2,memory_mb=1024"]
        quick = [word for pair in self.settings.items() for word in ("--conf", "=".join(pair))]
        options = [*quick, *self.options.split(), *more, "--folder", str(self.folder)]
        command = [*self.program, "run", *policy, *node, *options]
        with self._stream_file("out").open("w") as out, self._stream_file("err").open("w") as err:
            self.process = subprocess.Popen(
                [*command, str(self.script), *self.arguments],
                cwd=self.place,
                env=self._environment(),
                stdout=out,
                stderr=err,
                text=True,
                start_new_session=True,
            )
        self.group = f"rheostat-{self.process.pid}-"
        return self

    def _environment(self) -> dict[str, str]:
        quick = os.environ.get("JAVA_TOOL_OPTIONS", "")  # of tests/jvm.py
        return {
            **os.environ,
            "PYTHONPATH": str(self.packages),
            "RHEOSTAT_TEST": self.mark,  # marks every process that it starts
            "TMPDIR": str(self.temporary),
            "JAVA_TOOL_OPTIONS": f"{quick} -Djava.io.tmpdir={self.temporary}",
            "COLUMNS": "200",
        }

    def _stream_file(self, stream: str) -> Path:
        return self.place / f"std{stream}"

    @property
    def out(self) -> str:
        return self._stream_file("out").read_text()

    @property
    def err(self) -> str:
        return self._stream_file("err").read_text()

    def wish(self, wishes: Mapping[str, Any]) -> None:
        """Set the policy's script, which it reads in every turn."""
        new = self.wishes.with_suffix(".new")
        new.write_text(json.dumps(wishes))
        new.replace(self.wishes)

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: signal.Signals | None = None) -> int:
        """Send a signal, if given, and return the exit code."""
        assert self.process is not None
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(timeout=END_SECONDS)

    def refused(self, *more: str) -> str:
        """Start it and expect a refusal: exit code 2, one line on stderr, nothing on stdout."""
        assert self.start(*more).end() == 2, self.err
        assert (self.out, len(self.err.splitlines())) == ("", 1), self.err
        assert self.err.startswith("rheostat: ")
        return self.err

    def wait_for(self, look: Callable[[], T], what: str = "") -> T:
        """Call `look` until it returns something, while the controller runs."""

        def alive() -> T:
            assert self.process is not None
            assert self.process.poll() is None, f"it ended with {self.process.poll()}: {self.err}"
            return look()

        try:
            return eventually(alive, what)
        except AssertionError as error:
            log = self.folder / "driver.log"
            tail = log.read_text(errors="replace")[-1500:] if log.exists() else ""
            raise AssertionError(f"{error}\n{self.err}\n{self.events()[-8:]}\n{tail}") from None

    # -- what its journal says ---------------------------------------------------------------------------

    def read(self, look: Callable[[JournalReader], T]) -> T | None:
        try:
            with Journal.read(self.folder / JOURNAL) as journal:
                return look(journal)
        except RheostatError:
            return None  # it is not there yet

    def last(self) -> Turn | None:
        return self.read(lambda journal: journal.last())

    def _turn(self, number: int) -> Turn | None:
        return self.read(lambda journal: journal.turn(number))

    def turns(self) -> list[Turn]:
        return self.read(lambda journal: list(journal.turns())) or []

    def events(self) -> list[Event]:
        return self.read(lambda journal: journal.events()) or []

    def facts(self) -> dict[str, Any]:
        return self.read(lambda journal: journal.facts()) or {}

    def wait_for_turn(self, holds: Callable[[Turn], object], since: int | None = None) -> Turn:
        """Return the first turn after this number (default: after now) that matches."""
        last = self.last() if since is None else None
        number = since or (last.number if last else 0)

        def matching_turn() -> Turn | None:
            nonlocal number
            while (turn := self._turn(number + 1)) is not None:
                number += 1
                if holds(turn):
                    return turn
            return None

        turn = self.wait_for(matching_turn, f"a turn after {number}")
        assert turn is not None
        return turn

    def wait_for_turns(self, count: int) -> Turn:
        """The last of so many turns that each saw a batch."""
        turn: Turn | None = None
        for _ in range(count):
            turn = self.wait_for_turn(
                lambda turn: turn.observation.application.batches, turn.number if turn else None
            )
        assert turn is not None
        return turn

    def wait_for_event(self, kind: str, text: str, since: float = float("-inf")) -> Event:
        def heard() -> Event | None:
            result = [e for e in self.events() if e.kind == kind and text in e.text and e.at >= since]
            return result[0] if result else None

        event = self.wait_for(heard, f"event {kind}: {text}")
        assert event is not None
        return event

    # -- what it holds -----------------------------------------------------------------------------------

    @property
    def driver(self) -> int:
        return int((self.folder / "driver.pid").read_text().split()[0])

    def processes(self) -> list[psutil.Process]:
        """All that it started, whoever their parents are by now."""
        result = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("RHEOSTAT_TEST") == self.mark:
                    result.append(process)
        return result

    def groups(self) -> list[Path]:
        roots = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu"))
        return [path for root in roots for path in root.glob(f"{self.group}*")]

    def left(self) -> list[str]:
        """Whatever is still there of it, besides its folder."""
        files = [str(path) for path in self.temporary.iterdir()]
        return [*map(str, self.processes()), *map(str, self.groups()), *files]

    def executors(self) -> Iterator[dict[str, str]]:
        """Their environments."""
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline():
                    yield process.environ()

    def is_at_a_boundary(self) -> bool:
        """Whether every batch that was begun is committed."""
        logs = (self.folder / "checkpoint" / log for log in ("offsets", "commits"))
        begun, committed = ({f.name for f in log.iterdir() if f.name.isdigit()} for log in logs)
        return max(map(int, begun)) == max(map(int, committed))

    def clear(self) -> None:
        """End whatever a failed test left."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(OSError, ValueError):
            cleanup_process.end_session(self.driver)
        with contextlib.suppress(AssertionError):
            eventually(lambda: not self.processes(), seconds=20)
        shutil.rmtree(self.temporary, ignore_errors=True)


@contextlib.contextmanager
def controller(place: Path, script: str | Path, *arguments: str, options: str = "") -> Iterator[Controller]:
    """A `rheostat run` that is not started yet; nothing of it outlives the test."""
    made = Controller(place, script, *arguments, options=options)
    try:
        yield made
    finally:
        made.clear()
