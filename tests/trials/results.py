"""A trial, and results as its runs would leave them."""

from pathlib import Path

from rheostat.model.configuration import Bounds, NodeKind
from rheostat.trials.trial import Result, Trial

TRIAL = Trial(
    app="wordcount",
    script=Path("app.py"),
    curve="sine:low=0:high=100:period=100:duration=100",
    seed=1,
    nodes=Bounds(1, 4),
    node=NodeKind(cores=0.5, slots=2),
    mode="microbatch",
    trigger_seconds=2.0,
    period_seconds=5.0,
    cooldown_seconds=5.0,
    warm_up_seconds=0.0,
    partitions=4,
)


def result(
    name: str, number: int = 1, *, nodes: float = 4.0, lag: float = 5.0, served: float = 1.0
) -> Result:
    load = [50.0] * 50 + [100.0] * 50
    return Result(
        contestant=name,
        number=number,
        load=load,
        throughput=[served * rows for rows in load],
        lag=[lag] * 100,
        nodes=[nodes] * 100,
        instances=[2 * nodes] * 100,
        work=[(50.0, 0.7), (100.0, 1.2)],
        startups=[8.0],
        changes=3,
    )
