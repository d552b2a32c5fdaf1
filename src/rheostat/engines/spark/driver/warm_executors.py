"""Warm executors: they rehearse the last batch before their first task (docs/decisions/0007).

The work is done by a Spark plugin, `Rehearsal.java`.
"""

from collections.abc import Iterator
from typing import Any

PLUGIN = "rheostat.Rehearsal"
BUDGET = "spark.rheostat.rehearsal.seconds"
LIMIT = "spark.rheostat.rehearsal.limitSeconds"  # after this, no stage is begun even in the first round
SECONDS = 4.0  # no round begins later; the first alone takes about 3 s on two free cores


def warmed(jvm: Any) -> frozenset[str]:
    """The ids of the executors that finished their rehearsal; `jvm` is the driver's, through py4j.

    Spark counts an executor as registered before its plugins have finished.
    """
    return frozenset(filter(None, str(jvm.rheostat.Rehearsal.ready()).split(",")))


def notes(jvm: Any) -> Iterator[str]:
    """Messages about rehearsals that failed since the last call; their executors have ended."""
    while text := jvm.rheostat.Rehearsal.note():
        yield str(text)
