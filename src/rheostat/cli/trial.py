"""`rheostat trial`: policies against each other and against Spark's own scaling, on real Spark."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import options
from rheostat.trials.contestants import PEERS

ALL_PEERS = "static-min,static-peak,spark-dra,occupancy,joint,ds2"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "trial",
        epilog="Example: rheostat trial --app wordcount --curve sine:high=90000:period=3m:duration=3m "
        "--policies elysium --nodes 1:4",
    )(_trial)


def _trial(
    app: Annotated[str, typer.Option("--app", "-a", help="A script, or one of `rheostat apps`.")],
    curve: options.CurveOption,
    policies: Annotated[
        str,
        typer.Option("--policies", "-p", help="Policies to judge: names, or name(parameter=value,...)."),
    ],
    peers: Annotated[
        str,
        typer.Option("--peers", help=f"Baselines to compare against: policies, or {', '.join(PEERS)}."),
    ] = ALL_PEERS,
    repeat: Annotated[int, typer.Option("--repeat", min=1, max=100, help="Runs per contestant.")] = 1,
    nodes: options.NodesOption = "1:4",
    node: options.NodeOption = "cores=0.4,slots=2,memory_mb=1024",
    mode: options.SparkModeOption = "microbatch",
    trigger: options.TriggerOption = None,
    period: Annotated[float, typer.Option("--period", help="Seconds between decisions.")] = 5.0,
    cooldown: options.CooldownOption = 5.0,
    warm_up: Annotated[
        float,
        typer.Option("--warm-up", help="Seconds to hold the curve's first load beforehand; not judged."),
    ] = 40.0,
    partitions: Annotated[
        int,
        typer.Option("--partitions", min=1, max=64, help="Tasks that read the curve, or topic partitions."),
    ] = 4,
    kafka: Annotated[
        str | None,
        typer.Option("--kafka", help="HOST:PORT of a Kafka broker, to send the load through a topic."),
    ] = None,
    conf: options.ConfOption = None,
    conf_file: options.ConfFileOption = None,
    seed: options.SeedOption = 0,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the journals, the report and the plot.")
    ] = Path("trial"),
) -> None:
    """Judge policies on real Spark. Each runs the application under the same load, on a fresh cluster.

    Give the same options again to continue a trial that was interrupted: finished runs are kept.
    """
    from rheostat.cli import signals, spark_settings, trial_page, values
    from rheostat.trials import rounds
    from rheostat.trials.setup import choose_contestants, make_trial

    trial = make_trial(
        app=app,
        curve=curve,
        seed=seed,
        nodes=values.bounds(nodes),
        node=values.node_kind(node),
        mode=mode,
        trigger_seconds=None if trigger is None else values.positive("--trigger", trigger),
        period_seconds=values.positive("--period", period, least=0.5),
        cooldown_seconds=values.positive("--cooldown", cooldown, least=0.0),
        warm_up_seconds=warm_up,
        partitions=partitions,
        kafka=kafka,
        settings=spark_settings.read(conf, conf_file),
    )
    contestants = choose_contestants(policies, peers)
    rounds.prepare(out, trial)
    with signals.interruptible() as ending:
        for place, (number, contestant) in enumerate(rounds.schedule(contestants.names, repeat), 1):
            total = len(contestants.names) * repeat
            trial_page.run(trial, contestant, number, out, f"{place} of {total}")
    if report := rounds.report(out, trial, contestants):
        trial_page.show(report, out)
    raise typer.Exit(ending.code)
