"""One application under attack: a broker, a `rheostat run`, rows that never stop, and the faults."""

import contextlib
import os
import random
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from rheostat.services import kafka_broker
from rheostat.services.cleanup_process import members
from tests.spark.controllers import Controller, eventually
from tests.spark.test_bad_days import Disk, disk

from .attacks import Attack
from .rows import Sender, Sink
from .steps import Steps

ROOT = Path(__file__).parents[2]
START_SECONDS = 300.0
AGAIN_SECONDS = 90.0  # after a fault, until a row that was sent after it is committed
FROZEN_SECONDS = 20.0
FULL_SECONDS = 15.0  # at most: a change may be under way, and nothing to write
PARTITIONS = 2
ROWS_PER_SECOND, ROUNDS = 100.0, 5000  # a row costs about 0.15 ms
WORKER, EXECUTOR = "org.apache.spark.deploy.worker.Worker", "CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Survived:
    """How an application survived an attack."""

    attack: Attack
    seconds: float  # until rows that were sent after the fault were committed
    settled: float  # until what runs was what was wished for


class StepController(Controller):
    """A `rheostat run` whose steps can be waited for."""

    def __init__(self, place: Path, script: str, *arguments: str, options: str) -> None:
        super().__init__(place, script, *arguments, options=options)
        self.program = [sys.executable, "-m", "tests.chaos.steps", str(place)]
        self.settings = {}  # checkpoints as Spark writes them where nobody says otherwise
        self.steps = Steps(place)
        self.started: list[int] = []

    def start(self, *more: str) -> "StepController":
        super().start(*more)
        assert self.process is not None
        self.started.append(self.process.pid)
        return self

    def _environment(self) -> dict[str, str]:
        path = os.environ.get("PYTHONPATH", "")
        return {**super()._environment(), "PYTHONPATH": f"{self.packages}:{ROOT}:{path}"}

    def groups(self) -> list[Path]:
        """Return the control groups of all controllers so far."""
        roots = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu"))
        return [path for root in roots for pid in self.started for path in root.glob(f"rheostat-{pid}-*")]

    def jvms(self, what: str) -> list[psutil.Process]:
        """Return the processes of Workers or executors, oldest first."""
        result = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                if any(what in word for word in process.cmdline()[1:]) and process.name() == "java":
                    result.append((process.create_time(), process.pid, process))
        return [process for _, _, process in sorted(result)]


