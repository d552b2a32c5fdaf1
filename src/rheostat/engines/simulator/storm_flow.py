"""How rows flow in Storm: a queue before every instance."""

import numpy as np
from scipy.sparse import csr_matrix

from rheostat.analyze.rates import stated_selectivity, visits
from rheostat.engines.simulator.deployment import Floats, totals
from rheostat.engines.simulator.flow import TINY, Flow
from rheostat.engines.simulator.settings import Settings
from rheostat.model.topology import Topology


class StormFlow(Flow):
    """Storm's own mode: a bounded queue before each operator; a full one drops rows or holds them back.

    Rows emitted in one step arrive in the next, which keeps a step free of any order among operators.
    """

    def __init__(self, topology: Topology, settings: Settings) -> None:
        index = {name: i for i, name in enumerate(topology.names)}
        sigma = stated_selectivity(topology)
        self.upstream = np.array([index[u] for u, _ in sigma], dtype=np.intp)
        self.downstream = np.array([index[d] for _, d in sigma], dtype=np.intp)
        self.sigma = np.array(list(sigma.values()), dtype=np.float64)
        self.queue = np.zeros(len(index))
        self.incoming = np.zeros(len(index))
        self.weights = _rows_until_sinks(topology)
        super().__init__(topology, settings)

    def prepare(self) -> None:
        d = self.deployment
        self.share = d.count / np.maximum(d.parallelism, 1.0)[d.operator]
        self.group_cost = self.cost[d.operator]
        self.cap = np.minimum(1.0, d.room)[d.node]
        self.limit = d.count * self.cap * self.step_seconds
        self.node_room = d.room * self.step_seconds
        self.bound = d.parallelism * self.settings.queue_rows
        self.bound[self.sources] = np.inf  # a source's queue is the outside world's
        self.hold = self.settings.on_full == "hold"
        self.quiet = float(self.settings.queue_rows)

    def step(self, offered: Floats, paused: bool) -> None:
        received = self.incoming
        received[self.sources] += offered
        wanted = self.queue + received
        self.received += received
        self.arrivals.append(received)
        if paused:
            self.queue = wanted
            self.incoming = np.zeros(self.size)
            return
        d = self.deployment
        cpu = np.minimum(wanted[d.operator] * self.share * self.group_cost, self.limit)
        used = totals(d.node, cpu, len(self.node_room))
        busy = cpu / self.cap
        if (used > self.node_room).any():
            scale = np.minimum(1.0, self.node_room / np.maximum(used, TINY))[d.node]
            cpu = cpu * scale
            busy = np.minimum(busy / np.maximum(scale, TINY), d.count * self.step_seconds)
            busy = np.maximum(busy, cpu)
        processed = np.minimum(totals(d.operator, cpu / self.group_cost, self.size), wanted)
        emitted = totals(self.downstream, processed[self.upstream] * self.sigma, self.size)
        queue = wanted - processed
        if self.hold and (queue + emitted > self.bound).any():
            processed, cpu = self._hold_back(processed, cpu, queue, emitted)
            emitted = totals(self.downstream, processed[self.upstream] * self.sigma, self.size)
            queue = wanted - processed
        elif not self.hold and (queue > self.bound).any():
            lost = np.maximum(queue - self.bound, 0.0)
            queue = queue - lost
            self.dropped += float((self.weights @ lost).max())
        self.queue, self.incoming = queue, emitted
        self.processed += processed
        self.cpu += cpu
        self.busy += totals(d.operator, busy, self.size)

    def _hold_back(
        self, processed: Floats, cpu: Floats, queue: Floats, emitted: Floats
    ) -> tuple[Floats, Floats]:
        """Slow an operator to what the fullest queue behind it accepts; the rest waits before it."""
        free = np.maximum(self.bound - queue, 0.0)
        passes = np.minimum(1.0, free / np.maximum(emitted, TINY))
        factor = np.ones(self.size)
        np.minimum.at(factor, self.upstream, passes[self.downstream])
        return processed * factor, cpu * factor[self.deployment.operator]

    def close(self) -> None:
        """Nothing to book: every step did."""

    def backlog(self) -> float:
        return float((self.weights @ self.queue).max())

    def waiting(self) -> list[float | None]:
        return [float(rows) for rows in self.queue]


def _rows_until_sinks(topology: Topology) -> "Floats | csr_matrix":
    """Return, per sink and operator, the source rows that a waiting row stands for.

    A source row is done when all that came of it is, so the slowest sink counts (Storm's acknowledgement).
    """
    index = {name: i for i, name in enumerate(topology.names)}
    numbers = {name: i for i, name in enumerate(topology.sinks)}
    reach = visits(topology)
    until: dict[str, dict[int, float]] = {}
    for name in reversed(topology.order):
        per_sink = {numbers[name]: 1.0} if name in numbers else {}
        for stream in topology.outputs[name]:
            for sink, rows in until[stream.downstream].items():
                per_sink[sink] = per_sink.get(sink, 0.0) + rows * stream.rows_per_row
        until[name] = per_sink
    entries = [
        (sink, index[name], rows / reach[topology.sinks[sink]])
        for name, per_sink in until.items()
        for sink, rows in per_sink.items()
        if reach[topology.sinks[sink]] > 0
    ]
    rows_, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    matrix = csr_matrix((values, (rows_, columns)), shape=(len(numbers), len(index)), dtype=np.float64)
    small = len(numbers) * len(index) <= 20_000
    return np.asarray(matrix.toarray()) if small else matrix
