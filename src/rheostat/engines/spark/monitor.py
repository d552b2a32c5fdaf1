"""Asks the driver process what happened, and keeps it until somebody observes."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

from rheostat.engines.spark import measuring
from rheostat.engines.spark.batches import Batch, Ledger
from rheostat.engines.spark.link import Link
from rheostat.engines.spark.machines import Machines
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import ApplicationMeasures, Event, NodeMeasures, Observation
from rheostat.model.topology import Topology

RECENT = 50  # batches kept for the live view and for the overhead of a stage
COLD_BATCHES = 2  # the first of a run tell of a JVM that loads its classes, not of the load


class Meter:
    """Measures the nodes' CPU between its readings; everyone who reads has their own."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._before: dict[str, tuple[float, float]] = {}  # node -> (at, CPU seconds)

    def read(self, now: float) -> dict[str, tuple[float | None, float | None]]:
        """Cores that each node used since the last reading, and its bytes in memory; None: not known."""
        found: dict[str, tuple[float | None, float | None]] = {}
        for name in self._machines.names():
            used = self._machines.usage(name)
            if used is None:
                found[name] = (None, None)
                continue
            at, before = self._before.get(name, (now, used.cpu_seconds))
            cores = (used.cpu_seconds - before) / (now - at) if now > at else None
            found[name] = (cores, used.memory_bytes)
            self._before[name] = (now, used.cpu_seconds)
        return found


class Monitor:
    """The open window: batches since the last observation, on nodes that come and go."""

    def __init__(self, link: Link, machines: Machines, began_at: float, realtime: bool) -> None:
        self.link, self._machines = link, machines
        self._ledger = Ledger(began_at, realtime=realtime)
        self._realtime = realtime
        self.recent: deque[Batch] = deque(maxlen=RECENT)
        self.executors: list[dict[str, Any]] = []
        self.stages: list[dict[str, Any]] = []
        self.run_id: str | None = None
        self.rows: Counter[str] = Counter()  # out of each operator since the start
        self._window: list[Batch] = []
        self._cold = COLD_BATCHES
        self._before: Batch | None = None
        self._events: list[Event] = []
        self._meter = Meter(machines)
        self.start = 0.0

    def poll(self, now: float) -> list[Batch]:
        """Fetch what happened; returns the batches that ended."""
        report = self.link.ask("report")
        self._ledger.count_arrivals(report["arrived"])
        batches, events = self._ledger.read(report["events"])
        self.executors = report["executors"]
        self.stages = report["stages"]
        self.run_id = report["run"]
        for batch in batches:
            if self._cold > 0 and not batch.idle:
                self._cold, self._before = self._cold - 1, batch
            else:
                self._window.append(batch)
            self.rows.update({name: int(count) for name, count in batch.rows.items()})
        self.recent.extend(batches)
        self._events += events
        for name in self._machines.check(self.executors):
            self.note(now, "node", f"node {name} ended by itself")
        return batches

    def note(self, at: float, kind: str, text: str) -> None:
        """Add an event of the controller's own."""
        self._events.append(Event(at, kind, text))

    def forget(self, now: float) -> None:
        """Begin a new window, after a change: its first batch only serves as the moment to count from."""
        if self._window:
            self._before = self._window[-1]
        self._window = []
        self.start = now

    def count_from(self, source: str) -> None:
        """Count the input by the rows out of this operator."""
        self._ledger.source = source

    def another(self, link: Link) -> None:
        """A new driver process replaced the old one; its query may have another id."""
        self.link, self._ledger.query = link, None
        self._window, self._before, self._cold = [], None, COLD_BATCHES

    def nodes_of_executors(self) -> dict[str, str]:
        """On which node each executor runs."""
        return {str(executor["id"]): self._machines.of(executor) for executor in self.executors}

    @property
    def slots(self) -> int:
        """Slots of all registered executors."""
        return sum(int(executor["slots"]) for executor in self.executors)

    def shares(self, topology: Topology) -> dict[str, tuple[int, ...]]:
        """Which stages are whose; an operator that shares another's stage has none of its own."""
        if not self.stages:
            return {}
        owned: dict[str, list[int]] = {name: [] for name in topology.names}
        for index, stage in enumerate(self.stages):
            owned.setdefault(stage["operator"], []).append(index)
        return {name: tuple(indices) for name, indices in owned.items()}

    def observe(
        self,
        now: float,
        topology: Topology,
        parallelism: Mapping[str, int],
        trigger_seconds: float | None,
        kind: NodeKind,
    ) -> Observation:
        """Close the window and open the next."""
        window = measuring.Window(self._before, tuple(self._window), self._realtime, now)
        nodes = self.nodes_of_executors()
        found = Observation(
            self.start,
            now,
            measuring.operators(topology, window, self.shares(topology), parallelism, nodes, kind),
            self._nodes(now, nodes),
            measuring.application(topology, window, trigger_seconds),
            tuple(self._events),
        )
        if self._window:
            self._before = self._window[-1]
        self._window, self._events, self.start = [], [], now
        return found

    def peek(self, now: float, topology: Topology) -> ApplicationMeasures:
        """The last few batches, for a live view; closes nothing."""
        recent: Sequence[Batch] = tuple(self.recent)[-4:]
        before = recent[0] if len(recent) > 1 else None
        window = measuring.Window(before, tuple(recent[1:] if before else recent), self._realtime, now)
        return measuring.application(topology, window, None)

    def _nodes(self, now: float, nodes: Mapping[str, str]) -> tuple[NodeMeasures, ...]:
        kind, used = self._machines.kind, self._meter.read(now)
        hosted = list(nodes.values())
        measured = []
        for name in self._machines.names():
            cores, memory = used.get(name, (None, None))
            measured.append(
                NodeMeasures(
                    name=name,
                    slots=kind.slots,
                    cores=kind.cores,
                    kind=kind.name,
                    executors=hosted.count(name),
                    cpu=None if cores is None else min(1.0, max(0.0, cores / kind.cores)),
                    memory=None if memory is None else min(1.0, memory / (kind.memory_mb * 2**20)),
                )
            )
        return tuple(measured)
