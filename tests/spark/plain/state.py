"""What the tests of this folder bring their run to, and what they look for in it."""

import os
from contextlib import suppress
from itertools import chain
from pathlib import Path

import psutil

from rheostat.control.turn import Turn
from tests.spark.controllers import Controller

MARK = "Hush-4"  # all secrets begin with it
SETTINGS = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": f"{MARK}2-of-the-cluster",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
    "spark.hadoop.fs.s3a.secret.key": f"{MARK}3-of-a-store",
    "spark.rheostat.kafka.sasl.jaas.config": f'x.PlainLoginModule required password="{MARK}4-of-kafka";',
}


def at(run: Controller, nodes: int, project: int) -> Turn:
    """Bring it to a size; the first turn with a batch in which it has it."""
    run.wish({"parallelism": {"2-project": project}, "nodes": nodes})

    def there(turn: Turn) -> bool:
        result = turn.outcome.configuration
        same = (result.nodes, result.parallelism["2-project"]) == (nodes, project)
        return same and not turn.plan.changes and bool(turn.observation.application.batches)

    return run.wait_for_turn(there)


def fall_into_the_trap(run: Controller) -> str:
    """Let its query die, and see it run again; what the journal says of it."""
    last = run.last()
    since = last.outcome.finished_at if last else 0.0
    trap = run.folder / "trap"
    trap.touch()
    event = run.wait_for_event("driver", "fell into the trap", since)
    trap.unlink()
    run.wait_for_event("query started", "", event.at)
    run.wait_for_turns(1)
    return event.text


def has_fallen(run: Controller) -> bool:
    return any("fell into the trap" in event.text for event in run.events())


def starts(run: Controller) -> int:
    """How often its query was started so far."""
    return sum(event.kind == "query started" for event in run.events())


def commands(run: Controller) -> list[str]:
    """The command lines of all its processes."""
    lines = []
    for process in run.processes():
        with suppress(psutil.Error):
            lines.append(" ".join(process.cmdline()))
    return lines


def holding(run: Controller) -> list[Path]:
    """The files of a run, of its cluster and of its logs in which a secret can be read."""
    result = []
    walks = chain(os.walk(run.place), os.walk(run.temporary))  # which skips folders that go meanwhile
    for path in [Path(folder) / name for folder, _, names in walks for name in names]:
        with suppress(OSError):  # gone meanwhile
            if path.is_file() and path.name != "spark.conf" and MARK.encode() in path.read_bytes():
                result.append(path)
    return result
