"""The Spark engine, as the contract of the Engine port needs it."""

from rheostat.model.observation import Observation
from tests.contracts.engine import SMALL, Started

from .shared import Shared
from .support import observe_open_window, observe_span


def on_spark(shared: Shared) -> Started:
    engine = shared.at(nodes=SMALL.nodes, **SMALL.parallelism)
    began, run = engine.clock.now(), engine.monitor.run_id
    engine.observe()

    def window() -> Observation:
        return observe_span(engine, 12.0)

    def measured() -> Observation:
        return observe_open_window(engine, 1)

    def longest() -> float:
        return max(batch.seconds for batch in engine.monitor.recent)

    def lost() -> float:
        rows = engine.monitor.rows
        assert rows["in"] > 0
        return abs(rows["work"] - 2 * rows["in"]) + abs(rows["out"] - rows["work"])

    def restarted() -> bool:
        return engine.monitor.run_id != run

    return Started(engine, engine.clock, began, 2.0, False, window, measured, longest, lost, restarted)
