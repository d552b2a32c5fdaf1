"""What a cost profile is: what operators cost, learned window by window.

To add one: write it in one file of this folder and name it in PROFILES (`__init__.py`). Then ELYSIUM offers
it by that name, and tests/contracts/test_cost_profiles.py tries it.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from rheostat.analyze.evaluation import Evaluation
from rheostat.model.observation import Observation


class CostProfile(Protocol):
    """Says how many slots each operator keeps busy at some rates."""

    @property
    def state(self) -> Any:
        """What was learned, as plain JSON data; the profile can be built from it again."""

    def learn(self, observation: Observation, evaluation: Evaluation) -> None:
        """Take in a window of which everything needed was measured."""

    def busy(self, rates: Mapping[str, float]) -> dict[str, float]:
        """Slots that each operator keeps busy when so many rows/s come to each."""
