"""The demo's run: what is started, and what it took."""

import shutil
from pathlib import Path

import numpy as np

from rheostat.analyze.judging import Series
from rheostat.cli import apps, console, results, watching
from rheostat.cli.running import JOURNAL, Order
from rheostat.cli.view import Sample
from rheostat.control.guards import Guards
from rheostat.control.loop import Turn
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.decision import Status
from rheostat.model.errors import UserError
from rheostat.policies.registry import build

LOW, HIGH = 100, 600  # rows/s
MOST_NODES = 3
PERIOD_SECONDS, COOLDOWN_SECONDS = 5.0, 5.0
KINDS = {
    "microbatch": NodeKind(cores=0.5, slots=2, memory_mb=1024.0),
    "realtime": NodeKind(cores=0.5, slots=4, memory_mb=1024.0),  # every instance holds a slot
}


def make_order(mode: str, policy: str, duration: float, seed: int, out: Path) -> Order:
    """The load that rises and falls, and who serves it."""
    curve = f"sine:low={LOW}:high={HIGH}:period={duration:g}s:duration={duration:g}s"
    return Order(
        name="demo",
        script=apps.find("demo"),
        policy=watching.paced(build(policy), PERIOD_SECONDS),
        policy_text=policy,
        folder=out,
        arguments=(curve, "--seed", str(seed)),
        mode=mode,
        kind=KINDS[mode],
        bounds=Bounds(1, MOST_NODES),
        guards=Guards(cooldown_seconds=COOLDOWN_SECONDS, rescale_above=watching.RESCALE_ABOVE),
        trigger_seconds=watching.TRIGGERS[mode],
        seed=seed,
        facts={"curve": curve, "seed": seed},
    )


def clear(out: Path) -> None:
    """Make room for this demo where an earlier one lies, and nowhere else."""
    if not (out / JOURNAL).is_file():
        raise UserError(f"{out} exists and is no earlier demo: choose another folder with --out")
    shutil.rmtree(out)


def report(order: Order, samples: list[Sample], turns: list[Turn]) -> None:
    """Say what the run took, and draw it."""
    if len(samples) < 2:
        console.out.print("nothing was measured yet")
        return
    series = _series(samples)
    changes = sum(turn.outcome.status is Status.APPLIED for turn in turns)
    failed = sum(turn.outcome.status is Status.FAILED for turn in turns)
    peak, seconds = int(series.nodes.max()), len(series.nodes) * series.step_seconds
    used = float(series.nodes.sum()) * series.step_seconds
    table = console.table("What it took", "", "", text=2)
    table.show_header = False
    table.add_row("rows", f"{series.throughput.sum() * series.step_seconds:,.0f} in {seconds:.0f} s")
    table.add_row(
        "node-seconds",
        f"{used:,.0f}, against {peak * seconds:,.0f} with the peak's {peak} nodes all the time: "
        f"{1 - used / (peak * seconds):.0%} saved",
    )
    table.add_row("lag", f"mean {series.lag.mean():.1f} s, p99 {np.percentile(series.lag, 99):.1f} s")
    table.add_row("changes", f"{changes}" + (f", {failed} failed and rolled back" if failed else ""))
    console.out.print()
    console.out.print(table)
    plots = results.draw(
        f"demo: {order.policy_text}, {order.mode}", {order.policy_text: series}, order.folder, "demo"
    )
    console.out.print(f"\nplot: {plots[0]}; journal: {order.folder / JOURNAL}", soft_wrap=True)
    where = f"--journal {order.folder / JOURNAL}"
    console.out.print(f"try: rheostat explain {where}", soft_wrap=True)
    console.out.print(f"     rheostat status {where}", soft_wrap=True)
    console.out.print(
        "     rheostat demo --mode realtime; rheostat run YOUR_APP.py --nodes 1:4", soft_wrap=True
    )


def _series(samples: list[Sample]) -> Series:
    """The samples in equal steps of a second."""
    at = np.array([sample.at for sample in samples])
    seconds = np.arange(at[0], at[-1], 1.0)
    index = np.searchsorted(at, seconds, side="right") - 1

    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([float(getattr(sample, name)) for sample in samples])[index]

    return Series(
        1.0, column("load"), column("throughput"), column("lag"), column("nodes"), column("instances")
    )
