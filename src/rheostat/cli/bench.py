"""`rheostat bench`: P0's benchmark procedure, first of the platform, then of an application on it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import console, options

if TYPE_CHECKING:
    from rheostat.bench.platform import Setup
    from rheostat.control.turn import Turn
    from rheostat.run.composition import Running
    from rheostat.run.order import Order

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
        float | None, typer.Option("--cores", help="Cores of the node, at most 6 (default: this machine's).")
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="Seconds of load per setup.")] = 30.0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the file and the plot.")] = Path(
        "platform"
    ),
) -> None:
    """Find the best executors and slots for a node. Saturates one node in several layouts."""
    from rheostat.bench import platform
    from rheostat.cli import bench_page, signals, values
    from rheostat.model.documents import write_document
    from rheostat.model.files import make_folder

    given = platform.check_cores(None if cores is None else values.positive("--cores", cores, least=0.05))
    values.positive("--seconds", seconds, least=10.0)
    make_folder(out)
    questions = platform.questions(max(1, round(given)))
    capacity: dict[Setup, float] = {}
    with signals.interruptible() as ending, console.progress() as begin:
        capacity = platform.measure(questions, given, seconds, begin)
    if not capacity:
        raise typer.Exit(ending.code)
    document = platform.conclude(questions, capacity, given)
    write_document(out / "platform.yaml", document)
    bench_page.show_platform(questions, capacity)
    plot = bench_page.draw_platform(questions, capacity, out)
    console.out.print(f"\ncontainers: {document.containers}; best node: {document.node}")
    console.out.print(f"file: {out / 'platform.yaml'}, plot: {plot}", soft_wrap=True)
    console.out.print(f"try: rheostat bench app APP ... --platform {out / 'platform.yaml'}", soft_wrap=True)


@bench.command(
    "app",
    epilog="Example: rheostat bench app linear --from 20 --to 120 --step 20, "
    "then: rheostat run linear --policy 'multilevel(map=linear.map.yaml)'",
)
def _bench_app(
    app: Annotated[
        str,
        typer.Argument(metavar="APP", help="One of `rheostat apps`, or a script with the same arguments."),
    ],
    first: Annotated[float, typer.Option("--from", help="Rows/s of the first level.")],
    last: Annotated[float, typer.Option("--to", help="Rows/s of the last level.")],
    step: Annotated[float, typer.Option("--step", help="Rows/s between levels.")],
    hold: Annotated[float, typer.Option("--hold", help="Seconds to hold each level.")] = 60.0,
    nodes: options.NodesOption = "1:4",
    node: options.NodeOption = "cores=0.4,slots=2,memory_mb=1024",
    mode: options.SparkModeOption = "microbatch",
    trigger: options.TriggerOption = None,
    period: Annotated[float, typer.Option("--period", help="Seconds between decisions.")] = 10.0,
    platform: Annotated[
        Path | None, typer.Option("--platform", help="The file written by `rheostat bench platform`.")
    ] = None,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, max=64, help="Number of tasks that read the load.")
    ] = 4,
    min_health: Annotated[
        float,
        typer.Option("--min-health", min=0.01, max=1.0, help="Health below which an operator is congested."),
    ] = 0.9,
    kafka: options.KafkaOption = None,
    conf: options.ConfOption = None,
    conf_file: options.ConfFileOption = None,
    seed: options.SeedOption = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the map (default: APP.map.yaml).")
    ] = None,
) -> None:
    """Map each load to the configuration it needs. Raises the load level by level and scales out
    congested operators.

    Give the same options again to continue a map that was interrupted.
    """
    from rheostat.bench.application_map import climb
    from rheostat.bench.map_request import MapRequest, plan_map
    from rheostat.cli import bench_page, signals, spark_settings, values

    request = MapRequest(
        app=app,
        first=first,
        last=last,
        step=step,
        hold_seconds=hold,
        period_seconds=values.positive("--period", period, least=0.5),
        mode=mode,
        trigger_seconds=None if trigger is None else values.positive("--trigger", trigger),
        node_text=node,
        node=values.node_kind(node),
        nodes=values.bounds(nodes),
        partitions=partitions,
        min_health=min_health,
        platform=platform,
        kafka=kafka,
        seed=seed,
        settings=spark_settings.read(conf, conf_file),
    )
    plan = plan_map(request, out)
    try:
        with signals.interruptible() as ending:
            climb(plan, _watch, bench_page.show_level)
    finally:
        bench_page.show_map(plan.discovered)
    raise typer.Exit(ending.code)


@contextmanager
def _watch(order: "Order", seconds: float) -> "Iterator[tuple[Running, Callable[[Turn], None]]]":
    from rheostat.cli import live_run

    with live_run.show_run(order, seconds) as live:
        yield live.running, live.show
