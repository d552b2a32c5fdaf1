"""`rheostat compare`: several policies on the same load."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import console, options


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "compare", epilog="Example: rheostat compare -t wordcount -c day -p static,ds2,elysium --seed 1"
    )(_compare)


def _compare(
    topology: options.TopologyOption,
    curve: options.CurveOption,
    policies: Annotated[
        str,
        typer.Option("--policies", "-p", help="Comma-separated names, or name(parameter=value,...)."),
    ],
    mode: options.SimulatedModeOption = "pipelined",
    seed: options.SeedOption = 0,
    node: options.NodeKindsOption = [""],  # noqa: B006 - typer copies it
    nodes: options.NodesOption = "1:1000",
    settings: options.SetOption = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the plot.")] = Path("comparison"),
    as_json: options.JsonOption = False,
) -> None:
    """Run policies on one simulated load and judge them side by side."""
    from rheostat.cli import measures_page
    from rheostat.cli.scenario_options import read_scenario
    from rheostat.engines.simulator.comparison import build_policies, compare
    from rheostat.engines.simulator.scenario import check_start
    from rheostat.model.files import make_folder

    built = build_policies(policies)
    scenario = read_scenario(topology, curve, mode, seed, node, nodes, settings)
    check_start(scenario, built)
    make_folder(out)
    with console.progress() as begin:
        runs = compare(scenario, built, begin)
    title = f"{scenario.topology.name} under {curve} ({mode}, seed {seed})"
    paths = measures_page.draw(title, {name: run.series for name, run in runs.items()}, out, "comparison")
    if as_json:
        console.print_json(
            {
                "topology": scenario.topology.name,
                "curve": curve,
                "mode": mode,
                "seed": seed,
                "policies": {name: measures_page.measures_json(run.measures) for name, run in runs.items()},
                "plots": [str(path) for path in paths],
            }
        )
        return
    console.out.print(measures_page.measures_table(title, runs))
    console.out.print(f"\nplot: {paths[0]} and {paths[1].name}")
