"""The Spark engine as the Engine's contract wants it."""

from rheostat.model.observation import Observation
from tests.contracts.engine import SMALL, Started

from .shared import Shared
from .support import observe_span


def on_spark(shared: Shared) -> Started:
    engine = shared.at(nodes=SMALL.nodes, **SMALL.parallelism)
    began = engine.clock.now()
    engine.observe()

    def window() -> Observation:
        return observe_span(engine, 12.0)

    def longest() -> float:
        return max(batch.seconds for batch in engine.monitor.recent)

    def lost() -> float:
        rows = engine.monitor.rows
        assert rows["in"] > 0
        return abs(rows["work"] - 2 * rows["in"]) + abs(rows["out"] - rows["work"])

    span = 7.0 if engine.model.name == "pipelined" else 5.0  # a batch or more
    return Started(engine, engine.clock, began, span, False, window, longest, lost)
