"""`rheostat simulate`: one policy on one simulated load, with a full record."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import console, options


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
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the journal, the series and the plot.")
    ] = Path("simulation"),
    as_json: options.JsonOption = False,
) -> None:
    """Run one policy in the simulator. Writes the full record: journal.sqlite, series.csv, a plot."""
    from rheostat.cli import measures_page, simulate_page
    from rheostat.cli.scenario_options import read_scenario
    from rheostat.engines.simulator.recording import claim_folder, record_run
    from rheostat.engines.simulator.scenario import check_start
    from rheostat.policies.registry import build

    built = build(policy)
    scenario = read_scenario(topology, curve, mode, seed, node, nodes, settings)
    check_start(scenario, {policy: built})
    claim_folder(out)
    name = scenario.topology.name
    facts = {"topology": name, "policy": policy, "curve": curve, "mode": mode, "seed": seed}
    with console.progress() as begin:
        recording = record_run(scenario, built, facts, out, begin(policy))
    run = recording.run
    title = f"{name} under {curve} with {policy} ({mode}, seed {seed})"
    plots = measures_page.draw(title, {policy: run.series}, out, "simulation")
    if as_json:
        console.print_json(
            {
                "policy": policy,
                "measures": measures_page.measures_json(run.measures),
                "decisions": [simulate_page.decision(turn) for turn in recording.decisions],
                "journal": str(recording.journal),
                "series": str(recording.series),
                "plots": [str(plot) for plot in plots],
            }
        )
        return
    console.out.print(measures_page.measures_table(title, {policy: run}))
    simulate_page.show(recording.decisions)
    files = ", ".join(path.name for path in (recording.series, *plots))
    console.out.print(f"\nrecord: {recording.journal}, {files}")
