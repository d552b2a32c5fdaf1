"""The protocol of a cost profile: the cost of operators, learned window by window.

To add one: write it as a file in this folder and name it in PROFILES (`__init__.py`). Then ELYSIUM offers
it by that name, and tests/contracts/test_cost_profiles.py tests it.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from rheostat.analyze.evaluation import Evaluation
from rheostat.model.observation import Observation


class CostProfile(Protocol):
    """Predicts how many slots each operator keeps busy at given rates."""

    @property
    def state(self) -> Any:
        """What was learned, as plain JSON data; the profile can be rebuilt from it."""

    def learn(self, observation: Observation, evaluation: Evaluation) -> None:
        """Learn from a window in which everything needed was measured."""

    def busy(self, rates: Mapping[str, float]) -> dict[str, float]:
        """Slots that each operator keeps busy, given the rows/s that arrive at each."""
