"""Since when a batch of a query runs: from its planning on, which may take long before its first stage."""

from dataclasses import replace

from rheostat.engines.spark.protocol import RunningBatch

AT_WORK = ("Processing new data", "No new data but cleaning up state")  # Spark's own words for it


class BatchClock:
    """Keeps when the batch that runs was first seen; Spark's listeners hear only of its stages."""

    def __init__(self) -> None:
        self._seen: tuple[str, int] | None = None  # its query's run, and its number
        self._since = 0

    def read(
        self, run: str, message: str, planned: int, staged: RunningBatch | None, now: int
    ) -> RunningBatch | None:
        """The batch that runs at a time in unix milliseconds; None: none does.

        `planned` is the number of the batch that was planned last, `staged` the one of which stages began.

        >>> clock, work = BatchClock(), AT_WORK[0]
        >>> clock.read("r", "Waiting for next trigger", 4, None, 1_000)
        >>> clock.read("r", work, 5, None, 2_000)
        RunningBatch(batch=5, since=2000, stages=0, tasks=0, done=0)
        >>> clock.read("r", work, 5, RunningBatch(5, 6_000, 1, 2, 0), 7_000).since
        2000
        >>> clock.read("r", work, 6, RunningBatch(6, 8_000, 1, 2, 0), 9_000).since
        8000
        """
        if staged is None and message not in AT_WORK:
            self._seen = None
            return None
        batch = staged or RunningBatch(planned, now, 0, 0, 0)
        if self._seen != (run, batch.batch):
            self._seen, self._since = (run, batch.batch), batch.since
        return replace(batch, since=min(self._since, batch.since))
