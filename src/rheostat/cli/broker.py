"""What commands ask of a Kafka broker and its folder."""

import shutil
from pathlib import Path

from rheostat.engines.spark.spec import SPEC, Spec
from rheostat.infrastructure import kafka
from rheostat.model.errors import UserError

OURS = ("data", "server.properties", kafka.NOTE, kafka.LOG)


def delete_links(run: Path) -> int:
    """Delete the topics that linked the queries of a run; says how many there were."""
    try:
        spec = Spec.read(run / SPEC)
    except (OSError, ValueError):
        raise UserError(f"{run} is no run's folder: give the one that `rheostat run` used") from None
    if spec.kafka is None:
        raise UserError(f"the run in {run} used no Kafka: there is nothing to delete")
    kafka.must_answer(spec.kafka)
    found = [name for name in kafka.topics(spec.kafka) if name.startswith(spec.topic_prefix)]
    kafka.delete_topics(spec.kafka, found)
    return len(found)


def rows(servers: str, topic: str) -> int:
    """How many rows a topic holds."""
    return sum(kafka.ends(servers, topic).values()) - sum(kafka.starts(servers, topic).values())


def delete(folder: Path) -> None:
    """Delete what a broker made and nothing else: the folder may be anybody's."""
    for name in OURS:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
