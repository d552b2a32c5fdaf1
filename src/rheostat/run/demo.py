"""The demo: a load that rises sixfold and falls again, on a small embedded cluster; and its summary."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rheostat.analyze.judging import Series
from rheostat.apps.shipped import find_script
from rheostat.control.guards import Guards
from rheostat.control.turn import Turn
from rheostat.engines.spark.modes import check_mode
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.decision import Status
from rheostat.model.errors import UserError
from rheostat.policies.registry import build
from rheostat.run.folder import JOURNAL
from rheostat.run.order import RESCALE_ABOVE, TRIGGER_SECONDS, Order, with_period

LOW, HIGH = 100, 600  # rows/s
MAX_NODES = 3
PERIOD_SECONDS, COOLDOWN_SECONDS = 5.0, 5.0
KINDS = {
    "microbatch": NodeKind(cores=0.5, slots=2, memory_mb=1024.0),
    "realtime": NodeKind(cores=0.5, slots=4, memory_mb=1024.0),  # every instance holds a slot
}


def prepare_demo(mode: str, policy: str, duration: float, seed: int, out: Path) -> Order:
    """Return the demo's order, and remove the folder of an earlier demo."""
    check_mode(mode, None)
    order = _order(mode, policy, duration, seed, out)
    if out.exists():
        _remove_earlier_demo(out)
    return order


def _order(mode: str, policy: str, duration: float, seed: int, out: Path) -> Order:
    curve = f"sine:low={LOW}:high={HIGH}:period={duration:g}s:duration={duration:g}s"
    return Order(
        name="demo",
        script=find_script("demo"),
        policy=with_period(build(policy), PERIOD_SECONDS),
        policy_text=policy,
        folder=out,
        arguments=(curve, "--seed", str(seed)),
        mode=mode,
        kinds=(KINDS[mode],),
        bounds=Bounds(1, MAX_NODES),
        guards=Guards(cooldown_seconds=COOLDOWN_SECONDS, rescale_above=RESCALE_ABOVE),
        trigger_seconds=TRIGGER_SECONDS[mode],
        seed=seed,
        facts={"curve": curve, "seed": seed},
    )


def _remove_earlier_demo(out: Path) -> None:
    if not (out / JOURNAL).is_file():
        raise UserError(f"{out} exists but holds no earlier demo: choose another folder with --out")
    shutil.rmtree(out)


@dataclass(frozen=True)
class Summary:
    """What a demo run used and achieved."""

    rows: float
    seconds: float
    node_seconds: float
    peak_nodes: int
    mean_lag_seconds: float
    p99_lag_seconds: float
    changes: int
    failed: int

    @property
    def peak_node_seconds(self) -> float:
        """Node-seconds, had the peak's nodes run all the time."""
        return self.peak_nodes * self.seconds

    @property
    def saved(self) -> float:
        """The share of those that scaling saved."""
        return 1 - self.node_seconds / self.peak_node_seconds


def summarise(run: Series, turns: list[Turn]) -> Summary:
    """Summarise a run."""
    statuses = [turn.outcome.status for turn in turns]
    return Summary(
        rows=float(run.throughput.sum()) * run.step_seconds,
        seconds=len(run.nodes) * run.step_seconds,
        node_seconds=float(run.nodes.sum()) * run.step_seconds,
        peak_nodes=int(run.nodes.max()),
        mean_lag_seconds=float(run.lag.mean()),
        p99_lag_seconds=float(np.percentile(run.lag, 99)),
        changes=statuses.count(Status.APPLIED),
        failed=statuses.count(Status.FAILED),
    )
