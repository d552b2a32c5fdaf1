"""ELYSIUM's thresholds learned on a load (P2, section 5), each by itself: a high one that degrades little."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rheostat.analyze.judging import Measures
from rheostat.analyze.q_learning import learn

Judge = Callable[[Mapping[str, float], int], Measures]  # of ELYSIUM's parameters, and of a seed
PAPER = {
    "cpu_max_thr": 0.8,
    "core_max_thr": 0.65,
    "core_min_thr": 0.25,
}  # what the paper learned, in its order
TABLE_1 = {0.60: 0.53, 0.65: 0.57, 0.70: 0.62, 0.75: 0.66, 0.80: 0.71, 0.85: 0.65, 0.90: 0.43}
GRIDS = {  # the paper prints that of cpu_max_thr only; the others are ours
    "cpu_max_thr": tuple(TABLE_1),
    "core_max_thr": (0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80, 0.85),
    "core_min_thr": (0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40),
}


@dataclass(frozen=True, slots=True)
class Tried:
    """One value of a threshold; the means of its episodes, None if there were none."""

    value: float
    episodes: int
    reward: float | None
    degradation: float | None
    nodes_saved: float | None


@dataclass(frozen=True, slots=True)
class Tuned:
    """A threshold, the value that was learned for it, and all that were tried."""

    name: str
    best: float
    tried: tuple[Tried, ...]


def tune(
    judge: Judge, episodes: int, seed: int, begin: Callable[[str], Callable[[float], None]]
) -> list[Tuned]:
    """Learn the thresholds one after the other; each counts with those that were learned before it."""
    known: dict[str, float] = {}
    tuned = []
    for name in PAPER:
        tuned.append(_tune(name, known, judge, episodes, seed, begin(name)))
        known[name] = tuned[-1].best
    return tuned


def _tune(
    name: str,
    known: Mapping[str, float],
    judge: Judge,
    episodes: int,
    seed: int,
    progress: Callable[[float], None],
) -> Tuned:
    """Reward = threshold - throughput degradation (P2, section 5): use nodes as fully as rows allow."""
    grid = _allowed(name, known)
    judged: list[list[Measures]] = [[] for _ in grid]

    def reward(setting: int, step: int) -> float:
        measures = judge({**known, name: grid[setting]}, seed + step)
        judged[setting].append(measures)
        return grid[setting] - measures.throughput_degradation

    learned = learn(len(grid), reward, max(1, episodes - len(grid)), seed, progress)
    tried = tuple(
        Tried(value, len(runs), mean, _mean(runs, "throughput_degradation"), _mean(runs, "nodes_saved"))
        for value, runs, mean in zip(grid, judged, learned.rewards, strict=True)
    )
    return Tuned(name, grid[learned.best], tried)


def _allowed(name: str, known: Mapping[str, float]) -> tuple[float, ...]:
    """ELYSIUM refuses a core_min_thr that is not below core_max_thr."""
    most = known.get("core_max_thr", 1.0) if name == "core_min_thr" else 1.0
    return tuple(value for value in GRIDS[name] if value < most)


def _mean(runs: list[Measures], measure: str) -> float | None:
    return sum(float(getattr(run, measure)) for run in runs) / len(runs) if runs else None
