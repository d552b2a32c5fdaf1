"""`rheostat forecast`: judge forecasts on a load before a policy relies on them."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import console, options
from rheostat.model.errors import UserError

forecast = typer.Typer(help="Forecasts of the load, judged before a policy follows them.")

Loads = Annotated[
    list[str],
    typer.Argument(
        metavar="TRACE", help="CSV files, or load curves; see `rheostat load list`.", show_default=False
    ),
]


def register(app: typer.Typer) -> None:
    """Add the `forecast` commands."""
    app.add_typer(forecast, name="forecast")


@forecast.callback(invoke_without_command=True, epilog="Example: rheostat forecast backtest load.csv")
def _forecast(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@forecast.command(epilog="Example: rheostat forecast backtest sine:duration=12h:period=15m load.csv")
def backtest(
    loads: Loads,
    *,
    methods: Annotated[
        str | None, typer.Option("--methods", help="Comma-separated forecasts (default: all).")
    ] = None,
    train: Annotated[float, typer.Option(help="Part of each load, from its start, to train on.")] = 0.7,
    step: Annotated[
        float | None, typer.Option(help="Seconds per step (default: 60, or those of a coarser trace).")
    ] = None,
    seed: options.SeedOption = 0,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the plots and the trained networks.")
    ] = Path("forecast"),
    as_json: options.JsonOption = False,
) -> None:
    """Judge forecasts by error, band and cost of following."""
    from rheostat.cli import forecast_chart, forecast_page
    from rheostat.engines.simulator import forecast_backtest
    from rheostat.model.files import make_folder
    from rheostat.workloads import parse_curve

    if not 0 < train < 1:
        raise UserError(f"--train must be between 0 and 1, not {train:g}")
    if step is not None and not 1 <= step <= 86_400:
        raise UserError(f"--step must be from 1 to 86400 seconds, not {step:g}")
    forecasters = forecast_backtest.read_methods(methods or ",".join(forecast_backtest.METHODS))
    curves = {text: parse_curve(forecast_page.as_curve(text)) for text in loads}
    parts = {text: forecast_backtest.load_of(curve, step, train, seed) for text, curve in curves.items()}
    make_folder(out)
    results: dict[str, forecast_backtest.Backtest] = {}
    files: dict[str, list[Path]] = {}
    for text, load in parts.items():
        with console.progress() as begin:
            result = forecast_backtest.backtest(load, forecasters, curves[text].day_seconds, begin)
        results[text] = result
        name = forecast_page.file_name(text, list(files))
        files[name] = forecast_chart.write(text, result, out, name)
        if not as_json:
            forecast_page.show(text, result, files[name])
    if as_json:
        console.print_json(forecast_page.as_json(results, files))
        return
    print(forecast_page.NOTES)
