"""`rheostat bench`: P0's benchmark procedure, first of the platform, then of an application on it."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import console, options
from rheostat.model.errors import UserError

MOST_CORES = 6  # with four partitions per slot these are all the tasks that the application's sink may have

bench = typer.Typer(help="Measure what nodes can serve and what an application needs (P0).")


def register(app: typer.Typer) -> None:
    """Add the `bench` commands."""
    app.add_typer(bench, name="bench")


@bench.callback(invoke_without_command=True, epilog="Example: rheostat bench platform")
def _bench(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@bench.command("platform", epilog="Example: rheostat bench platform --seconds 60")
def _bench_platform(
    cores: Annotated[
        float | None,
        typer.Option("--cores", help=f"Of the node, at most {MOST_CORES}; else as many as this machine has."),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="Of load per arrangement.")] = 30.0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the file and the plot.")] = Path(
        "platform"
    ),
) -> None:
    """Say what containers on a node are worth. Floods one node, arranged in several ways."""
    from rheostat.bench import platform
    from rheostat.cli import bench_page, signals, values
    from rheostat.model.documents import write_document
    from rheostat.model.files import make_folder

    own = float(min(MOST_CORES, os.cpu_count() or 1))
    given = values.positive("--cores", own if cores is None else cores, least=0.05)
    if given > MOST_CORES:
        raise UserError(
            f"--cores must be at most {MOST_CORES}: `{platform.APP}` does not keep more of them busy"
        )
    values.positive("--seconds", seconds, least=10.0)
    make_folder(out)
    asked = platform.questions(max(1, round(given)))
    setups = list(dict.fromkeys(setup for question in asked for setup in question.setups))
    capacity: dict[platform.Setup, float] = {}
    with signals.interruptible() as ending, console.progress() as start:
        for setup in setups:
            capacity[setup] = platform.capacity_of(
                setup, given, seconds, start(f"executors-slots-tasks {setup.text}")
            )
    if len(capacity) < len(setups):
        raise typer.Exit(ending.code)
    document = platform.conclude(asked, capacity, given)
    write_document(out / "platform.yaml", document)
    bench_page.show_platform(asked, capacity)
    plot = bench_page.draw_platform(asked, capacity, out)
    console.out.print(f"\ncontainers: {document.containers}; best node: {document.node}")
    console.out.print(f"file: {out / 'platform.yaml'}, plot: {plot}", soft_wrap=True)
    console.out.print(f"try: rheostat bench app APP ... --platform {out / 'platform.yaml'}", soft_wrap=True)


@bench.command(
    "app",
    epilog="Example: rheostat bench app linear --from 20 --to 120 --step 20, "
    "then: rheostat run linear --policy 'multilevel(map=linear.map.yaml)'",
)
def _bench_app(
    app: Annotated[str, typer.Argument(metavar="APP", help="One of `rheostat apps`, or a script like them.")],
    first: Annotated[float, typer.Option("--from", help="Rows/s of the first level.")],
    last: Annotated[float, typer.Option("--to", help="Rows/s of the last level.")],
    step: Annotated[float, typer.Option("--step", help="Rows/s from a level to the next.")],
    hold: Annotated[float, typer.Option("--hold", help="Seconds that each level is held.")] = 60.0,
    nodes: options.NodesOption = "1:4",
    node: options.NodeOption = "cores=0.4,slots=2,memory_mb=1024",
    mode: options.SparkModeOption = "microbatch",
    trigger: options.TriggerOption = None,
    period: Annotated[float, typer.Option("--period", help="Seconds between looks.")] = 10.0,
    platform: Annotated[
        Path | None, typer.Option("--platform", help="What `rheostat bench platform` wrote.")
    ] = None,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, max=64, help="Tasks that read the load.")
    ] = 4,
    min_health: Annotated[
        float, typer.Option("--min-health", min=0.01, max=1.0, help="Below, an operator is congested.")
    ] = 0.9,
    kafka: options.KafkaOption = None,
    conf: options.ConfOption = None,
    conf_file: options.ConfFileOption = None,
    seed: options.SeedOption = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The map; else APP.map.yaml.")] = None,
) -> None:
    """Say which load needs which configuration. Raises the load level by level and scales out what is
    congested.

    A map that was begun is continued: give the same options again.
    """
    from rheostat.analyze.levels import load_containers
    from rheostat.apps.shipped import find_script
    from rheostat.bench import application_map
    from rheostat.cli import bench_page, live_run, settings, signals, values
    from rheostat.control.turn import Turn
    from rheostat.model.secrets import without_secrets
    from rheostat.policies.discovery import Discovery
    from rheostat.run.composition import Running
    from rheostat.run.order import Order, check_script, choose_trigger

    given = settings.read(conf, conf_file)
    trigger_seconds = choose_trigger(
        mode, None if trigger is None else values.positive("--trigger", trigger), given
    )
    loads = application_map.levels(first, last, step)
    every = values.positive("--period", period, least=0.5)
    least_hold = (application_map.LOOKS + 1) * every  # none of them at a level's very end
    held = values.positive("--hold", hold, least=least_hold)
    if kafka is not None:
        from rheostat.services.kafka_topics import must_answer

        must_answer(kafka)
    containers = load_containers(platform) if platform else "slot+node"
    name, script = Path(app).stem, find_script(app)
    check_script(script)
    order = Order(
        name=name,
        script=script,
        policy=Discovery(period_seconds=every, minHealth=min_health, nodes_only=containers == "node"),
        policy_text="discovery",
        folder=Path(),
        arguments=("--partitions", str(partitions), "--seed", str(seed)),
        mode=mode,
        kinds=(values.node_kind(node),),
        bounds=values.bounds(nodes),
        trigger_seconds=trigger_seconds,
        kafka=kafka,
        seed=seed,
        settings=given,
    )
    made = {
        "node": node,
        "mode": mode,
        "trigger": f"{trigger_seconds:g}",
        "partitions": str(partitions),
        "containers": containers,
        "health": f"{min_health:g}",
        **without_secrets(given),
    }
    found = application_map.DiscoveredMap.open(out or Path(f"{name}.map.yaml"), name, made)
    loads = [load for load in loads if load > found.offered * (1 + 1e-9)]

    @contextmanager
    def watch(order: Order, ends_after: float) -> Iterator[tuple[Running, Callable[[Turn], None]]]:
        with live_run.show_run(order, ends_after) as live:
            yield live.running, live.show

    try:
        with signals.interruptible() as ending:
            if loads:
                application_map.climb(found, loads, held, order, watch, bench_page.show_level)
    finally:
        bench_page.show_map(found)
    raise typer.Exit(ending.code)
