"""How `rheostat tune` shows what it learned."""

from dataclasses import asdict

from rheostat.bench.tuning import PAPER, TABLE_1, Tuned
from rheostat.cli import console


def show(title: str, tuned: list[Tuned], as_json: bool) -> None:
    """Show each threshold's values with their rewards, beside the paper's Table 1, and the policy to use."""
    spec = f"elysium({','.join(f'{each.name}={each.best:g}' for each in tuned)})"
    if as_json:
        console.print_json({"policy": spec, "thresholds": [asdict(each) for each in tuned]})
        return
    console.out.print(title)
    for each in tuned:
        _table(each)
    console.out.print(f"learned: {spec}")
    console.out.print(f"the paper: elysium({','.join(f'{name}={value:g}' for name, value in PAPER.items())})")


def _table(tuned: Tuned) -> None:
    printed = TABLE_1 if tuned.name == "cpu_max_thr" else {}
    paper = ("reward in P2's Table 1",) if printed else ()
    columns = (tuned.name, *paper, "reward", "degraded", "nodes saved", "episodes")
    table = console.table(tuned.name, *columns)
    for tried in tuned.tried:
        best = " *" if tried.value == tuned.best else ""
        cells = [f"{printed[tried.value]:.2f}"] if printed else []
        saved = "-" if tried.nodes_saved is None else f"{tried.nodes_saved:.0%}"
        numbers = ("-" if v is None else f"{v:.2f}" for v in (tried.reward, tried.degradation))
        table.add_row(f"{tried.value:.2f}{best}", *cells, *numbers, saved, f"{tried.episodes:,}")
    console.out.print(table)
