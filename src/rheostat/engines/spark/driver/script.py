"""The queries that a plain PySpark script starts itself: all of them are measured, and sized together."""

from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from threading import Event, RLock, Thread

from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.driver import script_state
from rheostat.engines.spark.driver.arrivals import Arrivals
from rheostat.engines.spark.driver.boundary import stop_between_batches
from rheostat.engines.spark.driver.main_thread import raise_in_main_thread
from rheostat.engines.spark.driver.query_topics import TopicEnds
from rheostat.engines.spark.driver.running_queries import queries_in, running_queries
from rheostat.engines.spark.driver.script_query import ScriptQuery, label
from rheostat.engines.spark.driver.script_words import explain_query
from rheostat.engines.spark.driver.session import Session
from rheostat.engines.spark.protocol import QueryStatus, RunningBatch
from rheostat.engines.spark.spec import Spec
from rheostat.model.errors import UserError

_UNFINISHED = "STREAMING_UNFINISHED_REPARTITION_DETECTED"  # Spark's name for it
_LOOK_SECONDS = 0.02


class Script:
    """The queries of a script, in the order in which they were started."""

    def __init__(
        self,
        session: Session,
        spec: Spec,
        note: Callable[[str, str], None],
        has_ended: Callable[[float], bool],
    ) -> None:
        """`has_ended` waits for so many seconds, and says whether the application was stopped."""
        self._session, self._spec, self._note, self._has_ended = session, spec, note, has_ended
        self._known: dict[str, ScriptQuery] = {}  # by Spark's id: a query that is restarted keeps its name
        self._arrivals: dict[str, Arrivals] = {}  # by the same; empty where a source does not tell
        self._explained: set[str] = set()
        self._checked: set[str] = set()  # runs of queries
        self._ended: set[str] = set()  # the same
        self._watch: Thread | None = None  # ends what the script starts while it is being stopped
        self._is_over = Event()  # whether the script's own code has ended
        self._lock = RLock()  # the controller asks while the script's own thread waits
        self.refusal: UserError | None = None  # why one of its queries cannot be run

    def find_query(self) -> StreamingQuery | None:
        """A query that still runs, or else the one that was started last."""
        queries = self._update()
        running = [query for query in queries if query.is_active]
        return (running or queries)[-1].query if queries else None

    def describe(self, running: Mapping[str, RunningBatch]) -> tuple[QueryStatus, ...]:
        """The status of each query that runs; if none does, of the last one. `running` is by query id."""
        return tuple(
            query.describe(running.get(query.id), self._arrivals[query.id].peek()) for query in self._shown()
        )

    def report(self, running: Mapping[str, RunningBatch]) -> tuple[QueryStatus, ...]:
        """The same, with the arrivals since the last report; says once what can be changed of a query."""
        reported = tuple(
            query.describe(running.get(query.id), self._arrivals[query.id].take()) for query in self._shown()
        )
        for status in reported:
            self._explain(status)
        self._tell_ends()
        return reported

    def _shown(self) -> list[ScriptQuery]:
        queries = self._update()
        return [query for query in queries if query.is_active] or queries[-1:]

    def checkpoint_of(self, operator: str) -> str | None:
        """The checkpoint of the query that has this operator; None: Spark will remove it with the query."""
        found = (
            query for query in self._update() if any(stage.operator == operator for stage in query.stages())
        )
        return next((query.checkpoint for query in found), None)

    def check_log(self, error: Exception) -> None:
        """Raise an error that names a broken log, if that is why a query died: Spark names no file.

        A query that dies as it starts was never seen; but the error came from waiting for it.
        """
        for query in queries_in(error):
            ScriptQuery(query, "").check_log(self._session.spark)

    def set_parallelism(self, targets: Mapping[str, int]) -> None:
        """Change the script's own shuffles from the next batch on."""
        for query in self._update():
            for stage in query.stages():
                if stage.shuffle is not None and stage.operator in targets:
                    self._session.set_shuffle(query.id, stage.shuffle, targets[stage.operator])

    def stop(self) -> None:
        """Stop its queries, each between two batches."""
        runs = {str(query.query.runId) for query in self._update() if query.is_active}
        self._watch = Thread(target=self._end_what_starts, args=(runs,), daemon=True)
        self._watch.start()
        self._stop_all()

    def await_end(self) -> None:
        """Wait until those queries are stopped, too, that the script started while it was being stopped."""
        self._is_over.set()
        if self._watch is not None:
            self._watch.join()

    def roll_back(self, error: BaseException) -> bool:
        """Roll back rewrites of state that were cut short earlier, if the script failed for that reason."""
        if _UNFINISHED not in str(error):
            return False
        self._stop_all()
        # It failed so early that it may never have been seen among those that run.
        failed = [ScriptQuery(query, "") for query in queries_in(error)]
        places = {query.checkpoint for query in (*failed, *self._known.values())}
        rolled_back = [script_state.roll_back(self._session.spark, place) for place in places if place]
        return any(rolled_back)

    def _stop_all(self) -> None:
        active = [query for query in self._update() if query.is_active]
        ending = [Thread(target=stop_between_batches, args=(query.query, 0.0)) for query in active]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join()

    def _end_what_starts(self, stopped: Set[str]) -> None:
        """End a script that starts another query while those are stopped, as some do for ever."""

        def started() -> list[StreamingQuery]:
            return [
                query for query in running_queries(self._session.spark) if str(query.runId) not in stopped
            ]

        with suppress(Exception):  # Spark ends meanwhile
            while not (queries := started()):
                if self._is_over.wait(_LOOK_SECONDS):
                    return
            raise_in_main_thread(SystemExit)  # when the call returns in which it waits for them
            for query in queries:
                stop_between_batches(query, 0.0)

    def _update(self) -> list[ScriptQuery]:
        """All queries so far, in the order of their first start."""
        with self._lock:
            for query in running_queries(self._session.spark):
                known = self._known.get(str(query.id))
                if known is None:
                    known = self._known[str(query.id)] = self._meet(query)
                known.query = query
                if str(query.runId) not in self._checked:  # it may have another trigger than before
                    self._checked.add(str(query.runId))
                    self._check(known)
            return list(self._known.values())

    def _meet(self, query: StreamingQuery) -> ScriptQuery:
        """A query that was not seen before; the operators of the first keep short names."""
        order = len(self._known) + 1
        name = label(query.name, order, {known.label for known in self._known.values()})
        met = ScriptQuery(query, name, "" if order == 1 else f"{name}.")
        self._session.adopt(query)
        self._arrivals[met.id] = Arrivals(name, self._note)
        if options := met.subscription:
            self._arrivals[met.id].start(TopicEnds.counter(self._session.spark, options), self._has_ended)
        return met

    def _check(self, query: ScriptQuery) -> None:
        """Stop what cannot be run, and say why; when the script ends, the run does with that reason."""
        if refusal := query.refusal(self._spec.mode):
            self.refusal = refusal
            self._note("refused", str(refusal))
            Thread(target=query.query.stop, daemon=True).start()

    def _explain(self, status: QueryStatus) -> None:
        """Say once what can be changed of a query, and what cannot."""
        known = status.stages and all(stage.tasks != 0 for stage in status.stages)
        if known and status.name not in self._explained:
            self._explained.add(status.name)
            self._note("script", explain_query(status, self._spec))

    def _tell_ends(self) -> None:
        """Say which query ended, where there are several: Spark's own event does not name it."""
        for query in self._known.values() if len(self._known) > 1 else ():
            run = str(query.query.runId)
            if not query.is_active and run not in self._ended:
                self._ended.add(run)
                self._note("script", f"{query.label} ended")
