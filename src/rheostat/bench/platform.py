"""What partitions, slots and executors on a node are worth (P0, section 2.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rheostat.analyze.levels import CapacityDocument, PlatformDocument
from rheostat.apps.shipped import find_script
from rheostat.engines.spark.observe.batches import Batch
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.errors import RheostatError
from rheostat.model.topology_file import find_topology
from rheostat.policies.registry import build
from rheostat.run.composition import start_run
from rheostat.run.order import Order, with_period

APP, TRIGGER_SECONDS, MEMORY_MB = "linear", 0.1, 3200.0
LOOK_SECONDS = 1.0
FACTORS = (1, 2, 4)
MATTERS = 0.05  # a container that brings less than this part more brings nothing
COLD_BATCHES = 3  # JVMs compile at first
LEAST_BATCHES = 3  # that are judged; a busy machine gets more time for them
PATIENCE = 10  # times --seconds
BATCH_SECONDS = 1.5  # that a batch takes a node which uses all its cores, about


@dataclass(frozen=True)
class Setup:
    """An arrangement of one node's containers."""

    slots: int  # of the node
    executors: int
    partitions: int  # per slot

    @property
    def text(self) -> str:
        """In short: executors - slots - partitions, as the paper writes it."""
        return f"{self.executors}-{self.slots}-{self.slots * self.partitions}"


@dataclass(frozen=True)
class Question:
    """What happens when there is more of one container."""

    container: str
    setups: tuple[Setup, ...]

    def answer(self, capacity: dict[Setup, float]) -> str:
        """The finding, as this machine shows it."""
        first, *others = (capacity[setup] for setup in self.setups)
        gains = [
            f"{self.number(s)}: {after / first - 1:+.0%}"
            for s, after in zip(self.setups[1:], others, strict=True)
        ]
        best = max(others) / first - 1
        worst = min(others) / first - 1
        word = "help" if best >= MATTERS else "harm" if worst <= -MATTERS else "change nothing"
        return f"more {self.container} {word} ({', '.join(gains)} against {self.number(self.setups[0])})"

    def number(self, setup: Setup) -> int:
        """How many of the container there are."""
        return {
            "partitions per slot": setup.partitions,
            "slots per executor": setup.slots // setup.executors,
            "executors per node": setup.executors,
        }[self.container]


def questions(cores: int) -> tuple[Question, ...]:
    """The three of the paper, for a node of so many cores.

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


def conclude(asked: Sequence[Question], capacity: dict[Setup, float], cores: float) -> PlatformDocument:
    """The order of containers: a slot before a node, unless slots bring nothing."""
    slots = next(question for question in asked if question.container == "slots per executor")
    one, best = capacity[slots.setups[0]], max(capacity, key=lambda setup: capacity[setup])
    helps = max(capacity[setup] for setup in slots.setups) >= one * (1 + MATTERS)
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


def capacity_of(setup: Setup, cores: float, seconds: float, advance: Callable[[float], None]) -> float:
    """Rows/s of a node under more load than it can serve."""
    seen, passed = dict[int, Batch](), 0.0
    with TemporaryDirectory(prefix="rheostat-bench-") as folder:
        order = Order(
            name="platform",
            script=find_script(APP),
            policy=with_period(build(f"static(instances={setup.slots * setup.partitions})"), LOOK_SECONDS),
            policy_text="static",
            folder=Path(folder) / "run",
            arguments=("--flood", str(_batch_rows(cores)), "--partitions", str(setup.slots)),
            kinds=(NodeKind(cores=cores, slots=setup.slots, executors=setup.executors, memory_mb=MEMORY_MB),),
            bounds=Bounds(1, 1),
            trigger_seconds=TRIGGER_SECONDS,
        )
        with start_run(order) as running:
            began = running.clock.now()
            for _ in running.turns(began + PATIENCE * seconds):
                seen |= {batch.number: batch for batch in running.engine.monitor.recent}
                passed = running.clock.now() - began
                advance(min(1.0, passed / seconds))
                if passed >= seconds and len(seen) >= COLD_BATCHES + LEAST_BATCHES:
                    break
    busy = [seen[number] for number in sorted(seen)][COLD_BATCHES:]
    if not busy:
        raise RheostatError(f"{setup.text}: too few batches ended in {passed:.0f} s; give more --cores")
    advance(1.0)
    return sum(batch.input_rows for batch in busy) / sum(batch.seconds for batch in busy)


def _batch_rows(cores: float) -> int:
    costs = sum(operator.cost_seconds for operator in find_topology(APP).operators)
    return max(1, round(BATCH_SECONDS * cores / costs))
