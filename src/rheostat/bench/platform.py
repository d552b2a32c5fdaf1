"""How much partitions, slots and executors on a node contribute (P0, section 2.3)."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rheostat.analyze.levels import CapacityDocument, PlatformDocument
from rheostat.apps.shipped import find_script
from rheostat.engines.spark.observe.batches import Batch
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.errors import RheostatError, UserError
from rheostat.model.topology_file import find_topology
from rheostat.policies.registry import build
from rheostat.run.composition import start_run
from rheostat.run.order import Order, with_period

APP, TRIGGER_SECONDS, MEMORY_MB = "linear", 0.1, 3200.0
MAX_CORES = 6  # with four partitions per slot these are all the tasks that the application's sink may have
PERIOD_SECONDS = 1.0
FACTORS = (1, 2, 4)
SIGNIFICANT = 0.05  # a smaller relative gain counts as none
COLD_BATCHES = 3  # slower, while the JVMs compile
MIN_BATCHES = 3  # to measure; a busy machine gets more time for them
MAX_EXTENSION = 10  # times --seconds
BATCH_SECONDS = 1.5  # roughly, on a node that uses all its cores


@dataclass(frozen=True)
class Setup:
    """One way to divide a node into executors, slots and partitions."""

    slots: int  # of the node
    executors: int
    partitions: int  # per slot

    @property
    def text(self) -> str:
        """Executors, slots and partitions, as the paper writes them."""
        return f"{self.executors}-{self.slots}-{self.slots * self.partitions}"


@dataclass(frozen=True)
class Question:
    """Whether more of one kind of container helps."""

    container: str
    setups: tuple[Setup, ...]

    def answer(self, capacity: dict[Setup, float]) -> str:
        """Describe the result on this machine."""
        first, *others = (capacity[setup] for setup in self.setups)
        gains = [
            f"{self.number(s)}: {after / first - 1:+.0%}"
            for s, after in zip(self.setups[1:], others, strict=True)
        ]
        best = max(others) / first - 1
        worst = min(others) / first - 1
        word = "help" if best >= SIGNIFICANT else "harm" if worst <= -SIGNIFICANT else "change nothing"
        return f"more {self.container} {word} ({', '.join(gains)} against {self.number(self.setups[0])})"

    def number(self, setup: Setup) -> int:
        """Return how many of the container a setup has."""
        return {
            "partitions per slot": setup.partitions,
            "slots per executor": setup.slots // setup.executors,
            "executors per node": setup.executors,
        }[self.container]


def questions(cores: int) -> tuple[Question, ...]:
    """Return the paper's three questions, for a node with this many cores.

    >>> [[setup.text for setup in question.setups] for question in questions(2)]
    [['1-2-2', '1-2-4', '1-2-8'], ['1-1-1', '1-2-2', '1-4-4'], ['1-4-4', '2-4-4', '4-4-4']]
    """
    many = 2 * cores
    slots = dict.fromkeys([1, cores, many])
    return (
        Question("partitions per slot", tuple(Setup(cores, 1, factor) for factor in FACTORS)),
        Question("slots per executor", tuple(Setup(count, 1, 1) for count in slots)),
        Question(
            "executors per node", tuple(Setup(many, factor, 1) for factor in FACTORS if many % factor == 0)
        ),
    )


def conclude(questions: Sequence[Question], capacity: dict[Setup, float], cores: float) -> PlatformDocument:
    """Decide the order in which to add containers: a slot before a node, unless slots do not help."""
    slots = next(question for question in questions if question.container == "slots per executor")
    baseline, best = capacity[slots.setups[0]], max(capacity, key=lambda setup: capacity[setup])
    helps = max(capacity[setup] for setup in slots.setups) >= baseline * (1 + SIGNIFICANT)
    return PlatformDocument(
        containers="slot+node" if helps else "node",
        node=f"cores={cores:g},slots={best.slots},executors={best.executors}",
        cores=cores,
        measured=[
            CapacityDocument(
                slots=setup.slots,
                executors=setup.executors,
                partitions=setup.partitions,
                rows_per_second=round(rows, 1),
            )
            for setup, rows in capacity.items()
        ],
    )


def check_cores(cores: float | None) -> float:
    """Return the cores of the node to measure: the given ones, or as many as this machine has."""
    if cores is None:
        return float(min(MAX_CORES, os.cpu_count() or 1))
    if cores > MAX_CORES:
        raise UserError(f"--cores must be at most {MAX_CORES}: `{APP}` does not keep more of them busy")
    return cores


def measure(
    asked: Sequence[Question],
    cores: float,
    seconds: float,
    begin: Callable[[str], Callable[[float], None]],
) -> dict[Setup, float]:
    """Measure every setup of the questions once; `begin` starts a progress bar by name."""
    setups = dict.fromkeys(setup for question in asked for setup in question.setups)
    return {
        setup: capacity_of(setup, cores, seconds, begin(f"executors-slots-tasks {setup.text}"))
        for setup in setups
    }


def capacity_of(setup: Setup, cores: float, seconds: float, advance: Callable[[float], None]) -> float:
    """Return the rows/s of a node under more load than it can serve."""
    batches, elapsed = dict[int, Batch](), 0.0
    with TemporaryDirectory(prefix="rheostat-bench-") as folder:
        order = Order(
            name="platform",
            script=find_script(APP),
            policy=with_period(build(f"static(instances={setup.slots * setup.partitions})"), PERIOD_SECONDS),
            policy_text="static",
            folder=Path(folder) / "run",
            arguments=("--flood", str(_batch_rows(cores)), "--partitions", str(setup.slots)),
            kinds=(NodeKind(cores=cores, slots=setup.slots, executors=setup.executors, memory_mb=MEMORY_MB),),
            bounds=Bounds(1, 1),
            trigger_seconds=TRIGGER_SECONDS,
        )
        with start_run(order) as running:
            start = running.clock.now()
            for _ in running.turns(start + MAX_EXTENSION * seconds):
                batches |= {batch.number: batch for batch in running.engine.monitor.recent}
                elapsed = running.clock.now() - start
                advance(min(1.0, elapsed / seconds))
                if elapsed >= seconds and len(batches) >= COLD_BATCHES + MIN_BATCHES:
                    break
    warm = [batches[number] for number in sorted(batches)][COLD_BATCHES:]
    if not warm:
        raise RheostatError(f"{setup.text}: too few batches ended in {elapsed:.0f} s; give more --cores")
    advance(1.0)
    return sum(batch.input_rows for batch in warm) / sum(batch.seconds for batch in warm)


def _batch_rows(cores: float) -> int:
    costs = sum(operator.cost_seconds for operator in find_topology(APP).operators)
    return max(1, round(BATCH_SECONDS * cores / costs))
