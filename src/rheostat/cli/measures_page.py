"""Runs as a table and as a figure."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from rheostat.analyze.judging import Measures, Series
from rheostat.cli import console, figures
from rheostat.model.files import replacing

if TYPE_CHECKING:
    from rheostat.engines.simulator.comparison import Run

POINTS = 1500  # drawn per line


def measures_table(title: str, runs: "dict[str, Run]") -> Table:
    """Return a table with one row per policy."""
    priced = any(run.measures.money is not None for run in runs.values())
    columns = ["degraded", "lag", "p99 lag", "saved", *["money"] * priced, "x oracle", "changes"]
    table = console.table(title, "policy", *columns, "settling", "overshoot")
    for name, run in runs.items():
        m = run.measures
        table.add_row(
            name,
            f"{m.throughput_degradation:.3f}",
            _seconds(m.mean_lag_seconds),
            _seconds(m.p99_lag_seconds),
            console.number(m.nodes_saved, "%"),
            *["-" if m.money is None else f"{m.money:,.2f}"] * priced,
            f"{m.node_seconds_to_oracle:.2f}",
            str(m.reconfigurations),
            _seconds(m.settling_seconds),
            console.number(m.overshoot, "%"),
        )
    return table


def measures_json(measures: Measures) -> dict[str, Any]:
    """Return the measures by their full names."""
    return asdict(measures)


def draw(title: str, runs: Mapping[str, Series], folder: Path, name: str) -> list[Path]:
    """Draw load, throughput, lag, instances and nodes over time, as PNG and SVG."""
    mpl, plt = figures.matplotlib(), figures.pyplot()
    figure, axes = plt.subplots(4, 1, figsize=(11, 11), sharex=True, height_ratios=[1.4, 1, 1, 1])
    colours = mpl.color_sequences["tab10"]
    for number, (policy, series) in enumerate(runs.items()):
        hours = np.arange(1, len(series.nodes) + 1) * series.step_seconds
        unit, divisor = ("hours", 3600.0) if hours[-1] > 3 * 3600 else ("minutes", 60.0)
        x = _thin(np.asarray(hours / divisor, dtype=np.float64))
        if number == 0:
            axes[0].fill_between(x, _thin(series.load), color="0.88", label="load", linewidth=0)
            axes[3].set_xlabel(unit)
        style: dict[str, Any] = {
            "color": colours[number % 10],
            "linewidth": 1.2,
            "linestyle": "-" if number < 10 else "--",
            "alpha": 0.9,
        }
        axes[0].plot(x, _thin(series.throughput), label=_plain(policy), **style)
        axes[1].plot(x, _thin(series.lag, np.max), **style)
        axes[2].plot(x, _thin(series.instances), drawstyle="steps-post", **style)
        axes[3].plot(x, _thin(series.nodes), drawstyle="steps-post", **style)
    for axis, label in zip(axes, ("rows/s", "lag (s)", "instances", "nodes"), strict=True):
        axis.set_ylabel(label)
        axis.grid(alpha=0.25)
        axis.set_ylim(bottom=0)
        axis.margins(x=0)
    if max(float(series.lag.max()) for series in runs.values()) > 120:
        axes[1].set_yscale("symlog", linthresh=10)
    figure.suptitle(_plain(title), x=0.01, y=0.993, ha="left")
    handles, labels = axes[0].get_legend_handles_labels()
    columns = max(1, min(10, 150 // (max(map(len, labels)) + 8)))
    rows = -(-len(labels) // columns)
    figure.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.975),
        ncols=columns,
        fontsize=8,
        frameon=False,
    )
    figure.tight_layout(rect=(0, 0, 1, 0.985 - 0.016 * rows))
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    try:
        for path in paths:
            with replacing(path) as fresh:
                figure.savefig(fresh, dpi=110)
    finally:
        plt.close(figure)
    return paths


def _plain(text: str) -> str:
    """Shorten a text, and escape what matplotlib would take for a formula."""
    return (text if len(text) <= 100 else text[:97] + "...").replace("$", r"\$")


def _thin(values: NDArray[np.float64], how: Any = np.mean) -> NDArray[np.float64]:
    """Reduce to about POINTS values, each the mean (or maximum) of its stretch."""
    size = max(1, len(values) // POINTS)
    whole = len(values) // size * size
    return np.asarray(how(values[:whole].reshape(-1, size), axis=1))


def _seconds(value: float | None) -> str:
    """Format a duration for people.

    >>> _seconds(0.4), _seconds(75), _seconds(7300), _seconds(None)
    ('0.4 s', '75 s', '2.0 h', '-')
    """
    if value is None:
        return "-"
    if value >= 3600:
        return f"{value / 3600:.1f} h"
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"
