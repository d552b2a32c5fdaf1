"""Which fault strikes when: chosen by a seed, so that a run can be repeated."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice, product

FAULTS = ("executor", "worker", "driver", "controller", "broker", "frozen", "disk")
STEPS = {
    "out": ("nodes", "executors", "parallelism", "batch"),
    "in": ("parallelism", "batch", "release", "remove"),
    "rescale": ("stop", "rewrite", "restart", "batch"),
}
WORDS = {
    "nodes": "before the nodes",
    "executors": "nodes up, executors not registered",
    "parallelism": "before the parallelism is set",
    "batch": "parallelism set, before the next batch",
    "release": "before the executors go",
    "remove": "executors gone, before the nodes",
    "stop": "before the query stops",
    "rewrite": "stopped, before the state is rewritten",
    "restart": "state rewritten, before the restart",
}


@dataclass(frozen=True)
class Attack:
    """One fault at one moment: a step of a change, or any time between two changes."""

    fault: str
    change: str = ""
    step: str = ""
    delay: float = 0.0  # in seconds, if there is no step

    @property
    def moment(self) -> str:
        """Describe the moment."""
        if self.change:
            return f"{self.change}: {WORDS[self.step]}"
        return f"at rest, after {self.delay:.1f} s"


def everything(seed: int, count: int) -> list[Attack]:
    """Every fault at every step, then at rest, in an order drawn by the seed; in turns out and in."""
    draw = random.Random(seed)
    steps = {change: _shuffled(draw, product(FAULTS, names)) for change, names in STEPS.items()}
    drawn = chain.from_iterable(draw.sample(FAULTS, len(FAULTS)) for _ in range(count))
    rest = iter([Attack(fault, delay=3 * draw.random()) for fault in islice(drawn, count)])
    rounds = [
        [Attack(fault, change, step) for change, (fault, step) in zip(STEPS, pairs, strict=True)]
        for pairs in zip(*steps.values(), strict=True)
    ]
    # out, in, rescale; a fault at rest after every second round: 84 at steps, the others at rest
    mixed = chain.from_iterable([*three, *(islice(rest, index % 2))] for index, three in enumerate(rounds))
    return list(islice(chain(mixed, rest), count))


# Those that need a real checkpoint and a real broker. tests/scenarios has every fault at every step; a real
# controller that is killed and resumed, and real disks that are full, are in tests/spark.
SHORT = (
    Attack("driver", "rescale", "rewrite"),
    Attack("broker", "out", "executors"),
)


def _shuffled(draw: random.Random, pairs: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    result = list(pairs)
    draw.shuffle(result)
    return result
