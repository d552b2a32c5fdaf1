"""`rheostat load`: plot, list and write load curves, and send them to Kafka."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rheostat.cli import console, options
from rheostat.model.errors import UserError

if TYPE_CHECKING:
    from rheostat.workloads.catalogue import Key

load = typer.Typer(help="Load curves: rows/s offered at the sources over time.")

Spec = Annotated[
    str,
    typer.Argument(metavar="CURVE", help="name[:key=value]*; see `rheostat load list`.", show_default=False),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed of the noise, as in `simulate`.")]


def register(app: typer.Typer) -> None:
    """Add the `load` commands."""
    app.add_typer(load, name="load")


@load.callback(invoke_without_command=True, epilog="Example: rheostat load show day")
def _load(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@load.command(epilog="Example: rheostat load show sine:low=100:high=2000:period=10m:noise=poisson")
def show(
    curve: Spec,
    *,
    out: Annotated[Path | None, typer.Option(help="Also draw the curve to FILE.png or FILE.svg.")] = None,
    width: Annotated[
        int | None, typer.Option(min=40, max=400, help="Columns of the plot (default: the terminal's width).")
    ] = None,
    height: Annotated[int, typer.Option(min=5, max=100, help="Rows of the plot.")] = 14,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print times, rates and a summary as JSON.")
    ] = False,
    seed: Seed = 0,
) -> None:
    """Plot a load curve."""
    from rheostat.cli import load_chart
    from rheostat.cli.chart import chart, span
    from rheostat.workloads import parse_curve

    if out is not None and out.suffix.lower() not in {".png", ".svg"}:
        raise UserError(f"{out}: can only draw .png and .svg; choose one of these names")
    parsed = parse_curve(curve)
    times, rates = load_chart.sampled(parsed, seed)
    summary = load_chart.summary(parsed, rates)
    if out is not None:
        load_chart.draw(curve, times, rates, out)
    if as_json:
        console.print_json(
            {"curve": curve, "seed": seed, "summary": summary, **load_chart.thinned(times, rates)}
        )
        return
    columns = width or min(shutil.get_terminal_size().columns, 120)
    load_chart.say(curve)
    load_chart.say(chart([(parsed.name, rates)], times, columns, height, "rows/s"))
    low, mean, peak = (console.number(summary[key]) for key in ("min", "mean", "peak"))
    print(f"min {low}   mean {mean}   peak {peak} rows/s   duration {span(parsed.duration_seconds)}")
    if out is not None:
        print(f"plot saved to {out}")


@load.command("list", epilog="Example: rheostat load list --json")
def list_curves(
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """List the curves, their parameters, defaults and papers."""
    from rheostat.workloads.catalogue import FAMILIES

    if as_json:
        console.print_json([_described(name) for name in FAMILIES])
        return
    for name, family in FAMILIES.items():
        paper = f"  ({family.source})" if family.source else ""
        own = [*family.keys, *(key for key in family.common() if key.name == "compress" and key.default != 1)]
        print(f"{name:<12} {family.summary}{paper}")
        print(" " * 13 + "  ".join(_default(key) for key in own))
    print("\nEvery curve  " + "  ".join(_default(key) for key in FAMILIES["constant"].common()))
    print(" " * 13 + "write times as 600, 90s, 10m, 2h or 1d")
    print(" " * 13 + "compress=60 plays an hour in a minute; noise=poisson or negbin")


@load.command(epilog="Example: rheostat load write bursty:seed=7 --out bursty.csv --step 5")
def write(
    curve: Spec,
    out: Annotated[Path, typer.Option(help="The CSV file; use it as trace:FILE.csv.", show_default=False)],
    step: Annotated[float, typer.Option(help="Seconds between rows.")] = 1.0,
    seed: Seed = 0,
) -> None:
    """Write a curve as a trace file."""
    from rheostat.workloads import parse_curve
    from rheostat.workloads.traces import write_trace

    rows = write_trace(parse_curve(curve), out, step, seed)
    print(f"{rows:,} rows written to {out}; use them as trace:{out}")


@load.command(epilog="Example: rheostat load run sine:high=50000 --kafka events --partitions 4 --seconds 60")
def run(
    curve: Spec,
    *,
    topic: Annotated[
        str, typer.Option("--kafka", metavar="TOPIC", help="Topic to send to.", show_default=False)
    ],
    servers: options.ServersOption = options.SERVERS,
    keys: Annotated[int, typer.Option(min=1, max=10_000_000, help="Number of different keys.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the noise and the keys.")] = 0,
    partitions: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Partitions of a new topic.", show_default="4")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Stop after this many seconds (default: at the curve's end).")
    ] = None,
    time_scale: Annotated[float, typer.Option(help="Play the curve this many times faster.")] = 1.0,
    size: Annotated[int | None, typer.Option(max=900_000, help="Pad each row to this many bytes.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was sent as JSON.")] = False,
) -> None:
    """Send keyed rows to a Kafka topic at a curve's rate. Ctrl-C stops it."""
    from rheostat.cli import load_page, signals
    from rheostat.services.kafka_producer import Shipment, send_curve
    from rheostat.workloads import parse_curve

    shipment = Shipment(parse_curve(curve), seed, time_scale, keys, size, seconds)
    with signals.stop_requested() as stopped, console.progress() as begin:
        sent = send_curve(servers, topic, partitions, shipment, stopped, begin(f"{topic} at {servers}"))
    load_page.report(sent, topic, as_json)
    if sent.failed:
        raise typer.Exit(1)


def _default(key: "Key") -> str:
    from rheostat.cli.chart import span

    if isinstance(key.default, float):
        return f"{key.name}={span(key.default) if key.kind == 'time' else f'{key.default:g}'}"
    return f"{key.name}={key.default if key.default is not None else f'({key.unset})'}"


def _described(name: str) -> dict[str, Any]:
    from rheostat.workloads.catalogue import FAMILIES

    family = FAMILIES[name]
    keys = {key.name: key.default for key in (*family.keys, *family.common())}
    return {"name": name, "summary": family.summary, "paper": family.source or None, "keys": keys}
