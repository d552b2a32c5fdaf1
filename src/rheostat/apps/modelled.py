"""An application built from a topology file: its operators, their costs, their streams.

Rows are numbers. An operator spends the time that its file states, by hashing or, with --wait, by waiting,
and hands its rows on in the shares of its streams; so the compute model's predictions can be tested on Spark.

Every operator hashes on from the hash of the one before it. Spark leaves out a column that nobody reads:
were the hashes independent, then of several operators in one query only the last would cost anything.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rheostat.apps.inputs import Input
from rheostat.engines.spark.driver.application import Application, Rows, Transform
from rheostat.model.topology import Operator, Topology

ROUND_SECONDS = 22e-9  # approximate cost of one round of hashing
ROUNDS = 100  # in an inner loop: one loop's numbers would be a constant of a megabyte in every plan and task
LATE_SECONDS = 60e-6  # by which a waiting thread wakes up late
SHARES = 10_000  # of rows, distinguished by a hash of their number


def modelled(topology: Topology, given: Input) -> Application:
    """Return the topology as an application that is ready to run."""
    app = Application(topology.name, trigger_seconds=2)
    flows: dict[str, list[Rows]] = {name: [] for name in topology.names}
    for name in topology.order:
        operator = topology.operator(name)
        made = _made(topology, operator, wait=given.wait)
        if name in topology.sources:
            alone = len(topology.sources) == 1
            rows = given.read(app, name, _share_of(topology, name, made), whole=alone)
        else:
            first, *others = flows[name]
            rows = first.merge(*others).operator(
                name,
                made,
                min_parallelism=operator.min_parallelism,
                max_parallelism=operator.max_parallelism,
            )
        _hand_on(topology, name, rows, flows)
        if name in topology.sinks:
            rows.sink(f"{name} out", given.sink(folder=name))
    return app


def _made(topology: Topology, operator: Operator, *, wait: float) -> Transform:
    """Spend an operator's cost on every row, and emit rows by its selectivity."""
    selectivity = next((s.selectivity for s in topology.streams if s.upstream == operator.name), 1.0)

    def transform(rows: DataFrame) -> DataFrame:
        start = "hash" if "hash" in rows.columns else "value"  # a source has no operator before it
        spent = rows.select("value", _spent(operator.cost_seconds, wait=wait, start=start).alias("hash"))
        if selectivity == 1.0:
            return spent
        fraction = F.pmod(F.xxhash64("value", F.lit(operator.name)), F.lit(SHARES)) / SHARES
        copies = F.floor(F.lit(selectivity) + fraction)
        return spent.select("value", "hash", F.explode(F.array_repeat("hash", copies.cast("int")))).drop(
            "col"
        )

    return transform


def _spent(seconds: float, *, wait: float, start: str = "value") -> Column:
    """Return a number that takes this long to compute: by hashing, or by waiting as for a remote service."""
    if wait:
        nanoseconds = max(1, round((seconds * wait - LATE_SECONDS) * 1e9))
        park = f"reflect('java.util.concurrent.locks.LockSupport', 'parkNanos', {nanoseconds}L)"
        return F.expr(f"coalesce(length({park}), {start})")
    turns = max(1, round(seconds / ROUND_SECONDS / ROUNDS))
    part = f"aggregate(sequence(1, {ROUNDS}), sum, (part, j) -> xxhash64(part, j))"
    return F.expr(f"aggregate(sequence(1, {turns}), {start}, (sum, i) -> {part})")


def _share_of(topology: Topology, name: str, made: Transform) -> Transform:
    """Give a source its share of the numbers: its share of the load."""
    sources = topology.sources
    total = sum(topology.operator(source).load or 1.0 for source in sources)
    low = 0.0
    for source in sources:
        high = low + (topology.operator(source).load or 1.0) / total
        if source == name:
            break
        low = high
    return lambda rows: made(rows.where(_between("the sources", low, high)))


def _hand_on(topology: Topology, name: str, rows: Rows, flows: dict[str, list[Rows]]) -> None:
    low = 0.0
    for stream in (stream for stream in topology.streams if stream.upstream == name):
        selected = rows if stream.share == 1.0 else rows.where(_between(name, low, low + stream.share))
        flows[stream.downstream].append(selected)
        low += stream.share


def _between(what: str, low: float, high: float) -> str:
    bucket = f"pmod(xxhash64(value, '{what}'), {SHARES})"
    return f"{bucket} >= {low * SHARES:.0f} and {bucket} < {high * SHARES:.0f}"
