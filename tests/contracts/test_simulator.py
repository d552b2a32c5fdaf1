"""The simulator passes the Engine's contract in each of its modes."""

import numpy as np
import pytest

from rheostat.engines.simulator.engine import Simulator
from rheostat.engines.simulator.settings import Settings
from rheostat.model.observation import Observation
from tests.contracts.engine import *  # noqa: F403
from tests.contracts.engine import CHAIN, LOAD, SMALL, Started


@pytest.fixture(params=["pipelined", "staged", "storm"])
def started(request: pytest.FixtureRequest) -> Started:
    engine = Simulator(CHAIN, np.full(3_600, LOAD), SMALL, Settings(mode=request.param))

    def window() -> Observation:
        engine.sleep(60)
        engine.observe()  # the first window still fills the pipeline
        engine.sleep(600)
        return engine.observe()

    def measured() -> Observation:
        engine.sleep(60)
        return engine.observe()

    def lost() -> float:
        engine.sleep(600)
        record = engine.record
        waiting = record.backlog[record.steps]
        assert waiting < 30 * LOAD
        return float(record.arrived[record.steps] - record.completed()[-1] - waiting)

    return Started(
        engine, engine, engine.now(), 60.0, True, window, measured, lambda: 0.0, lost, lambda: False
    )
