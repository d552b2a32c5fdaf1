"""The simulator's bounds: a day of seconds with 20 operators in 5 s and 200 MB; linear in operators."""

import resource
import subprocess
import sys
import time

from worlds import BOUNDS, chain, tree

from rheostat.engines.simulator.comparison import run_policy
from rheostat.engines.simulator.scenario import Scenario
from rheostat.engines.simulator.settings import Settings
from rheostat.model.topology import Topology
from rheostat.policies.registry import build
from rheostat.workloads import parse_curve, sample

DAY_SECONDS, DAY_MB = 5.0, 200.0
MODES = ("pipelined", "staged", "storm")


def seconds(topology: Topology, mode: str, policy: str, hours: float) -> tuple[float, float]:
    load = sample(parse_curve(f"day:duration={hours}h:noise=poisson"))
    scenario = Scenario(topology, load, Settings(mode=mode), BOUNDS)
    started = time.perf_counter()
    run = run_policy(scenario, build(policy))
    return time.perf_counter() - started, run.measures.mean_nodes


def megabytes(mode: str) -> float:
    """Return the peak memory of a process that does a single run."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", mode], check=True, capture_output=True, text=True, timeout=300
    )
    return float(done.stdout)


def main() -> int:
    failed = 0
    print("24 h of 1-s steps, 20 operators, elysium")
    for mode in MODES:
        took, _ = seconds(chain(20), mode, "elysium", 24)
        memory = megabytes(mode)
        good = took <= DAY_SECONDS and memory <= DAY_MB
        failed += not good
        print(
            f"  {mode:10} {took:5.2f} s (bound {DAY_SECONDS:g})  "
            f"{memory:5.0f} MB (bound {DAY_MB:g})  {'ok' if good else 'FAILED'}"
        )
    print("1 h, storm, growing topology (cost per operator and step should not grow)")
    costs = {}
    for size in (50, 200, 1000):
        took, nodes = seconds(tree(size), "storm", "static", 1)
        costs[size] = took / size / 3600 * 1e6
        print(
            f"  {size:5} operators on {nodes:4.0f} nodes: {took:5.2f} s, "
            f"{costs[size]:.3f} us per operator and step"
        )
    linear = costs[1000] <= 1.5 * costs[200]
    failed += not linear
    print(
        f"  from 200 to 1,000 operators the cost per operator is x{costs[1000] / costs[200]:.2f}  "
        f"{'ok' if linear else 'FAILED'}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        seconds(chain(20), sys.argv[2], "elysium", 24)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        sys.exit(0)
    sys.exit(main())
