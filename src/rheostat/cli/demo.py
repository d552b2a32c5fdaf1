"""`rheostat demo`: a real Spark stream on this machine, scaled live under a load that rises and falls."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import options
from rheostat.model.errors import UserError

POLICY = "ds2(utilization_min=0.55,restart_time=10)"  # a live change costs Spark seconds, not Flink's minutes


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("demo", epilog="Example: rheostat demo --policy elysium --duration 240")(_demo)


def _demo(
    mode: options.SparkModeOption = "microbatch",
    policy: Annotated[
        str, typer.Option("--policy", "-p", help="The policy that decides; see `rheostat policies`.")
    ] = POLICY,
    duration: Annotated[float, typer.Option("--duration", help="Seconds of load, from 30 to 3600.")] = 150.0,
    seed: options.SeedOption = 1,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the journal and the plot.")] = Path(
        "demo"
    ),
) -> None:
    """See Rheostat at work. Starts a small Spark cluster, raises the load sixfold and lowers it again."""
    from rheostat.cli import demo_page, live_run, signals
    from rheostat.control.turn import Turn
    from rheostat.run.demo import prepare_demo
    from rheostat.run.samples import Sample

    if not 30 <= duration <= 3600:
        raise UserError(f"--duration must be from 30 to 3600 seconds, not {duration:g}")
    order = prepare_demo(mode, policy, duration, seed, out)
    turns, samples = list[Turn](), list[Sample]()
    with signals.interruptible() as ending, live_run.show_run(order, duration) as live:
        samples = live.sampler.samples
        for turn in live.running.turns(live.running.clock.now() + duration):
            turns.append(turn)
            live.show(turn)
    demo_page.show(order, samples, turns)
    raise typer.Exit(ending.code)
