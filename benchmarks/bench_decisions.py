"""A decision for 1,000 operators takes at most 50 ms, whichever the policy."""

import statistics
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from worlds import BOUNDS, tree

from rheostat.analyze.evaluation import evaluate
from rheostat.engines.simulator.engine import Simulator
from rheostat.engines.simulator.settings import Settings
from rheostat.model.configuration import NodeKind
from rheostat.policies.base import Situation, Start
from rheostat.policies.registry import available, build

OPERATORS, TURNS, BOUND_MS = 1000, 15, 50.0


def main() -> int:
    topology = tree(OPERATORS)
    kind = NodeKind(cores=8, slots=8)
    load = np.concatenate([np.full(600, rate) for rate in (600.0, 1_500.0, 3_000.0, 4_500.0, 2_000.0)])
    failed = 0
    print(
        f"{OPERATORS} operators: a decision in ms, over {TURNS} turns of a changing load (bound {BOUND_MS:g})"
    )
    for name in available():
        settings = Settings(mode="storm", kinds=(kind,))
        policy = build(name)
        start = Start(topology, settings.model(topology), settings.kinds, BOUNDS, 600.0, 4_500.0)
        engine = Simulator(topology, load, start.sized_for(2_000.0), settings)
        memory: Mapping[str, Any] = {}
        times = []
        for _ in range(TURNS):
            engine.sleep(180)
            observed = engine.observe()
            judged = evaluate(topology, observed, engine.model, kind)
            situation = Situation(
                engine.now(), topology, engine.configuration, observed, judged, engine.model, (kind,), BOUNDS
            )
            started = time.perf_counter()
            _, memory = policy.decide(situation, memory)
            times.append(1000 * (time.perf_counter() - started))
        good = max(times) <= BOUND_MS
        failed += not good
        instances = engine.configuration.instances
        print(
            f"  {name:10} median {statistics.median(times):6.2f}  worst {max(times):6.2f}  "
            f"({instances} instances on {engine.configuration.nodes} nodes)  {'ok' if good else 'FAILED'}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
