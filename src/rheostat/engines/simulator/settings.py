"""Settings of a simulation."""

from dataclasses import dataclass

from rheostat.analyze.execution import MODES, ExecutionModel, Pipelined, Staged, Storm
from rheostat.analyze.node_overhead import Overhead
from rheostat.model.configuration import NodeKind
from rheostat.model.errors import UserError, nearest
from rheostat.model.topology import Topology


@dataclass(frozen=True, slots=True)
class Settings:
    """How the simulated cluster behaves; the defaults are those of a small Spark cluster."""

    mode: str = "pipelined"
    kinds: tuple[NodeKind, ...] = (NodeKind(),)
    overhead: Overhead = Overhead(idle=0.02, slope=1.05)
    regions: tuple[str, ...] = ("local",)
    step_seconds: float = 1.0
    noise: float = 0.0  # relative spread of every operator's cost from window to window
    seed: int = 0

    trigger_seconds: float = 10.0  # staged: the trigger interval
    stage_overhead_seconds: float = 0.1  # staged: scheduling and commit per stage and batch

    queue_rows: float = 20_000.0  # storm: rows that one instance's queue holds
    on_full: str = "hold"  # storm: hold rows back at the upstream operator, or drop them

    executor_startup_seconds: float = 5.0
    executor_idle_cores: float = 0.05  # what each process beyond a node's first costs
    executor_memory_mb: float = 512.0
    row_bytes: float = 200.0
    rebalance_seconds: tuple[float, float] = (5.0, 8.0)  # storm: a rebalance stops the topology
    incremental_seconds: float = 1.0  # storm: instances start or end without affecting others
    restart_seconds: float = 2.0  # spark: stop and restart around a state rewrite
    state_bytes_per_second: float = 50e6

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UserError(f"unknown mode {self.mode!r}{nearest(self.mode, MODES)}")
        if self.on_full not in ("hold", "drop"):
            raise UserError(f"on_full must be hold or drop, not {self.on_full!r}")
        if self.step_seconds <= 0 or self.noise < 0:
            raise UserError("step_seconds must be positive and noise not negative")

    def model(self, topology: Topology) -> ExecutionModel:
        """Return the execution model that policies see."""
        if self.mode == "staged":
            return Staged(self.trigger_seconds, self.stage_overhead_seconds, topology.pinned)
        return Storm() if self.mode == "storm" else Pipelined()
