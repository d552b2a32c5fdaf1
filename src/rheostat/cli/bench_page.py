"""The output of `rheostat bench`: answers about the platform, and an application's map."""

from collections.abc import Sequence
from pathlib import Path

from rheostat.analyze.levels import LevelDocument
from rheostat.bench.application_map import DiscoveredMap
from rheostat.bench.platform import Question, Setup
from rheostat.cli import console, figures
from rheostat.model.files import replacing


def show_level(load: float, level: LevelDocument) -> None:
    """Print the configuration that served a level."""
    counts = ", ".join(f"{name} {count}" for name, count in level.parallelism.items())
    console.out.print(f"{load:,.0f} rows/s: {console.count(level.nodes, 'node')}, {counts}", soft_wrap=True)


def show_map(discovered: DiscoveredMap) -> None:
    """Print a map and how to use it."""
    if not discovered.levels:
        console.out.print("no level was served, so no map was written")
        return
    names = list(discovered.levels[-1].parallelism)
    table = console.table(discovered.application, "rows/s up to", "nodes", *names, text=0)
    for level in discovered.levels:
        table.add_row(f"{level.load:,.0f}", str(level.nodes), *(str(level.parallelism[n]) for n in names))
    console.out.print(table)
    console.out.print(f"\nmap: {discovered.path}", soft_wrap=True)
    policy = f"multilevel(map={discovered.path})"
    console.out.print(f"try: rheostat run {discovered.application} --policy '{policy}'", soft_wrap=True)


def show_platform(questions: Sequence[Question], capacity: dict[Setup, float]) -> None:
    """Print a table and an answer per question."""
    for question in questions:
        table = console.table(
            f"{question.container[0].upper()}{question.container[1:]}",
            "",
            "executors-slots-tasks",
            "rows/s",
            text=2,
        )
        for setup in question.setups:
            table.add_row(str(question.number(setup)), setup.text, f"{capacity[setup]:,.0f}")
        console.out.print(table)
        console.out.print(f"{question.answer(capacity)}\n", soft_wrap=True)


def draw_platform(questions: Sequence[Question], capacity: dict[Setup, float], out: Path) -> Path:
    """Draw a bar per setup."""
    plt = figures.pyplot()
    figure, axes = plt.subplots(1, len(questions), figsize=(11, 3.6), sharey=True)
    for axis, question in zip(axes, questions, strict=True):
        labels = [f"{question.number(setup)}\n({setup.text})" for setup in question.setups]
        axis.bar(labels, [capacity[setup] for setup in question.setups], color="tab:blue", width=0.6)
        axis.set_xlabel(question.container)
        axis.grid(axis="y", alpha=0.25)
    axes[0].set_ylabel("rows/s served")
    figure.suptitle("Capacity of one node by its containers (executors-slots-tasks)", x=0.01, ha="left")
    figure.tight_layout()
    try:
        with replacing(out / "platform.png") as fresh:
            figure.savefig(fresh, dpi=110)
    finally:
        plt.close(figure)
    return out / "platform.png"
