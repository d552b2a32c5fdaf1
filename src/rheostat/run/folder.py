"""A run's folder: its journal, and the lock that keeps a second controller out."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rheostat.engines.spark.spec import SPEC, Spec
from rheostat.model.errors import UserError

JOURNAL = "journal.sqlite"


@contextmanager
def locked(folder: Path, *, resume: bool) -> Iterator[None]:
    """Lock the folder of a new run, which must be unused, or of a run to resume, which must exist.

    Two controllers of one application would fight. The lock ends with its process.
    """
    journal = folder / JOURNAL
    if resume and not journal.exists():
        raise UserError(f"{folder} holds no run to resume: omit --resume, or give the run's --folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror or error}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                f"another controller is running in {folder}: stop it first, or choose another --folder"
            ) from None
        if journal.exists() and not resume:
            raise UserError(
                f"{folder} holds an earlier run: continue it with --resume, or choose another --folder"
            )
        yield


def remove_journal(folder: Path) -> None:
    """Remove the journal of a run that failed to start."""
    for suffix in ("", "-wal", "-shm"):
        (folder / f"{JOURNAL}{suffix}").unlink(missing_ok=True)


def delete_query_topics(folder: Path) -> int:
    """Delete the Kafka topics between the queries of a run; return their number."""
    from rheostat.services import kafka_topics  # noqa: PLC0415 - most runs need no Kafka client

    try:
        spec = Spec.read(folder / SPEC)
    except (OSError, ValueError):
        raise UserError(f"{folder} is not a run's folder: give the one that `rheostat run` used") from None
    if spec.kafka is None:
        raise UserError(f"the run in {folder} used no Kafka: there is nothing to delete")
    kafka_topics.must_answer(spec.kafka)
    topics = [name for name in kafka_topics.topics(spec.kafka) if name.startswith(spec.topic_prefix)]
    kafka_topics.delete_topics(spec.kafka, topics)
    return len(topics)
