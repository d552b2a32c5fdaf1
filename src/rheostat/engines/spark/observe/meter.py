"""Measures what the nodes use."""

from rheostat.control.ports import Provider


class Meter:
    """Measures the nodes' CPU between its readings; each reader needs its own meter."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._before: dict[str, tuple[float, float]] = {}  # node -> (at, CPU seconds)

    def read(self, now: float) -> dict[str, tuple[float | None, float | None]]:
        """Cores that each node has used since the last reading, and its bytes of memory; None: not known."""
        readings: dict[str, tuple[float | None, float | None]] = {}
        for name in (node.name for node in self._provider.nodes()):
            used = self._provider.usage(name)
            if used is None:
                readings[name] = (None, None)
                continue
            at, before = self._before.get(name, (now, used.cpu_seconds))
            cores = (used.cpu_seconds - before) / (now - at) if now > at else None
            readings[name] = (cores, used.memory_bytes)
            self._before[name] = (now, used.cpu_seconds)
        return readings
