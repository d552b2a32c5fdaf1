"""Asks the driver process what happened, and keeps it until somebody observes."""

from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from statistics import median
from urllib.parse import urlsplit

from rheostat.analyze.overload import overload
from rheostat.control.ports import Provider
from rheostat.engines.spark.observe import application_measures, operator_measures
from rheostat.engines.spark.observe.batch_window import BatchWindow
from rheostat.engines.spark.observe.batches import Batch, Ledger
from rheostat.engines.spark.observe.meter import Meter, NodeUse
from rheostat.engines.spark.observe.query_window import Query
from rheostat.engines.spark.protocol import Channel, Executor, QueryStatus, TakeReport
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
LATEST = 3  # batches that show how long the next ones will take
GLANCE_SECONDS = 2.0
AIM_SECONDS = 10.0


class Monitor:
    """What happens to an application: the open windows of its queries, on nodes that come and go."""

    def __init__(
        self,
        channel: Channel,
        provider: Provider,
        began_at: float,
        realtime: bool,
        aim_seconds: float = AIM_SECONDS,
    ) -> None:
        """`aim_seconds`: how long a batch may take where the query's trigger does not say."""
        self._channel, self._provider = channel, provider
        self._began_at, self._realtime, self._aim_seconds = began_at, realtime, aim_seconds
        self.queries: dict[str, Query] = {}
        self.recent: deque[Batch] = deque(maxlen=RECENT)
        self.executors: tuple[Executor, ...] = ()
        self.rows: Counter[str] = Counter()  # out of each operator since the start
        self.statuses: tuple[QueryStatus, ...] = ()
        self.on_statuses: Callable[[tuple[QueryStatus, ...]], None] | None = None  # before events are read
        self._events: list[Event] = []
        self._meter, self._alarm_meter = self.meter(), self.meter()
        self._glanced, self._overloaded = 0.0, False
        self.start = 0.0

    def follow(self, queries: Mapping[str, Sequence[str]]) -> None:
        """Watch these queries and no others, each with its operators from below."""
        followed = {}
        for name, operators in queries.items():
            if name in self.queries:
                followed[name] = self.queries[name]
                followed[name].operators = tuple(operators)
                followed[name].ledger.source = operators[0]
            else:
                ledger = Ledger(self._began_at, source=operators[0], realtime=self._realtime, name=name)
                followed[name] = Query(name, operators, ledger, self._aim_seconds)
        self.queries = followed

    @property
    def run_id(self) -> str | None:
        """The runs of its queries that are under way: a restart changes it."""
        runs = [query.run for query in self.queries.values() if query.run]
        return "+".join(runs) or None

    def poll(self, now: float) -> list[Batch]:
        """Fetch what happened; returns the batches that ended."""
        report = self._channel.ask(TakeReport())
        self.executors, self.statuses = report.executors, report.queries
        followed = dict(self.queries)
        if self.on_statuses is not None:
            self.on_statuses(report.queries)
        for status in report.queries:
            if status.name in self.queries:
                self.queries[status.name].update(status)
        ended: list[Batch] = []
        for query in (followed | self.queries).values():  # one that has just ended may have had a last batch
            query.ledger.add_service_times(report.served)
            batches, events = query.ledger.read(report.events)
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
        for meter in (self._meter, self._alarm_meter):
            meter.look()
        return ended

    def overloaded(self, now: float) -> bool:
        """Whether a query's batches are late on full nodes, by a look every few seconds; closes nothing."""
        if now - self._glanced >= GLANCE_SECONDS:
            self._glanced = now
            nodes = self._nodes(now, self._alarm_meter, self.nodes_of_executors())
            queries = {name: query.at_work(now) for name, query in self.queries.items()}
            window = Observation(now, now, {}, nodes, ApplicationMeasures(), queries=queries)
            self._overloaded = overload(window) is not None
        return self._overloaded

    def meter(self) -> Meter:
        """A new meter of the nodes."""
        return Meter(self._provider, self._hosted)

    def _hosted(self) -> dict[str, list[Executor]]:
        hosted: dict[str, list[Executor]] = {}
        for executor in self.executors:
            hosted.setdefault(self.node_of(executor), []).append(executor)
        return hosted

    def _remember(self, batch: Batch) -> None:
        """Keep a batch; of a silence only the newest trigger, or it would push out the rest."""
        before = next((past for past in reversed(self.recent) if past.query == batch.query), None)
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
        """From now on batches are in no window, until `forget` says that the change is over."""
        for query in self.queries.values():
            query.begin_change()

    def connect(self, channel: Channel) -> None:
        """Listen to a new driver process, which has executors and perhaps query ids of its own."""
        self._channel, self.executors = channel, ()
        for query in self.queries.values():
            query.start_anew()

    def nodes_of_executors(self) -> dict[str, str]:
        """The node that each executor runs on."""
        return {executor.id: self.node_of(executor) for executor in self.executors}

    def node_of(self, executor: Executor) -> str:
        """The node that an executor runs on; its page is that of the Worker, which shows its log."""
        return self._provider.node_of(executor.host, urlsplit(executor.page or "").netloc)

    def _kinds(self) -> dict[str, NodeKind]:
        return {node.name: node.kind for node in self._provider.nodes()}

    @property
    def slots(self) -> int:
        """Slots of all registered executors."""
        return sum(executor.slots for executor in self.executors)

    def stage_overhead(self) -> float | None:
        """What a stage costs regardless of its rows, by the latest batches of each query.

        Beside other queries a batch also waits for slots that they hold: there the shortest wait says most.
        """
        typical = median if len(self.queries) == 1 else min
        overheads = [typical(query.overheads) for query in self.queries.values() if query.overheads]
        return median(overheads) if overheads else None

    def longest_batch(self, operators: Collection[str]) -> float:
        """The longest of the latest batches, in seconds, of the queries that have these operators."""
        names = {name for name, query in self.queries.items() if {*query.operators} & {*operators}}
        latest = [batch.seconds for batch in self.recent if batch.query in names][-LATEST:]
        return max(latest, default=0.0)

    def partition_seconds(self) -> dict[str, float]:
        """What a state partition costs per stateful operator, by its query's latest batches."""
        return {
            name: median(costs)
            for query in self.queries.values()
            for name, costs in query.partition_costs.items()
        }

    def observe(
        self,
        now: float,
        topology: Topology,
        parallelism: Mapping[str, int],
    ) -> Observation:
        """Close the windows and open the next."""
        nodes, kinds = self.nodes_of_executors(), self._kinds()
        operators: dict[str, OperatorMeasures] = {}
        several = len(self.queries) > 1
        windows = {
            name: query.window(self._realtime, self.start, now, beside_others=several)
            for name, query in self.queries.items()
        }
        silent = all(window.quiet for window in windows.values())
        for name, query in self.queries.items():
            # What reached the queries before it will reach this one, and cost what it did before.
            coming = windows[name].quiet and not silent and bool(topology.inputs[query.operators[0]])
            operators |= operator_measures.operators(
                topology,
                query.operators,
                query.standing_in(windows[name]) if coming else windows[name],
                query.shares(),
                parallelism,
                nodes,
                kinds,
            )
        measured = self._measure(now, topology, windows)
        observation = Observation(
            self.start,
            now,
            {name: operators[name] for name in topology.names},
            self._nodes(now, self._meter, nodes, self._placed(windows, nodes)),
            self._application(topology, measured),
            tuple(self._events),
            measured if len(measured) > 1 else {},
        )
        self._events = []
        self.forget(now)
        return observation

    def peek(self, now: float, topology: Topology) -> ApplicationMeasures:
        """The last few batches, for a live view; closes nothing."""
        windows = {}
        for name, query in self.queries.items():
            recent = [batch for batch in self.recent if batch.query == name][-4:]
            before = recent[0] if len(recent) > 1 else None
            last = tuple(recent[1:] if before else recent)
            windows[name] = BatchWindow(before, last, self._realtime, now, busy=query.busy)
        return self._application(topology, self._measure(now, topology, windows))

    def _measure(
        self, now: float, topology: Topology, windows: Mapping[str, BatchWindow]
    ) -> dict[str, ApplicationMeasures]:
        """The measures of each query by itself."""
        measured = {}
        for name, window in windows.items():
            query = self.queries[name]
            shares = operator_measures.source_shares(topology, query.operators, window, query.shares())
            done = application_measures.application(shares, window, query.aim_seconds)
            measured[name] = replace(done, **query.progress(now))
        return measured

    def _application(
        self, topology: Topology, measured: Mapping[str, ApplicationMeasures]
    ) -> ApplicationMeasures:
        query_of = {name: query.name for query in self.queries.values() for name in query.operators}
        return application_measures.together(topology, query_of, measured)

    def _placed(
        self, windows: Mapping[str, BatchWindow], nodes: Mapping[str, str]
    ) -> Mapping[tuple[str, str], int] | None:
        """How many instances of an operator a node ran at once: (node, operator); None: not known."""
        placed: Counter[tuple[str, str]] = Counter()
        kinds = self._kinds()
        for name, query in self.queries.items():
            hosted = operator_measures.hosted(query.operators, windows[name], query.shares(), nodes, kinds)
            if hosted is None:
                return None
            placed += hosted
        return placed

    def _nodes(
        self,
        now: float,
        meter: Meter,
        nodes: Mapping[str, str],
        placed: Mapping[tuple[str, str], int] | None = None,
    ) -> tuple[NodeMeasures, ...]:
        used, hosted = meter.read(now), list(nodes.values())
        measured = []
        for node in self._provider.nodes():
            name, kind = node.name, node.kind
            use = used.get(name, NodeUse())
            measured.append(
                NodeMeasures(
                    name=name,
                    slots=kind.slots,
                    cores=kind.cores,
                    kind=kind.name,
                    region=node.region,
                    price_per_hour=kind.price_per_hour,
                    executors=hosted.count(name),
                    cpu=None if use.cores is None else min(1.0, max(0.0, use.cores / kind.cores)),
                    memory=None
                    if use.memory_bytes is None
                    else min(1.0, use.memory_bytes / (kind.memory_mb * 2**20)),
                    gc=use.gc,
                    compiling=use.compiling,
                    heap=use.heap,
                    instances=None
                    if placed is None
                    else {operator: count for (host, operator), count in placed.items() if host == name},
                )
            )
        return tuple(measured)
