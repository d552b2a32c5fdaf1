"""What a controller tells the driver process that it starts; plain data, in a file of the run's folder."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from rheostat.model.secrets import write_private

SPEC = "driver.json"
FAILURE = "failure.json"  # why the driver process ended
PID = "driver.pid"  # and when the process started
LOG = "driver.log"
_HERE = ("127.0.0.1:", "localhost:", "[::1]:", "local")
WARM_UP = "spark.rheostat.warmUp"  # false: new executors take tasks at once, cold
SPREAD_STATE = "spark.rheostat.spreadState"  # false: state stays on the executors that have it


@dataclass(frozen=True)
class Spec:
    """One application to run."""

    name: str
    script: str
    master: str
    folder: str  # the run's own: log, journal, checkpoint
    socket: str  # where the driver process answers
    checkpoint: str
    mode: str = "microbatch"
    arguments: tuple[str, ...] = ()
    slots: int = 2  # of one executor
    executor_memory_mb: int = 640
    trigger_seconds: float | None = None  # None: as the script says
    kafka: str | None = None  # HOST:PORT of the broker that links the queries of a graph
    settings: Mapping[str, str] = field(default_factory=dict)  # Spark's, beyond ours
    token: str = ""  # proves which process and which scratch folder are this driver's

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
    def topic_prefix(self) -> str:
        """What the names of a graph's topics begin with: a run with another checkpoint has others."""
        return f"rheostat.{self.name}.{hashlib.sha256(self.checkpoint.encode()).hexdigest()[:8]}."

    def write(self) -> Path:
        """Write it where the driver process will read it."""
        path = Path(self.folder) / SPEC
        write_private(path, _SPEC.dump_json(self, indent=2))  # its settings may hold secrets
        return path

    @staticmethod
    def read(path: Path) -> "Spec":
        """Read what `write` wrote."""
        return _SPEC.validate_json(path.read_bytes())

    def spark_settings(self) -> dict[str, str]:
        """Spark's settings for this run; ours first, so that the user's win."""
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
            ".RocksDBStateStoreProvider",  # the only one whose state can be rewritten
            "spark.sql.streaming.metricsEnabled": "false",
            "spark.sql.streaming.noDataProgressEventInterval": "1000",  # ms: a silent stream says that it is
            "spark.sql.streaming.realTimeMode.allowlistCheck": "false",  # checks.py says it earlier
            "spark.locality.wait": "1s",  # tasks wait as long for their state's place, then it moves
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
