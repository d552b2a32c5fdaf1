"""Contestants of a trial: a policy, a fixed number of nodes, or Spark's dynamic allocation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from rheostat.model.configuration import Bounds

PEAK, ALLOCATION = "static-peak", "spark-dra"  # the peers that bounds compare with
PEERS = ("static-min", PEAK, ALLOCATION, f"{ALLOCATION}-quick")  # besides policies
QUICK_SECONDS = 10  # idle time after which `spark-dra-quick` releases an executor


@dataclass(frozen=True)
class Contestant:
    """Something that scales the application."""

    name: str
    policy: str
    allocated: bool = False  # Spark's dynamic allocation scales
    settings: Mapping[str, str] = field(default_factory=dict)
    nodes: str = "all"  # or "min" or "max": fixed at that bound

    @property
    def folder(self) -> str:
        """A unique file name."""
        plain = re.sub(r"[^\w.=-]+", "-", self.name).strip("-")[:80]
        return plain if plain == self.name else f"{plain}-{sha256(self.name.encode()).hexdigest()[:6]}"

    def bounds(self, given: Bounds) -> Bounds:
        """Return the bounds on its nodes."""
        fixed = {"min": given.min_nodes, "max": given.max_nodes}.get(self.nodes)
        return given if fixed is None else Bounds(fixed, fixed)


def contestant(name: str) -> Contestant:
    """Return the peer or the policy of this name."""
    if name.startswith(ALLOCATION) and name in PEERS:
        quick = {"spark.dynamicAllocation.executorIdleTimeout": f"{QUICK_SECONDS}s"}
        return Contestant(name, "static", allocated=True, settings=quick if name != ALLOCATION else {})
    if name in PEERS:
        return Contestant(name, "static(provision=slots)", nodes="min" if name == "static-min" else "max")
    return Contestant(name, name)
