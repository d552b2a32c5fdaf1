"""A node as whoever pays for it sees it."""

from dataclasses import dataclass

from rheostat.model.configuration import NodeKind
from rheostat.model.errors import RheostatError

REGION = "local"  # where nodes are unless somebody says otherwise


@dataclass(frozen=True, slots=True)
class Node:
    """A machine that a provider started, or one of somebody else's that hosts our executors."""

    name: str  # unique within its provider, and never used again
    kind: NodeKind
    region: str = REGION
    ready_at: float | None = None  # when it can take executors, on the provider's clock; None: not known yet


@dataclass(frozen=True, slots=True)
class Usage:
    """What a node used since its start: CPU seconds, and bytes in memory now."""

    cpu_seconds: float = 0.0
    memory_bytes: float = 0.0


def choose_region(region: str, regions: tuple[str, ...]) -> str:
    """Return the region, or the first where none is named."""
    if region and region not in regions:
        raise RheostatError(f"there is no region {region!r}; regions are {', '.join(regions)}")
    return region or regions[0]
