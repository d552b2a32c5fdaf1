"""Asks the driver process what happened, and keeps it until somebody observes."""

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from rheostat.control.ports import Provider
from rheostat.engines.spark.driver_process import DriverProcess
from rheostat.engines.spark.observe import measures
from rheostat.engines.spark.observe.batches import Batch, Ledger
from rheostat.engines.spark.query_graph import operator_of
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import (
    ApplicationMeasures,
    Event,
    NodeMeasures,
    Observation,
    OperatorMeasures,
)
from rheostat.model.topology import Topology

RECENT = 50  # batches kept for the live view
OVERHEADS = 10  # batches that tell the overhead of a stage
LATEST = 20  # batches by which rows are compared with what the source says that it was offered
COLD_BATCHES = 2  # the first of a run tell of a JVM that loads its classes, not of the load


class Meter:
    """Measures the nodes' CPU between its readings; everyone who reads has their own."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._before: dict[str, tuple[float, float]] = {}  # node -> (at, CPU seconds)

    def read(self, now: float) -> dict[str, tuple[float | None, float | None]]:
        """Cores that each node used since the last reading, and its bytes in memory; None: not known."""
        found: dict[str, tuple[float | None, float | None]] = {}
        for name in (node.name for node in self._provider.nodes()):
            used = self._provider.usage(name)
            if used is None:
                found[name] = (None, None)
                continue
            at, before = self._before.get(name, (now, used.cpu_seconds))
            cores = (used.cpu_seconds - before) / (now - at) if now > at else None
            found[name] = (cores, used.memory_bytes)
            self._before[name] = (now, used.cpu_seconds)
        return found


class Query:
    """One query's open window: its batches since the last observation."""

    def __init__(self, name: str, operators: Sequence[str], ledger: Ledger) -> None:
        self.name, self.operators, self.ledger = name, tuple(operators), ledger
        self.run: str | None = None
        self.busy = False
        self.stages: list[dict[str, Any]] = []
        self.batches: list[Batch] = []
        self.before: Batch | None = None
        self._cold = COLD_BATCHES
        self._changed = 0.0  # a batch that began earlier ran otherwise; infinite while it is changed
        self.overheads: deque[float] = deque(maxlen=OVERHEADS)  # of a stage, in the latest batches of windows
        self._latest: tuple[Batch, ...] = ()  # of this run, after the cold ones
        self._judged: tuple[Batch | None, Batch] | None = None  # the last in a window, and the one before it

    def read(self, told: Mapping[str, Any]) -> None:
        """Take what the driver tells of the query itself."""
        self.ledger.query = told["id"] or ""  # not started yet: none is its own
        self.run, self.stages, self.busy = told["run"], told["stages"], bool(told["busy"])
        self.ledger.count_arrivals(told["arrived"])

    def add(self, batch: Batch, slots: int) -> None:
        """A batch ended that ran on so many slots."""
        cold = self._cold > 0 and not batch.idle
        follows = any(batch.number <= last.number + 1 for last in self._latest[-1:])
        if batch.idle and any(last.idle for last in self._latest[-1:]):
            self._latest = self._latest[:-1]  # a long silence shall not push out the batches before it
        self._latest = (*self._latest, batch)[-LATEST:] if follows and not cold else (batch,)
        if batch.doubt:
            self._latest = ()
        if cold:
            self._cold, self.before, self.batches = self._cold - 1, batch, []
        elif batch.started < self._changed:
            self.before = batch
        else:
            if not batch.idle:
                self._judged = (self.batches[-1] if self.batches else self.before, batch)
            self.batches.append(batch)
            overhead = measures.stage_overhead(batch, len(self.stages), slots)
            self.overheads += [overhead] if overhead is not None else []

    def begin_change(self) -> None:
        """A batch that begins from now on runs neither as before nor as it will, until `close` says when."""
        self._changed = math.inf

    def close(self, changed: float | None = None) -> None:
        """Begin a new window; the last batch of this one serves as the moment to count from."""
        if self.batches:
            self.before = self.batches[-1]
        self.batches = []
        if changed is not None:
            self._changed = changed

    def start_anew(self) -> None:
        """Another driver runs it now."""
        self.batches, self.before, self._cold = [], None, COLD_BATCHES
        self._latest, self._judged, self.busy = (), None, False

    def window(self, realtime: bool, start: float, now: float) -> measures.Window:
        """The open window as a value.

        While a long micro-batch runs, what the last in a window cost is the best that is known, and what the
        source is offered meanwhile may have grown. One that ran across a change tells nothing.
        """
        offered = tuple(self.ledger.arrivals)
        known = measures.Window(
            self.before, tuple(self.batches), realtime, now, start, offered, self._latest, busy=self.busy
        )
        return known if known.ran or known.quiet or not offered else self.standing_in(known)

    def standing_in(self, known: measures.Window) -> measures.Window:
        """The window with the last batch that told what a row costs, where there is one."""
        if known.realtime or self._judged is None:
            return known
        before, last = self._judged
        since = (one for one in (known.before, *known.batches) if one and one.started > last.started)
        return replace(known, before=before, batches=(last, *(one for one in since if one.idle)), stale=True)

    def shares(self) -> dict[str, tuple[int, ...]]:
        """Which stages are whose; an operator that shares another's stage has none of its own."""
        if not self.stages:
            return {}
        owned: dict[str, list[int]] = {name: [] for name in self.operators}
        by_owner = sorted(enumerate(self.stages), key=lambda pair: pair[1]["operator"] not in self.operators)
        for index, stage in by_owner:  # first its own, then the one in which it reads a topic
            owned.setdefault(operator_of(stage["operator"]), []).append(index)
        return {name: tuple(indices) for name, indices in owned.items()}


