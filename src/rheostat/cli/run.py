"""`rheostat run`: run and scale a user's own streaming application."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import console, options
from rheostat.model.errors import UserError

DEFAULT_PERIOD_SECONDS = 10.0
DEFAULT_COOLDOWN_SECONDS = 30.0
DEFAULT_CHANGES_PER_HOUR = 60


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "run",
        epilog="Example: rheostat run app.py --policy ds2 --nodes 1:4 -- --its-own option",
    )(_run)


def _run(
    app: Annotated[
        str, typer.Argument(metavar="APP", help="A Python script, or the name of one of `rheostat apps`.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments for the script; put -- before its options.")
    ] = None,
    policy: Annotated[
        str, typer.Option("--policy", "-p", help="A name, or name(parameter=value,...).")
    ] = "ds2",
    master: Annotated[
        str | None, typer.Option("--master", help="spark://HOST:PORT (default: a cluster on this machine).")
    ] = None,
    nodes: options.NodesOption = "1:4",
    node: options.NodeKindsOption = ["cores=1,slots=2,memory_mb=1024"],  # noqa: B006 - typer copies it
    mode: options.SparkModeOption = "microbatch",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Decide and record, but change nothing.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an earlier run in the same folder.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Folder of the run's journal (default: .rheostat/APP).")
    ] = None,
    rescale: Annotated[
        str,
        typer.Option(
            "--rescale",
            metavar="auto|advise|never",
            help="Rewrite a script's state that has too many partitions (restarts it), or only advise it.",
        ),
    ] = "advise",
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", help="Spark's checkpoint folder (default: in --folder).")
    ] = None,
    trigger: Annotated[float | None, typer.Option("--trigger", help="Seconds between batches.")] = None,
    period: Annotated[
        float, typer.Option("--period", help="Seconds between decisions.")
    ] = DEFAULT_PERIOD_SECONDS,
    cooldown: options.CooldownOption = DEFAULT_COOLDOWN_SECONDS,
    changes: Annotated[
        int, typer.Option("--changes-per-hour", help="Maximum changes in an hour (0: no limit).")
    ] = DEFAULT_CHANGES_PER_HOUR,
    kafka: options.KafkaOption = None,
    conf: options.ConfOption = None,
    conf_file: options.ConfFileOption = None,
    seconds: options.SecondsOption = None,
    seed: options.SeedOption = 0,
) -> None:
    """Run a streaming application and scale it with its load. Ends with it, or on Ctrl-C."""
    from rheostat.apps.shipped import find_script
    from rheostat.cli import live_run, signals, spark_settings, values
    from rheostat.control.guards import Guards
    from rheostat.control.rescaling import Rescale
    from rheostat.engines.spark.modes import check_mode
    from rheostat.policies.registry import build
    from rheostat.run.folder import JOURNAL
    from rheostat.run.order import RESCALE_ABOVE, Order, with_period

    name = Path(app).stem
    order = Order(
        name=name,
        script=find_script(app),
        policy=with_period(build(policy), values.positive("--period", period, least=0.5)),
        policy_text=policy,
        folder=folder or Path(".rheostat") / name,
        arguments=tuple(arguments or ()),
        mode=mode,
        master=_master(master),
        kinds=values.node_kinds(node),
        bounds=values.bounds(nodes),
        guards=Guards(
            cooldown_seconds=values.positive("--cooldown", cooldown, least=0.0),
            changes_per_hour=max(0, changes),
            rescale_above=RESCALE_ABOVE,
        ),
        rescale=values.choice("--rescale", rescale, Rescale),
        checkpoint=checkpoint,
        trigger_seconds=None if trigger is None else values.positive("--trigger", trigger),
        kafka=kafka,
        dry_run=dry_run,
        resume=resume,
        seed=seed,
        settings=spark_settings.read(conf, conf_file),
    )
    check_mode(mode, order.trigger_seconds, order.settings)
    until = float("inf") if seconds is None else values.positive("--seconds", seconds)
    with signals.interruptible() as ending, live_run.show_run(order, seconds) as live:
        for turn in live.running.turns(live.running.clock.now() + until):
            live.show(turn)
    if (journal := order.folder / JOURNAL).exists():
        console.out.print(f"journal: {journal}; try: rheostat status, rheostat explain", soft_wrap=True)
    raise typer.Exit(ending.code)


def _master(url: str | None) -> str | None:
    if url is not None and not url.startswith("spark://"):
        raise UserError(
            f"--master must be spark://HOST:PORT, not {url!r}; leave it out for a cluster on this machine"
        )
    return url
