"""The plot of a profile: the windows' points, and the curve that describes them best."""

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from rheostat.analyze.profiles.contest import Contest
from rheostat.analyze.profiles.profile import Profile
from rheostat.analyze.profiles.samples import Points, Samples
from rheostat.cli import figures
from rheostat.model.files import make_folder, replacing

COLUMNS = 3
PLOT = "profile.png"


def draw(profile: Profile, points: Points, judged: Points, folder: Path) -> Path:
    """Draw a panel for each operator, and one for the nodes; return the file."""
    make_folder(folder)
    plt = figures.pyplot()
    panels = [
        (name, profile.instances.get(name), points.instances.get(name), judged.instances.get(name))
        for name in profile.operators
    ]
    panels.append(("a node", profile.nodes, points.nodes, judged.nodes))
    rows = ceil(len(panels) / COLUMNS)
    figure, axes = plt.subplots(
        rows, COLUMNS, figsize=(4 * COLUMNS, 3.2 * rows), layout="constrained", squeeze=False
    )
    for place, (name, contest, samples, last) in zip(axes.flat, panels, strict=False):
        _panel(place, name, contest, samples, last)
    for place in axes.flat[len(panels) :]:
        place.axis("off")
    figure.suptitle(f"{profile.application} ({profile.mode})", parse_math=False)
    path = folder / PLOT
    with replacing(path) as fresh:
        figure.savefig(fresh, dpi=130)
    plt.close(figure)
    return path


def _panel(
    axes: Any, name: str, contest: Contest | None, samples: Samples | None, last: Samples | None
) -> None:
    of_node = name == "a node"
    axes.set_title(name if of_node else f"an instance of {name}"[:60], parse_math=False, fontsize=10)
    axes.set(xlabel="cores of its instances" if of_node else "rows/s into it", ylabel="cores")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    if samples is None or not len(samples):
        return
    axes.scatter(samples.x, samples.y, s=9, alpha=0.6, color="#1f6f8b", label="learned from")
    if last is not None and len(last) < len(samples):
        axes.scatter(last.x, last.y, s=9, alpha=0.8, color="#d1495b", label="held back")
    if contest is not None:
        x = np.linspace(0.0, float(samples.x.max()) * 1.05, 200)
        axes.plot(x, contest.curve.at(x), color="#333333", linewidth=1.3, label=contest.curve.name)
    axes.set(xlim=(0, None), ylim=(0, None))
    axes.legend(frameon=False, fontsize=8)
