"""`rheostat simulate`: one policy on a load, with everything it saw, decided and did."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import console, options
from rheostat.model.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("simulate", epilog="Example: rheostat simulate -t wordcount -c day -p elysium --out run1")(
        _simulate
    )


def _simulate(
    topology: options.TopologyOption,
    curve: options.CurveOption,
    policy: Annotated[str, typer.Option("--policy", "-p", help="A name, or name(parameter=value,...).")],
    mode: options.SimulatedModeOption = "pipelined",
    seed: options.SeedOption = 0,
    node: options.NodeKindsOption = [""],  # noqa: B006 - typer copies it
    nodes: options.NodesOption = "1:1000",
    settings: options.SetOption = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for journal, series and plot.")] = Path(
        "simulation"
    ),
    as_json: options.JsonOption = False,
) -> None:
    """Run one policy in the simulator. Writes the full record: journal.sqlite, series.csv, a plot."""
    from rheostat.cli import measures_page, simulate_page
    from rheostat.cli.scenario_options import read_scenario
    from rheostat.control.turn import Turn
    from rheostat.engines.simulator.comparison import run_policy
    from rheostat.engines.simulator.scenario import check_start
    from rheostat.journal.store import Journal
    from rheostat.model.files import make_folder
    from rheostat.policies.registry import build

    built = build(policy)
    scene = read_scenario(topology, curve, mode, seed, node, nodes, settings)
    check_start(scene, {policy: built})
    make_folder(out)
    path = out / "journal.sqlite"
    if path.exists():
        raise UserError(f"{path} exists already; choose another folder with --out, or remove it")
    decisions = list[Turn]()
    with Journal(path) as journal, console.progress() as start:
        journal.describe(
            {"topology": scene.topology.name, "policy": policy, "curve": curve, "mode": mode, "seed": seed}
        )

        def keep(turn: Turn) -> None:
            if turn.plan.changes or turn.plan.alert:
                decisions.append(turn)

        run = run_policy(scene, built, on_turn=keep, progress=start(policy), recorder=journal)
    simulate_page.write_series(out / "series.csv", run)
    title = f"{scene.topology.name} under {curve} with {policy} ({mode}, seed {seed})"
    plots = measures_page.draw(title, {policy: run.series}, out, "simulation")
    if as_json:
        console.print_json(
            {
                "policy": policy,
                "measures": measures_page.measures_json(run.measures),
                "decisions": [simulate_page.decision(turn) for turn in decisions],
                "journal": str(path),
                "series": str(out / "series.csv"),
                "plots": [str(plot) for plot in plots],
            }
        )
        return
    console.out.print(measures_page.measures_table(title, {policy: run}))
    simulate_page.show(decisions)
    console.out.print(f"\nrecord: {path}, series.csv, {plots[0].name}, {plots[1].name}")