class Monitor:
    """What happens to an application: the open windows of its queries, on nodes that come and go."""

    def __init__(self, link: DriverProcess, provider: Provider, began_at: float, realtime: bool) -> None:
        self.link, self._provider = link, provider
        self._began_at, self._realtime = began_at, realtime
        self.queries: dict[str, Query] = {}
        self.recent: deque[Batch] = deque(maxlen=RECENT)
        self.executors: list[dict[str, Any]] = []
        self.rows: Counter[str] = Counter()  # out of each operator since the start
        self._events: list[Event] = []
        self._meter = Meter(provider)
        self.start = 0.0

    def follow(self, queries: Mapping[str, Sequence[str]]) -> None:
        """Watch these queries, each with its operators from below."""
        for name, operators in queries.items():
            ledger = Ledger(self._began_at, source=operators[0], realtime=self._realtime, name=name)
            self.queries[name] = Query(name, operators, ledger)

    @property
    def run_id(self) -> str | None:
        """Which runs of its queries are under way: a restart changes it."""
        runs = [query.run for query in self.queries.values() if query.run]
        return "+".join(runs) or None

    def poll(self, now: float) -> list[Batch]:
        """Fetch what happened; returns the batches that ended."""
        report = self.link.ask("report")
        self.executors = report["executors"]
        for told in report["queries"]:
            if told["name"] in self.queries:
                self.queries[told["name"]].read(told)
        ended: list[Batch] = []
        for query in self.queries.values():
            batches, events = query.ledger.read(report["events"])
            for batch in batches:
                query.add(batch, self.slots)
            ended += batches
            self._events += [event for event in events if event not in self._events]
        for batch in ended:
            self.rows.update({name: int(count) for name, count in batch.rows.items()})
        ended.sort(key=lambda batch: batch.finished)
        for batch in ended:
            self._remember(batch)
        for name in self._provider.refresh(list(self.nodes_of_executors().values())):
            self.note(now, "node", f"node {name} ended by itself")
        return ended

    def _remember(self, batch: Batch) -> None:
        """Keep it among the recent; of a silence only the newest trigger, or it would push out the rest."""
        before = next((one for one in reversed(self.recent) if one.query == batch.query), None)
        if before is not None and before.idle and batch.idle:
            self.recent.remove(before)
        self.recent.append(batch)

    def note(self, at: float, kind: str, text: str) -> None:
        """Add an event of the controller's own."""
        self._events.append(Event(at, kind, text))

    def forget(self, now: float, changed: float | None = None) -> None:
        """Begin new windows; after a change, without the batches that began before it."""
        for query in self.queries.values():
            query.close(changed)
        self.start = now

    def begin_change(self) -> None:
        """From now on batches are in no window, until `forget` says when the change was over."""
        for query in self.queries.values():
            query.begin_change()

    def another(self, link: DriverProcess) -> None:
        """A new driver process replaced the old one, with executors and perhaps query ids of its own."""
        self.link, self.executors = link, []
        for query in self.queries.values():
            query.start_anew()

    def nodes_of_executors(self) -> dict[str, str]:
        """On which node each executor runs."""
        return {str(executor["id"]): self.node_of(executor) for executor in self.executors}

    def node_of(self, executor: Mapping[str, Any]) -> str:
        """The node that an executor runs on; its page is that of the Worker, which shows its log."""
        page = urlsplit(str(executor.get("page") or "")).netloc
        return self._provider.node_of(str(executor["host"]), page)

    def _kinds(self) -> dict[str, NodeKind]:
        return {node.name: node.kind for node in self._provider.nodes()}

    @property
    def slots(self) -> int:
        """Slots of all registered executors."""
        return sum(int(executor["slots"]) for executor in self.executors)

    def stage_overhead(self) -> float | None:
        """What a stage costs whatever its rows, by the latest batches of each query.

        Beside other queries a batch also waits for slots that they hold: there the shortest wait tells most.
        """
        usual = median if len(self.queries) == 1 else min
        found = [usual(query.overheads) for query in self.queries.values() if query.overheads]
        return median(found) if found else None

    def observe(
        self,
        now: float,
        topology: Topology,
        parallelism: Mapping[str, int],
        trigger_seconds: float | None,
    ) -> Observation:
        """Close the windows and open the next."""
        nodes, kinds = self.nodes_of_executors(), self._kinds()
        operators: dict[str, OperatorMeasures] = {}
        windows = {name: q.window(self._realtime, self.start, now) for name, q in self.queries.items()}
        silent = all(window.quiet for window in windows.values())
        for name, query in self.queries.items():
            # What reached others will reach it, and cost what it did.
            coming = windows[name].quiet and not silent
            operators |= measures.operators(
                topology,
                query.operators,
                query.standing_in(windows[name]) if coming else windows[name],
                query.shares(),
                parallelism,
                nodes,
                kinds,
            )
        found = Observation(
            self.start,
            now,
            {name: operators[name] for name in topology.names},
            self._nodes(now, nodes, self._placed(windows, nodes)),
            self._application(topology, trigger_seconds, windows),
            tuple(self._events),
        )
        self._events = []
        self.forget(now)
        return found

    def peek(self, now: float, topology: Topology) -> ApplicationMeasures:
        """The last few batches, for a live view; closes nothing."""
        windows = {}
        for name, query in self.queries.items():
            recent = [batch for batch in self.recent if batch.query == name][-4:]
            before = recent[0] if len(recent) > 1 else None
            last = tuple(recent[1:] if before else recent)
            windows[name] = measures.Window(before, last, self._realtime, now, busy=query.busy)
        return self._application(topology, None, windows)

    def _application(
        self, topology: Topology, trigger_seconds: float | None, windows: Mapping[str, measures.Window]
    ) -> ApplicationMeasures:
        query_of = {name: query.name for query in self.queries.values() for name in query.operators}
        measured = {
            name: measures.application(self.queries[name].operators[0], window, trigger_seconds)
            for name, window in windows.items()
        }
        return measures.together(topology, query_of, measured)

    def _placed(
        self, windows: Mapping[str, measures.Window], nodes: Mapping[str, str]
    ) -> Mapping[tuple[str, str], int] | None:
        """How many instances of an operator a node ran at once: (node, operator); None: not known."""
        placed: Counter[tuple[str, str]] = Counter()
        for name, query in self.queries.items():
            hosted = measures.hosted(query.operators, windows[name], query.shares(), nodes, self._kinds())
            if hosted is None:
                return None
            placed += hosted
        return placed

    def _nodes(
        self, now: float, nodes: Mapping[str, str], placed: Mapping[tuple[str, str], int] | None
    ) -> tuple[NodeMeasures, ...]:
        used, hosted = self._meter.read(now), list(nodes.values())
        measured = []
        for node in self._provider.nodes():
            name, kind = node.name, node.kind
            cores, memory = used.get(name, (None, None))
            measured.append(
                NodeMeasures(
                    name=name,
                    slots=kind.slots,
                    cores=kind.cores,
                    kind=kind.name,
                    region=node.region,
                    price_per_hour=kind.price_per_hour,
                    executors=hosted.count(name),
                    cpu=None if cores is None else min(1.0, max(0.0, cores / kind.cores)),
                    memory=None if memory is None else min(1.0, memory / (kind.memory_mb * 2**20)),
                    instances=None
                    if placed is None
                    else {operator: count for (host, operator), count in placed.items() if host == name},
                )
            )
        return tuple(measured)
