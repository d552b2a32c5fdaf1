"""A forecast's band over the load that came, as a picture; what was trained, as a file."""

from pathlib import Path
from typing import Any

import numpy as np

from rheostat.analyze.forecasts.calibrated import HIGH, LOW
from rheostat.analyze.forecasts.forecast import MEDIAN
from rheostat.analyze.forecasts.network import Network
from rheostat.analyze.forecasts.network_file import save_learned
from rheostat.analyze.forecasts.replay import Replay
from rheostat.cli import figures
from rheostat.cli.chart import span, time_ticks
from rheostat.engines.simulator.forecast_backtest import REACTIVE, Backtest
from rheostat.model.files import replacing

AHEAD = 5  # steps
CLOSE = 360  # steps shown from near
LOAD, BAND = "#444444", "#1f6f8b"


def write(title: str, result: Backtest, folder: Path, name: str) -> list[Path]:
    """Draw the cheapest forecast of a load, and save the networks that were trained on it."""
    paths = [folder / f"{name}.png"]
    forecasts = {key: judged for key, judged in result.judged.items() if judged.replay}
    best = min(forecasts, key=lambda key: forecasts[key].cost)
    replay = forecasts[best].replay
    assert replay is not None
    _draw(f"{title}: {best}, {span(AHEAD * result.load.step_seconds)} ahead", replay, result, paths[0])
    for key, judged in forecasts.items():
        trained = judged.replay.forecaster if judged.replay else None
        if isinstance(trained, Network) and trained.learned and key != REACTIVE:
            paths.append(folder / f"{name}.network.json")
            save_learned(paths[-1], trained.learned)
    return paths


def _draw(title: str, replay: Replay, result: Backtest, out: Path) -> None:
    figures.matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    whole, close = figure.subplots(2, 1)
    _lines(whole, replay, result, 0, 12)
    _lines(close, replay, result, max(0, len(replay.rates) - CLOSE), 6)
    whole.set_title(title[:110], parse_math=False, loc="left")
    close.set_title("the last of it", loc="left", fontsize=10)
    whole.legend(loc="upper left", fontsize=8, frameon=False, ncols=3)
    with replacing(out) as fresh:
        figure.savefig(fresh, dpi=110)


def _lines(axes: Any, replay: Replay, result: Backtest, first: int, ticks: int) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter

    times = (np.arange(len(replay.rates)) + result.load.training) * result.load.step_seconds
    low, middle, high = (replay.path(AHEAD, level)[first:] for level in (LOW, MEDIAN, HIGH))
    x = times[first:]
    axes.fill_between(x, low, high, color=BAND, alpha=0.3, linewidth=0, label="10 % to 90 %")
    axes.plot(x, middle, color=BAND, linewidth=0.9, label="expected")
    axes.plot(x, replay.rates[first:], color=LOAD, linewidth=0.7, label="load")
    axes.set(ylabel="rows/s", xlim=(x[0], x[-1]), ylim=(0, 1.15 * float(replay.rates[first:].max())))
    axes.xaxis.set_major_locator(FixedLocator(time_ticks(float(x[0]), float(x[-1]), ticks)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: span(value)))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
