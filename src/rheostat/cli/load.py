"""`rheostat load`: see, list and write load curves, and send them to Kafka."""

import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rheostat.cli import console
from rheostat.cli.chart import FloatArray, chart, span, time_ticks
from rheostat.cli.kafka import SERVERS, Servers, must_answer
from rheostat.infrastructure import kafka
from rheostat.infrastructure.producer import LEAST_SIZE, Rows, Schedule, Sender, Sent
from rheostat.model.errors import FileError, UserError
from rheostat.workloads import Curve, parse_curve, sample
from rheostat.workloads.catalogue import FAMILIES, Key
from rheostat.workloads.traces import write_trace

MAX_SAMPLES = 700_000  # a week of seconds
MAX_POINTS = 1000
MAX_SCALE = 100_000

load = typer.Typer(help="Load curves: rows/s offered at the sources over time.")

Spec = Annotated[
    str,
    typer.Argument(metavar="CURVE", help="name[:key=value]*, see `rheostat load list`.", show_default=False),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the noise, as in `simulate`.")]


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
    out: Annotated[Path | None, typer.Option(help="Also draw it to FILE.png or FILE.svg.")] = None,
    width: Annotated[int | None, typer.Option(min=40, max=400, help="Columns; the terminal's.")] = None,
    height: Annotated[int, typer.Option(min=5, max=100, help="Rows of the plot.")] = 14,
    as_json: Annotated[bool, typer.Option("--json", help="Times, rates and a summary for programs.")] = False,
    seed: Seed = 0,
) -> None:
    """Plot a load curve."""
    if out is not None and out.suffix.lower() not in {".png", ".svg"}:
        raise UserError(f"{out}: can only draw .png and .svg; name the file so")
    parsed = parse_curve(curve)
    times, rates = _sampled(parsed, seed)
    summary = _summary(parsed, rates)
    if out is not None:
        _figure(curve, times, rates, out)
    if as_json:
        console.print_json({"curve": curve, "seed": seed, "summary": summary, **_thinned(times, rates)})
        return
    columns = width or min(shutil.get_terminal_size().columns, 120)
    _say(curve)
    _say(chart([(parsed.name, rates)], times, columns, height, "rows/s"))
    low, mean, peak = (console.number(summary[key]) for key in ("min", "mean", "peak"))
    print(f"min {low}   mean {mean}   peak {peak} rows/s   duration {span(parsed.duration_seconds)}")
    if out is not None:
        print(f"drawn to {out}")


