"""Q-learning (Watkins and Dayan, 1992) along a row of settings: which one earns most.

P2, section 5, learns ELYSIUM's thresholds so. A state is a threshold; an action lowers it, keeps it or raises
it by a step; the reward is that of the threshold to which it leads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOVES = (-1, 0, 1)
DISCOUNT = 0.2  # of a reward one step later
LEAST_WEIGHT = 0.3  # of the newest reward; the first ones count with values that were not known yet
CURIOSITY = 0.2  # the share of steps in a direction drawn at random, at first; it falls to 0
HIGHEST_REWARD = 1.0  # what is not tried yet is expected to earn that, and so is tried


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned of each setting, in their order."""

    best: int
    rewards: tuple[float | None, ...]  # mean; None: it was never tried
    tries: tuple[int, ...]
    values: NDArray[np.float64]  # by setting and move


def learn(
    settings: int,
    reward: Callable[[int, int], float],
    steps: int,
    seed: int,
    progress: Callable[[float], None] = lambda _: None,
) -> Learned:
    """Walk along the settings; `reward` is of a setting (at most 1), and gets the number of the step.

    Every setting is tried once before the walk begins, as it starts without knowledge.

    >>> learn(5, lambda setting, _: -abs(setting - 3.0), steps=60, seed=1).best
    3
    """
    draw = np.random.default_rng(seed)
    values = np.full((settings, len(MOVES)), HIGHEST_REWARD / (1 - DISCOUNT))
    visits = np.zeros((settings, len(MOVES)), dtype=np.int64)
    sums, tries = np.zeros(settings), np.zeros(settings, dtype=np.int64)
    state = int(draw.integers(settings))
    for step in range(settings + steps):
        if step < settings:
            state, move = step, MOVES.index(0)
        else:
            curious = draw.random() < CURIOSITY * (1 - (step - settings) / steps)
            move = _random_move(draw, state, settings) if curious else _best_move(values, state)
        after = state + MOVES[move]
        earned = reward(after, step)
        sums[after] += earned
        tries[after] += 1
        visits[state, move] += 1
        wanted = earned + DISCOUNT * values[after, _best_move(values, after)]
        values[state, move] += (wanted - values[state, move]) * max(LEAST_WEIGHT, 1 / visits[state, move])
        state = after
        progress((step + 1) / (settings + steps))
    rewards = tuple(float(s / n) if n else None for s, n in zip(sums, tries, strict=True))
    return Learned(_settled(values, state), rewards, tuple(int(n) for n in tries), values)


def _possible(state: int, settings: int) -> list[int]:
    return [number for number, move in enumerate(MOVES) if 0 <= state + move < settings]


def _random_move(draw: np.random.Generator, state: int, settings: int) -> int:
    return int(draw.choice(_possible(state, settings)))


def _best_move(values: NDArray[np.float64], state: int) -> int:
    return max(_possible(state, len(values)), key=lambda move: float(values[state, move]))


def _settled(values: NDArray[np.float64], state: int) -> int:
    """Where the best moves lead from a state, and stay; or the better of two that point at each other."""
    seen: Sequence[int] = []
    while state not in seen:
        seen = [*seen, state]
        state += MOVES[_best_move(values, state)]
    turning = seen[seen.index(state) :]
    return max(turning, key=lambda each: float(values[each].max()))
