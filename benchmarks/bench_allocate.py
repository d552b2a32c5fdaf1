"""How long the allocators take, how much they gain, and how exact `optimal` is, on random topologies.

    python benchmarks/bench_allocate.py            # 200 components, 100 units; 2,000 components, 1,000 units
    python benchmarks/bench_allocate.py --quick    # the small size only

Ends with exit code 1 when a bound is broken: 2 s and a proven gap of 0 at 200 components, 60 s and a
proven gap of 0.1 % at 2,000 (every algorithm), and no algorithm may gain more than `optimal` does.
"""

import argparse
import random
import sys
from itertools import product
from time import perf_counter

from rheostat.allocate import ALGORITHMS, Component, MeasuredTopology, allocate, throughput

MIXES = {  # rows out per row; over long paths the second lets the load grow many times, which is harder
    "level": (0.5, 1.0, 1.0, 1.0, 2.0),
    "growing": (0.5, 1.0, 1.0, 1.5, 2.0),
}
SHAPES = ("tree", "dag", "layered", "chains")
BOUNDS = {200: (100, 2.0, 0.0), 2000: (1000, 60.0, 0.001)}  # components: units, seconds, proven gap


def random_topology(seed: int, size: int, shape: str, mix: str = "level") -> MeasuredTopology:
    """Make a topology whose components can take 0.25 to 1.6 times the load that would reach them."""
    rng = random.Random(f"{shape}-{size}-{seed}")
    sources = max(1, size // 100)
    children: list[dict[int, float]] = [{} for _ in range(size)]
    for i in range(sources, size):
        for parent in parents(rng, i, size, sources, shape):
            children[parent][i] = rng.uniform(0.2, 1.0)
    for shares in children:
        total = sum(shares.values())
        for child in shares:
            shares[child] /= total
    ratio = [1.0 if i < sources or not children[i] else rng.choice(MIXES[mix]) for i in range(size)]
    load = [float(rng.randint(1000, 20000)) if i < sources else 0.0 for i in range(size)]
    for i, shares in enumerate(children):  # a parent always comes before its children
        for child, share in shares.items():
            load[child] += load[i] * ratio[i] * share
    return MeasuredTopology(
        f"{shape} {size} {mix} #{seed}",
        tuple(
            Component(
                name=str(i),
                max_rate=load[i] if i < sources else load[i] * rng.uniform(0.25, 1.6),
                ratio=ratio[i],
                units=rng.randint(1, 5),
                source=i < sources,
                children={str(child): share for child, share in children[i].items()},
            )
            for i in range(size)
        ),
    )


def parents(rng: random.Random, i: int, size: int, sources: int, shape: str) -> set[int]:
    """Return the components that feed component i."""
    if shape == "tree":
        return {i - sources if i < 2 * sources else rng.randrange(max(0, i // 3 - 2), i)}
    if shape == "dag":
        if i < 2 * sources:
            return {i - sources}
        return {rng.randrange(max(0, i - size // 3), i) for _ in range(rng.randint(1, 3))}
    width = sources if shape == "chains" else max(sources, size // 10)
    first = max(0, (i - sources) // width * width + sources - width)
    row = range(
        first if i >= sources + width else 0, min(first + width, i) if i >= sources + width else sources
    )
    if shape == "chains":
        return {row[(i - sources) % len(row)]}
    return {rng.choice(row) for _ in range(rng.randint(1, 3))}


def measure(size: int, seeds: int) -> list[str]:
    """Print a line per topology; return the bounds that were broken."""
    units, seconds, gap = BOUNDS[size]
    broken = []
    for shape, mix, seed in product(SHAPES, MIXES, range(seeds)):
        topology = random_topology(seed, size, shape, mix)
        now = throughput(topology)
        times, gains, proven = {}, {}, 0.0
        for name in ALGORITHMS:
            start = perf_counter()
            answer = allocate(topology, units, name)
            times[name], gains[name] = perf_counter() - start, answer.gain / now
            proven = answer.gap if answer.gap is not None else proven
            if times[name] > seconds:
                broken.append(f"{topology.name}: {name} took {times[name]:.1f} s, more than {seconds:g} s")
        if proven > gap:
            broken.append(f"{topology.name}: proven gap {proven:.4%}, more than {gap:.4%}")
        if max(gains.values()) > gains["optimal"] * (1 + 1e-9) + 1e-9:
            broken.append(f"{topology.name}: optimal gains less than another algorithm")
        cells = "  ".join(f"{times[name]:7.2f}s {gains[name]:+7.1%}" for name in ALGORITHMS)
        print(f"{topology.name:<24} {units:>5}  {cells}  {proven:8.4%}", flush=True)
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="200 components only")
    parser.add_argument(
        "--seeds", type=int, default=0, help="topologies per shape and mix (default: 3 small, 1 large)"
    )
    options = parser.parse_args()
    print(f"{'topology':<24} units  " + "  ".join(f"{name:>16}" for name in ALGORITHMS) + "  proven gap")
    broken = []
    for size, seeds in ((200, 3),) if options.quick else ((200, 3), (2000, 1)):
        broken += measure(size, options.seeds or seeds)
    for line in broken:
        print(f"BROKEN {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
