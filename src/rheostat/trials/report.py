"""The report of a trial: tables of measures with their spread, and of the bounds."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from rheostat.analyze.judging import Measures, Series
from rheostat.trials.bounds import Check, check_bounds
from rheostat.trials.contestants import PEAK
from rheostat.trials.measures import cores_needed, measure, smooth, window_seconds
from rheostat.trials.trial import Result, Trial

# Header, its measure, its format.
Column = tuple[str, Callable[[Measures], float | None], str]
COLUMNS: tuple[Column, ...] = (
    ("degraded", lambda m: m.throughput_degradation, "{:.3f}"),
    ("lag s", lambda m: m.mean_lag_seconds, "{:.1f}"),
    ("p99 lag s", lambda m: m.p99_lag_seconds, "{:.1f}"),
    ("node-seconds", lambda m: m.node_seconds, "{:,.0f}"),
    ("money", lambda m: m.money, "{:,.2f}"),
    ("saved", lambda m: m.nodes_saved, "{:.0%}"),
    ("x oracle", lambda m: m.node_seconds_to_oracle, "{:.2f}"),
    ("changes", lambda m: float(m.reconfigurations), "{:.0f}"),
    ("settling s", lambda m: m.settling_seconds, "{:.0f}"),
    ("overshoot", lambda m: m.overshoot, "{:.0%}"),
)


@dataclass(frozen=True)
class Report:
    """A trial, judged."""

    trial: Trial
    measures: Mapping[str, Sequence[Measures]]  # per contestant, by repeat
    failures: Sequence[Result]
    checks: Sequence[Check]
    series: Mapping[str, Series]  # of the first repeat, to draw

    @property
    def title(self) -> str:
        trial = self.trial
        return f"{trial.app} under {trial.curve} ({trial.mode}, seed {trial.seed})"

    @property
    def columns(self) -> list[Column]:
        """The measures that there are: money only where nodes have a price."""
        priced = self.trial.node.price_per_hour > 0
        return [column for column in COLUMNS if priced or column[0] != "money"]

    def rows(self) -> list[tuple[str, ...]]:
        """Return the measures as text: the median, and the spread over repeats."""
        return [
            (name, str(len(runs)), *(_spread(list(map(take, runs)), form) for _, take, form in self.columns))
            for name, runs in self.measures.items()
        ]

    def failed(self) -> list[str]:
        """Return a line for each contestant that did not run, and why."""
        repeats: dict[tuple[str, str], list[str]] = {}
        for result in self.failures:
            repeats.setdefault((result.contestant, result.failure), []).append(str(result.number))
        lines = []
        for (name, why), numbers in repeats.items():
            some = f" in repeat {' and '.join(numbers)}" if name in self.measures else ""
            lines.append(f"{name} did not run{some}: {why}")
        return lines

    def markdown(self, plots: Sequence[str]) -> str:
        """Return the report as Markdown."""
        trial, nodes, node = self.trial, self.trial.nodes, self.trial.node
        lines = [
            f"# {trial.app} under `{trial.curve}`",
            "",
            f"{trial.mode}, trigger {trial.trigger_seconds:g} s, a decision every "
            f"{trial.period_seconds:g} s, {nodes.min_nodes} to {nodes.max_nodes} nodes of {node.cores:g} "
            f"cores and {node.slots} slots, seed {trial.seed}. The curve's first load is held for "
            f"{trial.warm_up_seconds:g} s beforehand, which are not judged.",
            "",
            *self.tables(),
            *(f"\n![load, throughput, lag, instances and nodes over time]({plot})" for plot in plots),
        ]
        return "\n".join(lines) + "\n"

    def tables(self) -> list[str]:
        """Return the tables of measures and bounds in Markdown."""
        header = ["", "runs", *(name for name, _, _ in self.columns)]
        bounds = [
            (policy, what, value, bound, f"**{verdict}**" if verdict == "RED" else verdict)
            for policy, what, value, bound, verdict in (check.cells for check in self.checks)
        ]
        return [
            *_table(header, self.rows()),
            "",
            *(f"{line}\n" for line in self.failed()),
            *_table(["policy", "bound on", "found", "bound", ""], bounds),
        ]


def make_report(trial: Trial, judged: Sequence[str], results: Sequence[Result]) -> Report:
    """Judge every run of a trial."""
    ran = [result for result in results if not result.failure]
    names = list(dict.fromkeys(result.contestant for result in results))
    needed = cores_needed([pair for result in ran if result.contestant == PEAK for pair in result.work])
    measures = {
        name: [measure(trial, result, needed) for result in ran if result.contestant == name]
        for name in names
        if any(result.contestant == name for result in ran)
    }
    first = {result.contestant: smooth(result.series, window_seconds(trial)) for result in reversed(ran)}
    return Report(
        trial,
        measures,
        [result for result in results if result.failure],
        [check for name in judged for check in check_bounds(trial, name, ran, names)],
        {name: first[name] for name in names if name in first},
    )


def _spread(values: Sequence[float | None], form: str) -> str:
    """Return the median and the range.

    >>> _spread([0.3, 0.1, 0.2], "{:.1f}"), _spread([0.2], "{:.1f}"), _spread([None], "{:.1f}")
    ('0.2 (0.1-0.3)', '0.2', '-')
    """
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if not finite:
        return "-"
    middle, low, high = (form.format(value) for value in (median(finite), min(finite), max(finite)))
    return middle if low == high else f"{middle} ({low}-{high})"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
