"""`rheostat trial`: policies against each other and against Spark's own scaling, on real Spark."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import console, options
from rheostat.model.errors import UserError
from rheostat.trials.contestants import PEERS

ALL_PEERS = "static-min,static-peak,spark-dra,occupancy,joint,ds2"
REFERENCE = "static-peak"
MOST_WARM_UP_SECONDS = 600


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
        str, typer.Option("--policies", "-p", help="Who is tried: names, or name(parameter=value,...).")
    ],
    peers: Annotated[
        str, typer.Option("--peers", help=f"Against whom; besides policies: {', '.join(PEERS)}.")
    ] = ALL_PEERS,
    repeat: Annotated[int, typer.Option("--repeat", min=1, max=100, help="Runs of each.")] = 1,
    nodes: options.NodesOption = "1:4",
    node: options.NodeOption = "cores=0.4,slots=2,memory_mb=1024",
    mode: options.SparkModeOption = "microbatch",
    trigger: options.TriggerOption = None,
    period: Annotated[float, typer.Option("--period", help="Seconds between decisions.")] = 5.0,
    cooldown: Annotated[float, typer.Option("--cooldown", help="Least seconds between two changes.")] = 5.0,
    warm_up: Annotated[
        float,
        typer.Option("--warm-up", help="Seconds at the curve's first load before it begins; not judged."),
    ] = 40.0,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, max=64, help="Tasks that read the curve, or of the topic.")
    ] = 4,
    kafka: Annotated[
        str | None,
        typer.Option("--kafka", help="HOST:PORT of a broker: the load goes through a topic of it."),
    ] = None,
    conf: options.ConfOption = None,
    conf_file: options.ConfFileOption = None,
    seed: options.SeedOption = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for journals, report and plot.")] = Path(
        "trial"
    ),
) -> None:
    """Judge policies on real Spark. Each runs the application under the same load, on a fresh cluster.

    What is in the folder from an earlier call with the same options is kept: it goes on where it stopped.
    """
    from rheostat.apps.shipped import find_script
    from rheostat.cli import measures_page, settings, signals, trial_page, values
    from rheostat.model.files import write_whole
    from rheostat.policies.registry import build
    from rheostat.run.order import check_script, choose_trigger
    from rheostat.trials import rounds
    from rheostat.trials.report import make_report
    from rheostat.trials.trial import Trial
    from rheostat.workloads import parse_curve

    given = settings.read(conf, conf_file)
    trigger_seconds = choose_trigger(
        mode, None if trigger is None else values.positive("--trigger", trigger), given
    )
    if mode == "realtime" and kafka is None:
        raise UserError("--mode realtime needs --kafka HOST:PORT; start a broker with `rheostat kafka up`")
    if not 0 <= warm_up <= MOST_WARM_UP_SECONDS:
        raise UserError(f"--warm-up must be from 0 to {MOST_WARM_UP_SECONDS} s, not {warm_up:g}")
    if kafka is not None:
        from rheostat.services.kafka_topics import must_answer

        must_answer(kafka)
    script = find_script(app)
    check_script(script)
    trial = Trial(
        app=app,
        script=script,
        curve=curve,
        seed=seed,
        nodes=values.bounds(nodes),
        node=values.node_kind(node),
        mode=mode,
        trigger_seconds=trigger_seconds,
        period_seconds=values.positive("--period", period, least=0.5),
        cooldown_seconds=values.positive("--cooldown", cooldown, least=0.0),
        warm_up_seconds=warm_up,
        partitions=partitions,
        kafka=kafka,
        settings=given,
    )
    parse_curve(trial.load)
    tried = rounds.split_names(policies)
    if not tried:
        raise UserError("--policies names none; see `rheostat policies`")
    names = list(dict.fromkeys([*tried, REFERENCE, *rounds.split_names(peers)]))
    for name in names:
        if name not in PEERS:
            build(name)
    rounds.prepare(out, trial)
    with signals.interruptible() as ending:
        for place, (number, one) in enumerate(rounds.schedule(names, repeat), 1):
            trial_page.run(trial, one, number, out, f"{place} of {len(names) * repeat}")
    if found := rounds.read_results(out, names):
        report = make_report(trial, tried, found)
        plots = measures_page.draw(report.title, report.series, out, "trial") if report.series else []
        write_whole(out / "trial.md", report.markdown([plot.name for plot in plots[:1]]).encode())
        trial_page.show(report)
        console.out.print(
            f"\nreport: {out / 'trial.md'}; plot, results and journals beside it", soft_wrap=True
        )
    raise typer.Exit(ending.code)