class Arena:
    """Runs the application with everything around it, and causes the faults."""

    def __init__(self, place: Path, seed: int, disk: Disk, brokers: "Brokers") -> None:
        self.disk, self.brokers, self._draw = disk, brokers, random.Random(seed)
        topic, checkpoint = f"rows-{uuid.uuid4().hex[:8]}", place / "checkpoint"
        kafka_broker.create_topic(brokers.servers, topic, PARTITIONS)
        self.sink = Sink(place / "sink", checkpoint)
        jars = ",".join(map(str, kafka_broker.connector_jars()))
        options = f"--nodes 1:2 --changes-per-hour 0 --checkpoint {checkpoint} --conf spark.jars={jars}"
        arguments = (brokers.servers, topic, str(place / "sink"), str(place), str(ROUNDS))
        self.run = StepController(place, "chaos", *arguments, options=options)
        self.sender = Sender(brokers.servers, topic, ROWS_PER_SECOND)
        self.frozen_seconds = FROZEN_SECONDS
        self.wished = {"nodes": 1, "work": 2, "total": 2}
        self.again_seconds = AGAIN_SECONDS  # more on a machine so busy that the start took long

    def begin(self) -> None:
        """Start the application and wait until it works."""
        began = time.monotonic()
        self._request()
        self.run.start()
        self._wait(lambda: self.sink.newest() >= 0, "a first batch", START_SECONDS)
        self.again_seconds = max(AGAIN_SECONDS, 2 * (time.monotonic() - began))
        self._settle()

    def attack(self, attack: Attack) -> Survived:
        """Cause a fault, and wait until the application recovers by itself and reaches the requested size."""
        if attack.change:
            self._reach(attack)
        else:
            time.sleep(attack.delay)
        struck = time.monotonic()
        with self._fault(attack.fault):
            self.run.steps.release()
        row = self.sender.sent
        left = self.again_seconds - (time.monotonic() - struck)
        self._wait(lambda: self.sink.newest() >= row, f"a row after the {attack.fault}", left)
        seconds = time.monotonic() - struck
        self._settle()
        return Survived(attack, seconds, time.monotonic() - struck)

    def end(self) -> int:
        """Wait for the last row, stop, and check that nothing is lost, doubled or left behind."""
        rows = self.sender.stop()
        self._wait(lambda: self.sink.newest() == rows - 1, "the last row", self.again_seconds)
        assert self.run.end(signal.SIGINT) == 130, self.run.err
        left = self.run.left()
        assert not left, left
        self.sink.check(rows)
        return rows

    def close(self) -> None:
        """Stop whatever is left of a failed run."""
        for process in self.run.processes():
            with contextlib.suppress(psutil.Error):
                process.resume()
        self.run.clear()
        with contextlib.suppress(AssertionError):
            self.sender.stop()

    # -- changes -----------------------------------------------------------------------------------------

    def _reach(self, attack: Attack) -> None:
        """Request a change and wait for one of its steps."""
        if attack.change in ("out", "in"):
            wanted = 2 if attack.change == "out" else 1
            if self.wished["nodes"] == wanted:  # the other way first, undisturbed
                self._change(3 - wanted)
                self._settle()
            self.run.steps.arm(attack.step)
            self._change(wanted)
        else:
            self.run.steps.arm(attack.step)
            self.wished["total"] = 3 - self.wished["total"]  # one node has slots for either
            self._request()
        self._wait(self.run.steps.reached, attack.moment, 2 * self.again_seconds)

    def _change(self, nodes: int) -> None:
        self.wished |= {"nodes": nodes, "work": 2 * nodes}
        self._request()

    def _request(self) -> None:
        counts = {name: self.wished[name] for name in ("work", "total")}
        self.run.wish({"nodes": self.wished["nodes"], "parallelism": counts})

    def _settle(self) -> None:
        """Wait until what is reported is what was requested, and what runs."""

        def settled() -> bool:
            turn = self.run.last()
            if turn is None or turn.plan.changes:
                return False
            result, nodes = turn.outcome.configuration, self.wished["nodes"]
            counts = {name: result.parallelism[name] for name in ("work", "total")}
            return {"nodes": result.nodes, **counts} == self.wished and (
                len(self.run.jvms(WORKER)) == len(self.run.jvms(EXECUTOR)) == nodes
            )

        self._wait(settled, "what was wished for", 2 * self.again_seconds)

    def _wait(self, look: Callable[[], bool], what: str, seconds: float) -> None:
        def alive() -> bool:
            process = self.run.process
            assert process is not None and process.poll() is None, f"the controller ended: {self.run.err}"
            return look()

        try:
            eventually(alive, what, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._story()}") from None

    def _story(self) -> str:
        """Return the last words of its journal and its driver."""
        texts = [f"{event.at:.0f} {event.kind}: {event.text}" for event in self.run.events()[-12:]]
        turns = [turn for turn in self.run.turns()[-40:] if turn.plan.changes] + self.run.turns()[-1:]
        texts += [
            f"turn {turn.number} at {turn.plan.decided_at:.0f}: {turn.plan.reason} {turn.plan.vetoes} -> "
            f"{turn.outcome.status.value}: {turn.outcome.reason} {turn.outcome.steps}"
            for turn in turns
        ]
        log = self.run.folder / "driver.log"
        messages = [
            line for line in log.read_text(errors="replace").splitlines() if "falling behind" not in line
        ]
        return "\n".join([f"wished: {self.wished}", *texts, *(line[:200] for line in messages[-8:])])

    # -- faults ------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _fault(self, fault: str) -> Iterator[None]:
        """Cause a fault; inside the block the held step continues; afterwards the fault is lifted."""
        if fault in ("executor", "worker"):
            eventually(lambda: self._kill(EXECUTOR if fault == "executor" else WORKER))
            yield
        elif fault == "driver":
            os.killpg(self.run.driver, signal.SIGKILL)
            yield
        elif fault == "controller":
            driver = self.run.driver
            self.run.end(signal.SIGKILL)
            yield
            self.run.start("--resume")  # at once, while the cleanup process still ends what the old one left
            eventually(lambda: not members(driver))
        elif fault == "broker":
            self.brokers.kill()
            yield
            self.brokers.start()
        elif fault == "frozen":
            yield from self._freeze()
        else:
            yield from self._fill()

    def _kill(self, what: str) -> bool:
        """Kill a process, unless it just ended by itself."""
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):
            self._draw.choice(self.run.jvms(what)).kill()
            return True
        return False

    def _freeze(self) -> Iterator[None]:
        """Freeze the Worker and its executors, like a machine that swaps."""
        node = self._draw.choice(self.run.jvms(WORKER)).pid
        _send(signal.SIGSTOP, node)
        yield
        time.sleep(self.frozen_seconds)
        _send(signal.SIGCONT, node)

    def _fill(self) -> Iterator[None]:
        def controllers() -> list[int]:
            return [self.run.process.pid] if self.run.process else []

        def warnings() -> int:
            return self.run.err.count("turns are kept in memory")

        before = warnings()
        self.disk.fill(controllers, 8192)
        yield
        with contextlib.suppress(AssertionError):
            eventually(lambda: warnings() > before, seconds=FULL_SECONDS)
        self.disk.free(controllers)


def _send(number: signal.Signals, session: int) -> None:
    for pid in members(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


class Brokers:
    """A broker that can be killed and restarted in its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stack = folder, contextlib.ExitStack()
        self.start()

    def start(self) -> None:
        self._broker = self._stack.enter_context(kafka_broker.running(self._folder))
        self.servers = self._broker.servers

    def kill(self) -> None:
        os.killpg(self._broker.pid, signal.SIGKILL)
        self._stack.close()

    def close(self) -> None:
        self._stack.close()


@contextlib.contextmanager
def brokers(folder: Path) -> Iterator[Brokers]:
    made = Brokers(folder)
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def arena(place: Path, seed: int, brokers: Brokers, megabytes: int = 64) -> Iterator[Arena]:
    """Start an application to attack."""
    with disk(place / "run", megabytes) as journals:
        made = Arena(place, seed, journals, brokers)
        try:
            made.begin()
            yield made
        finally:
            made.close()
