"""A run second by second, for the live view and for the plot at the end."""

from dataclasses import dataclass

import numpy as np

from rheostat.analyze.judging import Series
from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.observation import ApplicationMeasures


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of a run at a heartbeat."""

    at: float
    load: float
    throughput: float
    lag: float
    nodes: int
    instances: int
    price_per_hour: float = 0.0  # of all nodes


class Sampler:
    """Samples a run at every heartbeat; a measure that is missing keeps its last value."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine
        self.samples: list[Sample] = []
        self.measures = ApplicationMeasures()

    def sample(self, now: float) -> None:
        """Take a sample."""
        measures = self.measures = self._engine.monitor.peek(now, self._engine.topology)
        configuration = self._engine.configuration
        load = next(iter(measures.load.values()), None)
        before = self.samples[-1] if self.samples else Sample(0, 0, 0, 0, 0, 0)
        self.samples.append(
            Sample(
                now,
                before.load if load is None else load,
                before.throughput if measures.throughput is None else measures.throughput,
                before.lag if measures.lag_seconds is None else measures.lag_seconds,
                configuration.nodes,
                configuration.instances,
                sum(node.kind.price_per_hour for node in self._engine.provider.nodes()),
            )
        )


def series(samples: list[Sample]) -> Series:
    """Return the samples in equal steps of one second; there must be two or more."""
    at = np.array([sample.at for sample in samples])
    seconds = np.arange(at[0], at[-1], 1.0)
    index = np.searchsorted(at, seconds, side="right") - 1

    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([float(getattr(sample, name)) for sample in samples])[index]

    names = ("load", "throughput", "lag", "nodes", "instances", "price_per_hour")
    return Series(1.0, *map(column, names))
