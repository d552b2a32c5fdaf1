"""What a driver process is to run: its controller leaves it as plain data in a file of the run's folder."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from rheostat.model.secrets import write_private

SPEC = "driver.json"
FAILURE = "failure.json"  # why the driver process ended
PID = "driver.pid"  # and when the process started
LOG = "driver.log"
_HERE = ("127.0.0.1:", "localhost:", "[::1]:", "local")
WARM_UP = "spark.rheostat.warmUp"  # false: new executors take tasks at once, cold
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
SPREAD_STATE = "spark.rheostat.spreadState"  # false: state stays on the executors that have it


@dataclass(frozen=True)
class CheckpointRewrite:
    """A script's checkpoint, whose state is to be rewritten before the script starts.

    Without a number, only a rewrite that was cut short is rolled back: Spark would not start the query.
    """

    checkpoint: str
    partitions: int | None = None


@dataclass(frozen=True)
class Spec:
    """An application to run."""

    name: str
    script: str
    master: str
    folder: str  # of the run: log, journal, checkpoint
    socket: str  # where the driver process answers
    checkpoint: str
    mode: str = "microbatch"
    arguments: tuple[str, ...] = ()
    slots: int = 2  # per executor
    executor_memory_mb: int = 640
    trigger_seconds: float | None = None  # None: as the script sets it
    kafka: str | None = None  # HOST:PORT of the broker that connects the queries of a graph
    settings: Mapping[str, str] = field(default_factory=dict)  # Spark's, on top of ours
    state_partitions: int | None = None  # of new state, unless the script sets them; None: as Spark does
    rewrites: tuple[CheckpointRewrite, ...] = ()  # before the script starts
    token: str = ""  # proves which process and which scratch folder belong to this driver

    @property
    def scratch(self) -> Path:
        """The driver's own folder, for its socket and its scratch files."""
        return Path(self.socket).parent

    @property
    def warms_up(self) -> bool:
        """Whether new executors rehearse before their first task; in Real-Time Mode a task never ends."""
        on_a_cluster = self.master.startswith("spark://")
        return on_a_cluster and self.mode == "microbatch" and self.settings.get(WARM_UP) != "false"

    @property
    def spreads_state(self) -> bool:
        """Whether state follows when executors come or go."""
        return self.settings.get(SPREAD_STATE) != "false"

    @property
    def without_rewrites(self) -> "Spec":
        """The same for another attempt: what was cut short is rolled back, and not tried again."""
        return replace(self, rewrites=tuple(replace(each, partitions=None) for each in self.rewrites))

    @property
    def topic_prefix(self) -> str:
        """The prefix of a graph's topics; a run with another checkpoint has another prefix."""
        return f"rheostat.{self.name}.{hashlib.sha256(self.checkpoint.encode()).hexdigest()[:8]}."

    def write(self) -> Path:
        """Write it where the driver process will read it."""
        path = Path(self.folder) / SPEC
        write_private(path, _SPEC.dump_json(self, indent=2))  # its settings may contain secrets
        return path

    @staticmethod
    def read(path: Path) -> "Spec":
        """Read what `write` wrote."""
        return _SPEC.validate_json(path.read_bytes())

    def spark_settings(self) -> dict[str, str]:
        """Spark's settings for this run; ours come first, so that the user's win."""
        loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        page = self.settings.get("spark.ui.enabled", "false").lower() == "true"
        return {
            **(loopback if self.master.removeprefix("spark://").startswith(_HERE) else {}),
            **({} if page else _NO_PAGE),
            "spark.ui.showConsoleProgress": "false",
            "spark.executor.cores": str(self.slots),
            "spark.executor.memory": f"{self.executor_memory_mb}m",
            "spark.dynamicAllocation.enabled": "false",  # Rheostat decides
            "spark.speculation": "false",
            "spark.decommission.enabled": "true",  # a leaving executor finishes its tasks
            "spark.sql.adaptive.streaming.stateless.enabled": "false",  # it would hide the stages
            "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state"
            ".RocksDBStateStoreProvider",  # the only provider whose state can be rewritten
            "spark.sql.streaming.metricsEnabled": "false",
            "spark.sql.streaming.noDataProgressEventInterval": "1000",  # ms: idle streams say so
            "spark.sql.streaming.realTimeMode.allowlistCheck": "false",  # plan_checks.py refuses earlier
            **({SHUFFLE_PARTITIONS: str(self.state_partitions)} if self.state_partitions else {}),
            "spark.locality.wait": "1s",  # how long tasks wait for the executor with their state
            **self.settings,
        }


# Without a page to show it on, Spark would still keep what the last thousand batches did.
_NO_PAGE = {
    "spark.ui.enabled": "false",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
}
_SPEC = TypeAdapter(Spec)
