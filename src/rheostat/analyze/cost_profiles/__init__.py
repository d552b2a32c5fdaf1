"""Cost profiles: the cost of operators. `cost_profile.py` has the protocol; each profile has its own file."""

from collections.abc import Callable, Mapping
from typing import Any

from rheostat.analyze.cost_profiles.cost_profile import CostProfile
from rheostat.analyze.cost_profiles.linear import LinearCosts
from rheostat.analyze.cost_profiles.newest import NewestCosts
from rheostat.analyze.cost_profiles.per_batch import BatchCosts
from rheostat.analyze.cost_profiles.stated import StatedCosts
from rheostat.model.topology import Topology

# The profiles that ELYSIUM offers by name, each built from a topology, the cores of an instance, its state.
PROFILES: Mapping[str, Callable[[Topology, float, Mapping[str, Any]], CostProfile]] = {
    "linear": LinearCosts,
    "exact": StatedCosts,
}

__all__ = ["PROFILES", "BatchCosts", "CostProfile", "LinearCosts", "NewestCosts", "StatedCosts"]
