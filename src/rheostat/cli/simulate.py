"""`rheostat simulate`: one policy on a load, with everything it saw, decided and did."""

import csv
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from rheostat.cli import console, results, world
from rheostat.control.journal import Journal
from rheostat.control.loop import Turn
from rheostat.engines.simulator.comparison import Run, run_policy
from rheostat.model.decision import Status
from rheostat.model.errors import FileError, UserError
from rheostat.policies.registry import build

SHOWN = 8  # decisions in the terminal


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("simulate", epilog="Example: rheostat simulate -t wordcount -c day -p elysium --out run1")(
        _simulate
    )


def _simulate(
    topology: world.TopologyOption,
    curve: world.CurveOption,
    policy: Annotated[str, typer.Option("--policy", "-p", help="A name, or name(parameter=value,...).")],
    mode: world.ModeOption = "pipelined",
    seed: world.SeedOption = 0,
    node: world.NodeOption = "",
    nodes: world.NodesOption = "1:1000",
    settings: world.SetOption = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for journal, series and plot.")] = Path(
        "simulation"
    ),
    as_json: world.JsonOption = False,
) -> None:
    """Run one policy in the simulator and write the full record: journal.sqlite, series.csv, a plot."""
    built = build(policy)
    scene = world.scenario(topology, curve, mode, seed, node, nodes, settings)
    world.check_start(scene, {policy: built})
    results.make_folder(out)
    path = out / "journal.sqlite"
    if path.exists():
        raise UserError(f"{path} exists already; choose another folder with --out, or remove it")
    decisions: list[Turn] = []
    with Journal(path) as journal, console.progress() as start:
        journal.describe(
            {"topology": scene.topology.name, "policy": policy, "curve": curve, "mode": mode, "seed": seed}
        )

        def keep(turn: Turn) -> None:
            journal.add(turn)
            if turn.plan.changes or turn.plan.alert:
                decisions.append(turn)

        run = run_policy(scene, built, on_turn=keep, progress=start(policy))
    _write_series(out / "series.csv", run)
    title = f"{scene.topology.name} under {curve} with {policy} ({mode}, seed {seed})"
    plots = results.draw(title, {policy: run.series}, out, "simulation")
    if as_json:
        console.print_json(
            {
                "policy": policy,
                "measures": results.measures_json(run.measures),
                "decisions": [_decision(turn) for turn in decisions],
                "journal": str(path),
                "series": str(out / "series.csv"),
                "plots": [str(plot) for plot in plots],
            }
        )
        return
    console.out.print(results.measures_table(title, {policy: run}))
    _show(decisions)
    console.out.print(f"\nrecord: {path}, series.csv, {plots[0].name}, {plots[1].name}")


def _show(decisions: list[Turn]) -> None:
    console.out.print()
    console.out.print(
        console.count(len(decisions), "decision")
        + (f", the last {SHOWN}:" if len(decisions) > SHOWN else ""),
        style="bold",
    )
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    for turn in decisions[-SHOWN:]:
        plan, outcome = turn.plan, turn.outcome
        lines = [outcome.configuration.describe(plan.current), f"because {plan.reason}"]
        if outcome.status is Status.FAILED:
            lines.append(f"FAILED: {outcome.reason}")
        if plan.alert:
            lines.append(f"ALERT: {plan.alert}")
        grid.add_row(f"{plan.decided_at:,.0f} s", "\n".join(lines))
    console.out.print(grid)


def _decision(turn: Turn) -> dict[str, object]:
    return {
        "number": turn.number,
        "at": turn.plan.decided_at,
        "change": turn.outcome.configuration.describe(turn.plan.current),
        "reason": turn.plan.reason,
        "causes": [str(cause) for cause in turn.plan.causes],
        "rejected": list(turn.plan.rejected),
        "vetoes": list(turn.plan.vetoes),
        "alert": turn.plan.alert,
        "status": turn.outcome.status.value,
        "pause_seconds": turn.outcome.pause_seconds,
    }


def _write_series(path: Path, run: Run) -> None:
    s = run.series
    times = np.arange(1, len(s.nodes) + 1) * s.step_seconds
    try:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["time", "load", "throughput", "lag_seconds", "nodes", "instances"])
            columns = (times, s.load, s.throughput, s.lag, s.nodes, s.instances)
            writer.writerows(zip(*(np.round(column, 3).tolist() for column in columns), strict=True))
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from None
