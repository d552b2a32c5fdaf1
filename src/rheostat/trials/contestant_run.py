"""One run of a trial: an application under a load, scaled by a policy, by Spark, or not at all."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from threading import Event, Thread

from rheostat.control.guards import Guards
from rheostat.engines.spark import rate_source
from rheostat.engines.spark.engine import SparkEngine
from rheostat.engines.spark.spec import SPREAD_STATE, WARM_UP
from rheostat.model.errors import RheostatError, UserError
from rheostat.policies.registry import build
from rheostat.run.composition import Running, start_run
from rheostat.run.order import RESCALE_ABOVE, Order, with_period
from rheostat.trials.accounting import Account, judge_run
from rheostat.trials.contestants import Contestant
from rheostat.trials.feed import Feed, feeding
from rheostat.trials.trial import Result, Trial

FIRST_ROW_SECONDS = 30.0  # for a row to reach the topic
LAST_BATCH_SECONDS = 60.0  # for the batch that ran when the load ended; later batches do not count
BILL_SECONDS = 0.25


def run_contestant(
    trial: Trial, contestant: Contestant, number: int, folder: Path, say: Callable[[str], None]
) -> Result:
    """Run the application once, on a fresh cluster; a failure is a result, too."""
    try:
        with _input(trial) as sent:
            return _run(trial, contestant, number, _order(trial, contestant, folder, sent), sent, say)
    except RheostatError as error:
        return Result(contestant.name, number, failure=str(error), refused=isinstance(error, UserError))


def _input(trial: Trial) -> AbstractContextManager[Feed | None]:
    if trial.kafka is None:
        return nullcontext()
    return feeding(trial.kafka, trial.load, trial.seed, trial.partitions)


def _order(trial: Trial, contestant: Contestant, folder: Path, sent: Feed | None) -> Order:
    source = ("--topic", sent.topic) if sent else (trial.load, "--partitions", str(trial.partitions))
    return Order(
        name=Path(trial.app).stem,
        script=trial.script,
        policy=with_period(build(contestant.policy), trial.period_seconds),
        policy_text=contestant.name,
        folder=folder,
        arguments=(*source, "--seed", str(trial.seed)),
        mode=trial.mode,
        kinds=(trial.node,),
        bounds=contestant.bounds(trial.nodes),
        guards=Guards(
            cooldown_seconds=trial.cooldown_seconds,
            changes_per_hour=0,
            rescale_above=RESCALE_ABOVE,
        ),
        trigger_seconds=trial.trigger_seconds,
        kafka=trial.kafka,
        allocated=contestant.allocated,
        seed=trial.seed,
        settings={
            **trial.settings,
            **(_allocation(trial) if contestant.allocated else {}),
            **contestant.settings,
        },
        facts={"curve": trial.load, "seed": trial.seed},
    )


def _allocation(trial: Trial) -> dict[str, str]:
    """Return the defaults of Spark's dynamic allocation; what Rheostat adds to Spark is off."""
    if trial.node.executors > 1:
        raise UserError("spark-dra would spread a node's executors over other nodes: use --node executors=1")
    low, high = trial.nodes.min_nodes, trial.nodes.max_nodes
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(low),
        "spark.dynamicAllocation.initialExecutors": str(low),
        "spark.dynamicAllocation.maxExecutors": str(high),
        "spark.decommission.enabled": "false",
        WARM_UP: "false",
        SPREAD_STATE: "false",
    }


