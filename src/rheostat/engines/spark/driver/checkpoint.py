"""A checkpoint's logs: the batches that were begun and committed, on any file system that Hadoop can read."""

import json
from typing import Any

from pyspark.sql import SparkSession

from rheostat.engines.spark.spec import SHUFFLE_PARTITIONS
from rheostat.model.errors import UserError

_NOTE = "rheostat.json"
STATE_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


class Checkpoint:
    """The checkpoint of a query."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        context: Any = spark.sparkContext
        self._jvm, self._gateway = context._jvm, context._gateway
        self._conf = context._jsc.hadoopConfiguration()
        self._path = self._jvm.org.apache.hadoop.fs.Path(location)
        self._files = self._path.getFileSystem(self._conf)
        self.location = location

    def last_begun(self) -> int | None:
        """The newest batch whose offsets are logged."""
        return max(self._batches("offsets"), default=None)

    def last_committed(self) -> int | None:
        """The newest batch that is committed."""
        return max(self._batches("commits"), default=None)

    def check_log(self) -> None:
        """Raise an error that names the log with which a query begins, if that is broken."""
        self._offsets(self.last_begun())

    def at_boundary(self) -> bool:
        """Whether every batch that was begun is committed."""
        return self.last_begun() == self.last_committed()

    def partitions(self, batch: int | None) -> int | None:
        """The number of state partitions that a batch was begun with; None: its log does not say."""
        count = self.settings(batch).get(SHUFFLE_PARTITIONS)
        return None if count is None else int(count)

    def settings(self, batch: int | None) -> dict[str, str]:
        """Spark's settings that a batch was begun with; a restarted query keeps them."""
        lines = self._offsets(batch)
        facts = json.loads(lines[1]) if len(lines) > 1 else {}
        return {str(key): str(value) for key, value in facts.get("conf", {}).items()}

    def state_format(self, batch: int | None) -> str:
        """The version of the format in which a committed batch left its state."""
        text = "" if batch is None else self._read("commits", str(batch))
        return "2" if "stateUniqueIds" in text else "1"

    def forget_unfinished_rewrite(self) -> bool:
        """Roll back an interrupted rewrite of the state; it moves no rows, so nothing is lost."""
        begun, committed = self.last_begun(), self.last_committed()
        if begun is None or committed is None or begun == committed:
            return False
        if not self._is_rewrite(begun, committed):
            return False  # an ordinary batch: Spark runs it again
        for name in (str(begun), f".{begun}.crc"):
            self._files.delete(self._at("offsets", name), False)
        return True

    def complete_log(self) -> bool:
        """Write the number of state partitions into the log of an unfinished batch that lacks it.

        Spark would start that batch with the session's number instead, and lose the state of all others.
        """
        begun, committed = self.last_begun(), self.last_committed()
        count = self.partitions(committed)
        if begun == committed or count is None or self.partitions(begun) is not None:
            return False
        version, facts, *offsets = self._offsets(begun)
        known = json.loads(facts)
        known["conf"] = {**known.get("conf", {}), SHUFFLE_PARTITIONS: str(count)}
        self._replace("\n".join((version, json.dumps(known), *offsets)), "offsets", str(begun))
        return True

    def _is_rewrite(self, begun: int, committed: int) -> bool:
        """Whether a batch only gives the state another number of partitions: it reads nothing.

        The log of an ordinary batch may lack the number until the batch is committed (SPARK-59662).
        """
        before, after = self.partitions(committed), self.partitions(begun)
        differ = before is not None and after is not None and before != after
        return differ and self._offsets(begun)[2:] == self._offsets(committed)[2:]

    def _offsets(self, batch: int | None) -> list[str]:
        """What is logged of a batch when it is begun: version, facts, and the offsets of each source."""
        if batch is None:
            return []
        lines = self._read("offsets", str(batch)).splitlines()
        if len(lines) < 3 or not _is_object(lines[1]):  # Spark would say "next on empty iterator"
            raise UserError(
                f"{self._at('offsets', str(batch))} is broken, perhaps cut short: restore it from a copy, "
                "or use a new checkpointLocation"
            )
        return lines

    def check_owner(self, identity: dict[str, Any]) -> None:
        """Refuse a checkpoint that another topology wrote; without our note, only Spark checks it."""
        if not self._files.exists(self._at(_NOTE)):
            return
        owner = json.loads(self._read(_NOTE))
        if owner != identity:
            raise UserError(
                f"checkpoint {self.location} belongs to {_describe(owner)}, this is {_describe(identity)}: "
                "choose another --checkpoint, or remove it to start from the beginning"
            )

    def claim(self, identity: dict[str, Any]) -> None:
        """Write the owner into a new checkpoint, once a run begins."""
        if not self._files.exists(self._at(_NOTE)) and self.last_begun() is None:
            self._write(json.dumps(identity), _NOTE)

    def _batches(self, log: str) -> list[int]:
        folder = self._at(log)
        if not self._files.exists(folder):
            return []
        names = [str(status.getPath().getName()) for status in self._files.listStatus(folder)]
        return [int(name) for name in names if name.isdigit()]

    def _at(self, *parts: str) -> Any:
        path = self._path
        for part in parts:
            path = self._jvm.org.apache.hadoop.fs.Path(path, part)
        return path

    def _read(self, *parts: str) -> str:
        stream = self._files.open(self._at(*parts))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _replace(self, text: str, folder: str, name: str) -> None:
        """Write a file anew, whole or not at all: Spark could not start with half of it."""
        hadoop, new = self._jvm.org.apache.hadoop.fs, f".{name}.new"
        self._write(text, folder, new)
        overwrite = self._gateway.new_array(hadoop.Options.Rename, 1)
        overwrite[0] = hadoop.Options.Rename.OVERWRITE
        files = hadoop.FileContext.getFileContext(self._path.toUri(), self._conf)
        files.rename(self._at(folder, new), self._at(folder, name), overwrite)

    def _write(self, text: str, *parts: str) -> None:
        stream = self._files.create(self._at(*parts), True)
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _describe(identity: dict[str, Any]) -> str:
    state = ", ".join(identity.get("stateful", [])) or "no stateful operator"
    return f"{identity.get('name')!r} ({identity.get('mode')}; {state})"
