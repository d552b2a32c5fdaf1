"""The output of `rheostat demo`."""

from rheostat.cli import console, measures_page
from rheostat.control.turn import Turn
from rheostat.run.demo import summarise
from rheostat.run.folder import JOURNAL
from rheostat.run.order import Order
from rheostat.run.samples import Sample, series


def show(order: Order, samples: list[Sample], turns: list[Turn]) -> None:
    """Print and draw the summary of a run."""
    if len(samples) < 2:
        console.out.print("nothing was measured yet")
        return
    run = series(samples)
    summary = summarise(run, turns)
    table = console.table("Summary", "", "", text=2)
    table.show_header = False
    table.add_row("rows", f"{summary.rows:,.0f} in {summary.seconds:.0f} s")
    table.add_row(
        "node-seconds",
        f"{summary.node_seconds:,.0f}, against {summary.peak_node_seconds:,.0f} with the peak's "
        f"{summary.peak_nodes} nodes all the time: {summary.saved:.0%} saved",
    )
    table.add_row("lag", f"mean {summary.mean_lag_seconds:.1f} s, p99 {summary.p99_lag_seconds:.1f} s")
    failed = f", {summary.failed} failed and rolled back" if summary.failed else ""
    table.add_row("changes", f"{summary.changes}{failed}")
    console.out.print()
    console.out.print(table)
    title = f"demo: {order.policy_text}, {order.mode}"
    plots = measures_page.draw(title, {order.policy_text: run}, order.folder, "demo")
    journal = order.folder / JOURNAL
    console.out.print(f"\nplot: {plots[0]}; journal: {journal}", soft_wrap=True)
    console.out.print(f"try: rheostat explain --journal {journal}", soft_wrap=True)
    console.out.print(f"     rheostat status --journal {journal}", soft_wrap=True)
    console.out.print(
        "     rheostat demo --mode realtime; rheostat run YOUR_APP.py --nodes 1:4", soft_wrap=True
    )
