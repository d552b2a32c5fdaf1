"""ELYSIUM's selectivity profile (P2, section 3.2: SP): the mean selectivity of each stream over time."""

from collections.abc import Mapping
from typing import Any

from rheostat.analyze.rates import demand, stated_selectivity
from rheostat.model.observation import Observation
from rheostat.model.topology import Topology


class SelectivityProfile:
    """Rows out over rows in, of all windows so far; before any flowed, as the topology states.

    >>> from rheostat.model.topology import Operator, Stream
    >>> words = Topology("words", (Operator("lines"), Operator("split")), (Stream("lines", "split", 8.0),))
    >>> SelectivityProfile(words).rates({"lines": 10.0})["split"]
    80.0
    >>> SelectivityProfile(words, {"streams": [["lines", "split", 100, 500]]}).rates({"lines": 10.0})["split"]
    50.0
    """

    def __init__(self, topology: Topology, state: Mapping[str, Any] | None = None) -> None:
        self._topology = topology
        self._rows: dict[tuple[str, str], tuple[float, float]] = {
            (upstream, downstream): (before, after)
            for upstream, downstream, before, after in (state or {}).get("streams", [])
        }

    @property
    def state(self) -> dict[str, Any]:
        """What was learned, as plain JSON data."""
        return {"streams": [[*stream, *rows] for stream, rows in self._rows.items()]}

    def learn(self, observation: Observation) -> None:
        """Learn from a window."""
        for upstream, measures in observation.operators.items():
            for downstream, emitted in measures.emitted.items():
                if measures.processed:
                    before, after = self._rows.get((upstream, downstream), (0.0, 0.0))
                    self._rows[upstream, downstream] = (before + measures.processed, after + emitted)

    def rates(self, load: Mapping[str, float]) -> dict[str, float]:
        """Rows/s at every operator, given those offered at each source."""
        sigma = stated_selectivity(self._topology)
        learned = {s: after / before for s, (before, after) in self._rows.items() if s in sigma and before}
        return demand(self._topology, load, sigma | learned)