@load.command("list", epilog="Example: rheostat load list --json")
def list_curves(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """List the curves, their parameters, defaults and papers."""
    if as_json:
        console.print_json([_described(name) for name in FAMILIES])
        return
    for name, family in FAMILIES.items():
        paper = f"  ({family.source})" if family.source else ""
        own = [*family.keys, *(key for key in family.common() if key.name == "compress" and key.default != 1)]
        print(f"{name:<12} {family.summary}{paper}")
        print(" " * 13 + "  ".join(_default(key) for key in own))
    print("\nEvery curve  " + "  ".join(_default(key) for key in FAMILIES["constant"].common()))
    print(" " * 13 + "times are written 600, 90s, 10m, 2h or 1d")
    print(" " * 13 + "compress=60 plays an hour in a minute; noise=poisson or negbin")


@load.command(epilog="Example: rheostat load write bursty:seed=7 --out bursty.csv --step 5")
def write(
    curve: Spec,
    out: Annotated[Path, typer.Option(help="The CSV file; load it with trace:FILE.csv.", show_default=False)],
    step: Annotated[float, typer.Option(help="Seconds between rows.")] = 1.0,
    seed: Seed = 0,
) -> None:
    """Write a curve as a trace file."""
    rows = write_trace(parse_curve(curve), out, step, seed)
    print(f"{rows:,} rows written to {out}; use them as trace:{out}")


@load.command(epilog="Example: rheostat load run sine:high=50000 --kafka events --partitions 4 --seconds 60")
def run(
    curve: Spec,
    *,
    topic: Annotated[str, typer.Option("--kafka", metavar="TOPIC", help="The topic.", show_default=False)],
    servers: Servers = SERVERS,
    keys: Annotated[int, typer.Option(min=1, max=10_000_000, help="How many keys the rows have.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the noise and of the rows' keys.")] = 0,
    partitions: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Of the topic, if it is new.", show_default="4")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="End after so long; else with the curve.")] = None,
    time_scale: Annotated[float, typer.Option(help="Play the curve so many times as fast.")] = 1.0,
    size: Annotated[
        int | None, typer.Option(min=LEAST_SIZE, max=900_000, help="Pad the rows to so many bytes.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was sent, for programs.")] = False,
) -> None:
    """Send keyed rows to a Kafka topic at a curve's rate; Ctrl-C ends it."""
    if not 0 < time_scale <= MAX_SCALE:
        raise UserError(f"--time-scale must be greater than 0 and at most {MAX_SCALE:,}")
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UserError("--seconds must be greater than 0")
    schedule = Schedule(parse_curve(curve), seed, time_scale)
    must_answer(servers)
    if partitions is not None or topic not in kafka.topics(servers):
        kafka.create_topic(servers, topic, partitions or 4)
    sender = Sender(servers, topic, schedule, Rows(keys, seed, size))
    with _until_interrupted() as stopped, console.progress() as start:
        sent = sender.run(seconds, stopped, start(f"{topic} at {servers}"))
    _report(sent, topic, as_json)
    if sent.failed:
        raise typer.Exit(1)


@contextmanager
def _until_interrupted() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C or SIGTERM only asks to stop, so that what was sent can be told; another one ends."""
    heard: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)

    def hear(number: int, _: object) -> None:
        heard.append(number)
        signal.signal(number, signal.default_int_handler)

    before = [signal.signal(number, hear) for number in numbers]
    try:
        yield lambda: bool(heard)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    if heard:
        console.fail("interrupted: what was due until now is sent")


def _report(sent: Sent, topic: str, as_json: bool) -> None:
    if as_json:
        console.print_json(
            {
                "topic": topic,
                "rows": sent.rows,
                "wanted": sent.wanted,
                "failed": sent.failed,
                "seconds": sent.seconds,
                "rows_per_second": sent.rows_per_second,
                "behind_rows": sent.behind_rows,
                "behind_at_seconds": sent.behind_at_seconds,
            }
        )
        return
    rate, took = console.number(sent.rows_per_second), console.number(sent.seconds)
    print(f"{topic}: {sent.rows:,} rows sent in {took} s, {rate} rows/s")
    print(
        f"the curve wanted {sent.wanted:,} rows; at worst, {sent.behind_at_seconds:.1f} s after the start, "
        f"{sent.behind_rows:,} were late"
    )
    if sent.failed:
        console.fail(f"{console.count(sent.failed, 'row')} did not reach the broker: {sent.reason}")


def _sampled(curve: Curve, seed: int) -> tuple[FloatArray, FloatArray]:
    """Sample every second, less often for months, more often for a few seconds; up to the very end."""
    length = curve.duration_seconds
    step = max(1.0, length / MAX_SAMPLES) if length >= 60 else length / 240
    rates = sample(curve, step, seed)
    times: FloatArray = np.arange(rates.size + 1, dtype=np.float64) * step
    times[-1] = length
    return times, np.append(rates, rates[-1])


def _summary(curve: Curve, rates: FloatArray) -> dict[str, float]:
    return {
        "min": float(rates.min()),
        "mean": float(rates[:-1].mean()),
        "peak": float(rates.max()),
        "duration_seconds": curve.duration_seconds,
    }


def _say(text: str) -> None:
    """Print what an old terminal may not be able to show; it gets question marks instead of a traceback."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding))


def _thinned(times: FloatArray, rates: FloatArray) -> dict[str, Any]:
    kept = np.unique(np.linspace(0, times.size - 1, min(times.size, MAX_POINTS)).round().astype(np.int64))
    return {"times": times[kept].tolist(), "rates": rates[kept].tolist()}


def _default(key: Key) -> str:
    if isinstance(key.default, float):
        return f"{key.name}={span(key.default) if key.kind == 'time' else f'{key.default:g}'}"
    return f"{key.name}={key.default if key.default is not None else f'({key.unset})'}"


def _described(name: str) -> dict[str, Any]:
    family = FAMILIES[name]
    keys = {key.name: key.default for key in (*family.keys, *family.common())}
    return {"name": name, "summary": family.summary, "paper": family.source or None, "keys": keys}


def _figure(title: str, times: FloatArray, rates: FloatArray, out: Path) -> None:
    from matplotlib import rc_context  # noqa: PLC0415 - half a second that only --out should cost
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import FixedLocator, FuncFormatter  # noqa: PLC0415

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.plot(times, rates, linewidth=1.2, color="#1f6f8b")
    axes.fill_between(times, rates, color="#1f6f8b", alpha=0.12, linewidth=0)
    axes.set_title(title[:100], parse_math=False)
    axes.set(ylabel="load, rows/s", xlabel="time", xlim=(0, times[-1]), ylim=(0, None))
    axes.xaxis.set_major_locator(FixedLocator(time_ticks(0.0, float(times[-1]), 12)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: span(value)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    try:
        with rc_context({"svg.hashsalt": "rheostat"}):
            figure.savefig(out, dpi=150, metadata={"Date": None} if out.suffix.lower() == ".svg" else None)
    except OSError as error:
        raise FileError(f"{out}: cannot be written: {error.strerror or error}") from None
