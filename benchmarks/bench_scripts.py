"""Ordinary scripts, unchanged, as a new user runs them: how soon each is served.

`hot_items` (NEXMark's query 5) and `new_users` (query 8) import nothing of ours. Each case is a run of its
own on a fresh embedded cluster, with the default policy and the command line's defaults.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from rheostat.control.guards import Guards
from rheostat.control.rescaling import Rescale
from rheostat.control.turn import Turn
from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.decision import Status
from rheostat.policies.registry import build
from rheostat.run.composition import Running, start_run
from rheostat.run.order import RESCALE_ABOVE, Order

SCRIPTS = Path(__file__).parent / "scripts"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
IN_TIME = 3  # batches in a row that are no longer than the trigger: then the script is served
DECIDE_SECONDS = 30.0  # from the second late batch to the decision
PLAIN_SECONDS = 60  # for which plain Spark runs a script, to leave a checkpoint
KIND = NodeKind(cores=1.0, slots=2, memory_mb=1024.0)


@dataclass
class Seen:
    """What a run showed: times in seconds since its query started."""

    nodes: int = 0
    began: float | None = None  # of the run's own time
    in_time: float | None = None  # since when all batches were in time
    second_late: float | None = None
    grew: float | None = None  # when the first scale-out was decided
    rewritten: float | None = None
    advice: str = ""
    batches: list[float] = field(default_factory=list)
    _numbers: set[int] = field(default_factory=set)
    _late: int = 0

    def look(self, engine: SparkEngine, now: float) -> None:
        """Take what the last poll brought."""
        if self.began is None:
            self.began = engine.queries_since or now
        for batch in engine.monitor.recent:
            trigger = engine.model.trigger_seconds or 0.0
            if batch.idle or batch.number in self._numbers:
                continue
            self._numbers.add(batch.number)
            self.batches.append(batch.seconds)
            if batch.seconds > trigger:
                self.in_time = None
            elif len(self.batches) >= IN_TIME and max(self.batches[-IN_TIME:]) <= trigger:
                self.in_time = self.in_time or now - self.began
        late = max(
            (query.progress(now)["late_batches"] for query in engine.monitor.queries.values()), default=0
        )
        if late >= 2 and self.second_late is None:
            self.second_late = now - self.began

    def take(self, turn: Turn) -> None:
        """Take what a turn decided."""
        assert self.began is not None
        at, plan = turn.plan.decided_at - self.began, turn.plan
        self.advice, self.nodes = plan.advice or self.advice, turn.outcome.configuration.nodes
        if plan.target.nodes > plan.current.nodes and self.grew is None:
            self.grew = at
        if plan.rewrite is not None and turn.outcome.status is Status.APPLIED:
            self.rewritten = turn.outcome.finished_at - self.began


@dataclass(frozen=True)
class Case:
    """One run, how long it lasts at most, and what it must show."""

    title: str
    script: str
    rate: int
    seconds: float
    good: Callable[[Seen], bool]
    kind: NodeKind = KIND
    rescale: Rescale = Rescale.ADVISE
    provider: str | None = None  # of the checkpoint that plain Spark leaves; "": its default; None: no such

    def run(self) -> Seen:
        """Run it as `rheostat run` does."""
        with tempfile.TemporaryDirectory(prefix="rheostat-bench-") as folder:
            if self.provider is not None:
                plain(self.script, folder, self.rate, self.provider)
            seen = Seen()
            with start_run(self._order(Path(folder))) as running:
                running.heartbeat.listen(lambda now: seen.look(running.engine, now))
                for turn in self._turns(running):
                    seen.take(turn)
            return seen

    def _turns(self, running: Running) -> Iterator[Turn]:
        return running.turns(running.clock.now() + self.seconds)

    def _order(self, folder: Path) -> Order:
        return Order(
            name=self.script,
            script=SCRIPTS / f"{self.script}.py",
            policy=replace(build("ds2"), period_seconds=10.0),
            policy_text="ds2",
            folder=folder / "run",
            arguments=(str(folder), str(self.rate)),
            kinds=(self.kind,),
            bounds=Bounds(1, 3),
            guards=Guards(cooldown_seconds=30.0, changes_per_hour=60, rescale_above=RESCALE_ABOVE),
            rescale=self.rescale,
        )


def plain(script: str, folder: str, rate: int, provider: str) -> None:
    """Let plain Spark run a script for a while, with its default of 200 partitions, and kill it."""
    given = f"--conf spark.sql.streaming.stateStore.providerClass={provider} " if provider else ""
    submit = f"--master local[2] --conf spark.ui.enabled=false {given}pyspark-shell"
    done = subprocess.Popen(
        [sys.executable, str(SCRIPTS / f"{script}.py"), folder, str(rate)],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": submit},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        done.wait(PLAIN_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(done.pid, 9)
        done.wait()


def in_time_within(seconds: float, nodes: int) -> Callable[[Seen], bool]:
    return lambda seen: seen.in_time is not None and seen.in_time <= seconds and seen.nodes <= nodes


def grows_in_time(seen: Seen) -> bool:
    if seen.second_late is None or seen.grew is None:
        return False
    return seen.grew - seen.second_late <= DECIDE_SECONDS


def is_advised(seen: Seen) -> bool:
    return "HDFSBackedStateStoreProvider" in seen.advice and seen.rewritten is None


CASES = {
    "as-it-is": Case("hot_items as it is, one core", "hot_items", 3000, 150, in_time_within(120, nodes=1)),
    "rewritten": Case(
        "its checkpoint of 200 partitions, --rescale auto",
        "hot_items",
        3000,
        270,
        in_time_within(240, nodes=3),
        rescale=Rescale.AUTO,
        provider=ROCKSDB,
    ),
    "default": Case(
        "the same of Spark's default provider",
        "hot_items",
        3000,
        150,
        is_advised,
        rescale=Rescale.AUTO,
        provider="",
    ),
    "join": Case("new_users, one core", "new_users", 40_000, 120, grows_in_time),
    "half-core": Case(
        "hot_items on half a core", "hot_items", 3000, 120, grows_in_time, kind=replace(KIND, cores=0.5)
    ),
}


def main() -> int:
    failed = 0
    print("  times in seconds since the query started; batches in seconds")
    for name in sys.argv[1:] or CASES:
        case, seen = CASES[name], CASES[name].run()
        failed += not case.good(seen)
        shown = {
            "in time": seen.in_time,
            "second late": seen.second_late,
            "grew": seen.grew,
            "rewritten": seen.rewritten,
        }
        words = ", ".join(f"{word} {value:.0f}" for word, value in shown.items() if value is not None)
        verdict = "ok" if case.good(seen) else "FAILED"
        print(f"  {case.title}: {words or 'nothing'}, {seen.nodes} nodes; {verdict}")
        print(f"    batches {' '.join(f'{batch:.1f}' for batch in seen.batches)}", flush=True)
        if seen.advice:
            print(f"    advice: {seen.advice}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
