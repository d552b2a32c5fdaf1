from itertools import pairwise

import numpy as np
import pytest

from rheostat.analyze.q_learning import learn


@pytest.mark.parametrize("best", range(7))
@pytest.mark.parametrize("seed", range(3))
def test_the_walk_finds_the_setting_that_earns_most_wherever_it_is(best: int, seed: int) -> None:
    learned = learn(7, lambda setting, _: 0.7 - 0.05 * abs(setting - best), steps=90, seed=seed)
    assert learned.best == best
    assert sum(learned.tries) == 97
    assert learned.rewards[best] == pytest.approx(0.7)


@pytest.mark.parametrize("seed", range(5))
def test_noise_smaller_than_the_differences_does_not_mislead_it(seed: int) -> None:
    draw = np.random.default_rng(seed)
    learned = learn(
        7, lambda setting, _: -0.1 * abs(setting - 4) + float(draw.normal(0, 0.02)), steps=100, seed=seed
    )
    assert learned.best == 4


def test_a_step_leads_to_a_neighbour_at_most() -> None:
    walked: list[int] = []

    def reward(setting: int, step: int) -> float:
        walked.append(setting)
        return 0.0

    learn(5, reward, steps=50, seed=1)
    assert walked[:5] == [0, 1, 2, 3, 4]
    assert max(abs(after - before) for before, after in pairwise(walked)) == 1


def test_the_same_seed_walks_the_same_way() -> None:
    first, second = (learn(6, lambda setting, _: setting % 3, steps=40, seed=3) for _ in range(2))
    assert (first.best, first.tries, first.rewards) == (second.best, second.tries, second.rewards)