def _run(
    trial: Trial,
    contestant: Contestant,
    number: int,
    order: Order,
    sent: Feed | None,
    say: Callable[[str], None],
) -> Result:
    with start_run(order, say) as running:
        if len(running.engine.topology.sources) > 1:
            raise UserError(f"{trial.app} has several sources: a trial counts the rows of a single source")
        if len(running.engine.monitor.queries) > 1:
            raise UserError(f"{trial.app} is a graph of queries: a trial counts the rows of a single query")
        if sent:
            sent.begin()
        with Bookkeeper(running, trial, say) as books:
            if sent:
                books.wait_for_arrivals()
            books.ends_at = running.clock.now() + trial.seconds - (trial.silent_seconds if sent else 0.0)
            turns = list(running.turns(books.ends_at))
            books.wait_for_last_batch()
        if sent:
            sent.check()
        return judge_run(trial, contestant, number, books.account, turns)


class Bookkeeper:
    """Keeps the account of a run, at every heartbeat and while its controller waits for a node."""

    def __init__(self, running: Running, trial: Trial, say: Callable[[str], None]) -> None:
        self.engine: SparkEngine = running.engine
        self.trial, self.ends_at, self._clock = trial, float("inf"), running.clock
        self.account, self._say = Account(), say
        self._began_at, self._folder = running.began_at, running.order.folder
        self._last = -1
        self._ended = Event()
        self._thread = Thread(target=self._bill, name="bill", daemon=True)
        running.heartbeat.listen(self._on_beat)

    def __enter__(self) -> "Bookkeeper":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if kind is None:
            self.engine.poll()
            self._record_batches()

    def wait_for_arrivals(self) -> None:
        """Wait until the topic has its first rows."""
        until = self._clock.now() + FIRST_ROW_SECONDS + self.trial.silent_seconds
        while len(set(self.account.arrived.values())) < 2:
            if self._clock.now() > until:
                raise RheostatError(f"no row reached the topic within {FIRST_ROW_SECONDS:g} s")
            self._clock.sleep(0.2)

    def wait_for_last_batch(self) -> None:
        """Wait until the batches up to the load's end are counted."""
        until = self._clock.now() + LAST_BATCH_SECONDS
        while self._clock.now() < until:
            begins, done = self.account.begins(self.trial), self.account.done
            if begins is not None and done and done[-1][0] >= begins + self.trial.seconds:
                break
            self._clock.sleep(0.2)

    def _bill(self) -> None:
        try:
            while not self._ended.wait(BILL_SECONDS):
                monitor, nodes = self.engine.monitor, self.engine.provider.nodes()
                hosts = [monitor.node_of(executor) for executor in monitor.executors if executor.ready]
                serving = sum(hosts.count(node.name) >= node.kind.executors for node in nodes)
                self.account.paid.append((self._clock.now(), len(nodes), serving))
        except Exception as error:  # in a thread: it would be lost
            self.account.missed = f"counting the nodes failed before the end: {error!r}"

    def _on_beat(self, now: float) -> None:
        if self._ended.is_set():
            return
        self._record_batches()
        measures = self.engine.monitor.peek(now, self.engine.topology)
        behind = "" if measures.lag_seconds is None else f", lag {measures.lag_seconds:.1f} s"
        nodes = self.engine.configuration.nodes
        self._say(f"{max(0.0, self.ends_at - now):.0f} s left, {nodes} nodes{behind}")

    def _record_batches(self) -> None:
        """Record the batches that ended and what arrived."""
        monitor, account = self.engine.monitor, self.account
        query = next(iter(monitor.queries.values()))
        for batch in monitor.recent:
            if batch.number > self._last and not batch.idle:  # an idle batch has the number of the next one
                if 0 <= self._last < batch.number - 1:
                    account.missed = f"batch {batch.number - 1} was not reported: its driver died"
                before = account.done[-1][1] if account.done else 0.0
                after = before if batch.end is None else batch.end
                account.done += [(batch.started, before), (batch.finished, after)]
                self._last = batch.number
        if account.source_began is None and not self.trial.kafka:
            began = rate_source.began(self._folder / "checkpoint")
            account.source_began = None if began is None else began - self._began_at
        account.arrived |= dict(query.ledger.arrivals)
        account.instances.append((self._clock.now(), float(self.engine.configuration.instances)))
