"""A load curve as points and as a figure."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from rheostat.cli import figures
from rheostat.cli.chart import FloatArray, span, time_ticks
from rheostat.model.files import replacing
from rheostat.workloads import Curve, sample

MAX_SAMPLES = 700_000  # a week of seconds
MAX_POINTS = 1000


def sampled(curve: Curve, seed: int) -> tuple[FloatArray, FloatArray]:
    """Sample a curve once a second; very long curves less often, very short ones more often."""
    length = curve.duration_seconds
    step = max(1.0, length / MAX_SAMPLES) if length >= 60 else length / 240
    rates = sample(curve, step, seed)
    times: FloatArray = np.arange(rates.size + 1, dtype=np.float64) * step
    times[-1] = length
    return times, np.append(rates, rates[-1])


def summary(curve: Curve, rates: FloatArray) -> dict[str, float]:
    """Return the minimum, mean and peak rate, and the duration."""
    return {
        "min": float(rates.min()),
        "mean": float(rates[:-1].mean()),
        "peak": float(rates.max()),
        "duration_seconds": curve.duration_seconds,
    }


def say(text: str) -> None:
    """Print text; an old terminal gets question marks for what it cannot show."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding))


def thinned(times: FloatArray, rates: FloatArray) -> dict[str, Any]:
    """Return at most MAX_POINTS points."""
    kept = np.unique(np.linspace(0, times.size - 1, min(times.size, MAX_POINTS)).round().astype(np.int64))
    return {"times": times[kept].tolist(), "rates": rates[kept].tolist()}


def draw(title: str, times: FloatArray, rates: FloatArray, out: Path) -> None:
    """Draw a curve to a file."""
    rc_context = figures.matplotlib().rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter

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
    metadata = {"Date": None} if out.suffix.lower() == ".svg" else None
    with replacing(out) as fresh, rc_context({"svg.hashsalt": "rheostat"}):
        figure.savefig(fresh, dpi=150, metadata=metadata)
