"""A node from the point of view of whoever pays for it."""

from dataclasses import dataclass

from rheostat.model.configuration import NodeKind
from rheostat.model.errors import RheostatError

REGION = "local"  # the region of nodes unless another is set


@dataclass(frozen=True, slots=True)
class Node:
    """A machine that a provider started, or another owner's machine that hosts our executors."""

    name: str  # unique within its provider, never reused
    kind: NodeKind
    region: str = REGION
    ready_at: float | None = None  # when it can take executors, on the provider's clock; None: unknown as yet


@dataclass(frozen=True, slots=True)
class Usage:
    """What a node used since its start: CPU seconds, and bytes in memory now."""

    cpu_seconds: float = 0.0
    memory_bytes: float = 0.0


def choose_region(region: str, regions: tuple[str, ...]) -> str:
    """Return the region, or the first region if none is named."""
    if region and region not in regions:
        raise RheostatError(f"there is no region {region!r}; regions are {', '.join(regions)}")
    return region or regions[0]
