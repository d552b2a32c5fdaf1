"""The batches of one query that ended in a window, and what its source was offered meanwhile."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from rheostat.engines.spark.observe.batches import Batch

CLOCK_SECONDS = 60.0  # by which the driver's clock may differ from the controller's


@dataclass(frozen=True, slots=True)
class BatchWindow:
    """The batches that ended in a window, and the last one before it."""

    before: Batch | None
    batches: tuple[Batch, ...]
    realtime: bool
    now: float
    start: float = 0.0
    offered: tuple[tuple[float, float], ...] = ()  # when, and rows so far, if the source tells
    latest: tuple[Batch, ...] = ()  # batches before it, too, by which rows are compared with that
    stale: bool = False  # no batch ended in it: these are the last that did
    busy: bool = False  # a batch runs
    resting: bool = False  # no batch runs, and none is due
    due_seconds: float = math.inf  # between two triggers, and for a batch
    running_since: float | None = None  # when the batch that runs began; None: none does

    @property
    def doubtful(self) -> bool:
        """Whether a batch is missing or makes no sense: then nothing can be said about the window."""
        all_batches = (*filter(None, [self.before]), *self.batches)
        times = [-CLOCK_SECONDS, *(batch.started for batch in all_batches)]
        late = max((batch.finished for batch in all_batches), default=self.now) > self.now + CLOCK_SECONDS
        skipped = not all(after.follows(batch) for batch, after in pairwise(all_batches))
        return late or skipped or times != sorted(times) or any(batch.doubt for batch in all_batches)

    @property
    def trusted(self) -> "BatchWindow":
        """The same window, or an empty one if it is doubtful."""
        return replace(self, before=None, batches=(), latest=()) if self.doubtful else self

    @property
    def ran(self) -> tuple[Batch, ...]:
        """Those in which something was done."""
        return tuple(batch for batch in self.batches if not batch.idle)

    def offered_since(self, at: float) -> float | None:
        """What the source was offered after this moment, by its own count; None: no report since then."""
        return offered_between(self.offered, at, self.now) if moment_of(self.offered, -1) >= at else None

    @property
    def quiet(self) -> bool:
        """Whether there was nothing to do, and still is not as far as we know."""
        if not self.batches or self.ran or self.busy:
            return False
        return not self.offered_since(self.batches[-1].started)

    @property
    def input_rows(self) -> float:
        """Source rows that were processed."""
        return sum(batch.input_rows for batch in self.batches)


def moment_of(offered: Sequence[tuple[float, float]], index: int) -> float:
    """The time of one of the samples; -infinity if there are none."""
    return offered[index][0] if offered else -math.inf


def offered_between(offered: Sequence[tuple[float, float]], since: float, until: float) -> float:
    """What a source was offered between two moments by its own count."""
    at, counts = zip(*offered, strict=True)
    before, after = np.interp((since, until), at, counts)
    return float(after - before)


def arrived(window: BatchWindow) -> float | None:
    """Rows that arrived between the first and the last batch; None: there is no batch."""
    if not window.batches:
        return None
    first, last = window.before, window.batches[-1]
    rows = window.input_rows
    if first is None:  # the very first batch holds what came before anything was counted
        first = window.batches[0]
        rows -= first.input_rows
    if first.backlog is not None and last.backlog is not None:
        rows += last.backlog - first.backlog
    return max(0.0, rows)
