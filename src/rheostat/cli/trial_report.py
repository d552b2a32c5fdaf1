"""What a trial shows: measures with their spread, and the bounds that a policy has to keep."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from rheostat.analyze.execution import ceil
from rheostat.analyze.judging import WINDOW_SECONDS, Floats, Measures, Series, judge
from rheostat.analyze.trend import fit
from rheostat.cli import console
from rheostat.cli.contest import Contest, Result

PEAK, ALLOCATION = "static-peak", "spark-dra"
FEWER_THAN_PEAK, FEWER_THAN_ALLOCATION = 0.40, 0.25  # node-seconds
LAG_TO_CONTROL, LAG_TO_ALLOCATION = 2.0, 1.5  # p99
DEGRADED = 0.15
LAG_CURVES = ("stair", "sine")  # the curves on which the lag is bound; a square leaves no time to act

# Header, how to take it from the measures, how to write it.
COLUMNS: tuple[tuple[str, Callable[[Measures], float | None], str], ...] = (
    ("degraded", lambda m: m.throughput_degradation, "{:.3f}"),
    ("lag s", lambda m: m.mean_lag_seconds, "{:.1f}"),
    ("p99 lag s", lambda m: m.p99_lag_seconds, "{:.1f}"),
    ("node-seconds", lambda m: m.node_seconds, "{:,.0f}"),
    ("saved", lambda m: m.nodes_saved, "{:.0%}"),
    ("x oracle", lambda m: m.node_seconds_to_oracle, "{:.2f}"),
    ("changes", lambda m: float(m.reconfigurations), "{:.0f}"),
    ("settling s", lambda m: m.settling_seconds, "{:.0f}"),
    ("overshoot", lambda m: m.overshoot, "{:.0%}"),
)


@dataclass(frozen=True)
class Check:
    """A bound, and what was reached: the median over the repeats."""

    policy: str
    what: str
    found: float
    bound: float
    at_least: bool
    form: str

    @property
    def kept(self) -> bool:
        return self.found >= self.bound if self.at_least else self.found <= self.bound

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """For a table."""
        word = "at least" if self.at_least else "at most"
        verdict = "ok" if self.kept else "RED"
        return (
            self.policy,
            self.what,
            self.form.format(self.found),
            f"{word} {self.form.format(self.bound)}",
            verdict,
        )


@dataclass(frozen=True)
class Report:
    """A trial, judged."""

    contest: Contest
    measures: Mapping[str, Sequence[Measures]]  # of each contestant, by repeat
    failures: Mapping[str, str]
    checks: Sequence[Check]
    series: Mapping[str, Series]  # of the first repeat

    @property
    def title(self) -> str:
        contest = self.contest
        return f"{contest.app} under {contest.curve} ({contest.mode}, seed {contest.seed})"

    def rows(self) -> list[tuple[str, ...]]:
        """The measures as text: the median, and the spread where there are repeats."""
        rows = [
            (name, *(_spread([take(m) for m in found], form) for _, take, form in COLUMNS))
            for name, found in self.measures.items()
        ]
        empty = ("",) * (len(COLUMNS) - 1)
        return rows + [(name, f"did not run: {why}", *empty) for name, why in self.failures.items()]

    def show(self) -> None:
        """Print it."""
        table = console.table(self.title, "", *(header for header, _, _ in COLUMNS))
        for row in self.rows():
            table.add_row(*row)
        console.out.print()
        console.out.print(table)
        bounds = console.table("Bounds", "policy", "what", "found", "bound", "", text=2)
        for check in self.checks:
            bounds.add_row(*check.cells)
        console.out.print()
        console.out.print(bounds)

    def markdown(self, plot: str) -> str:
        """As a document."""
        contest, nodes, node = self.contest, self.contest.nodes, self.contest.node
        repeats = max(map(len, self.measures.values()), default=0)
        lines = [
            f"# {contest.app} under `{contest.curve}`",
            "",
            f"{contest.mode}, trigger {contest.trigger_seconds:g} s, a decision every "
            f"{contest.period_seconds:g} s, {nodes.min_nodes} to {nodes.max_nodes} nodes of {node.cores:g} "
            f"cores and {node.slots} slots, seed {contest.seed}, {console.count(repeats, 'repeat')}. "
            f"The first {contest.warm_up_seconds:g} s are not judged.",
            "",
            *self.tables(),
            "",
            f"![load, throughput, lag, instances and nodes over time]({plot})",
        ]
        return "\n".join(lines) + "\n"

    def tables(self) -> list[str]:
        """The two tables in Markdown: measures, and bounds."""
        header = ["", *(name for name, _, _ in COLUMNS)]
        bounds = [
            (policy, what, found, bound, verdict if verdict == "ok" else f"**{verdict}**")
            for policy, what, found, bound, verdict in (check.cells for check in self.checks)
        ]
        return [
            *_table(header, self.rows()),
            "",
            *_table(["policy", "bound on", "found", "bound", ""], bounds),
        ]


def make(contest: Contest, tried: Sequence[str], results: Sequence[Result]) -> Report:
    """Judge every run of a trial."""
    ran = [result for result in results if not result.failure]
    names = list(dict.fromkeys(result.contestant for result in results))
    needed = _cores_needed([pair for one in ran if one.contestant == PEAK for pair in one.work])
    measures = {
        name: [_measures(contest, one, needed) for one in ran if one.contestant == name]
        for name in names
        if any(one.contestant == name for one in ran)
    }
    first = {one.contestant: one.series for one in reversed(ran)}
    return Report(
        contest,
        measures,
        {one.contestant: one.failure for one in results if one.failure},
        [check for name in tried for check in _checks(contest, name, ran)],
        {name: first[name] for name in names if name in first},
    )


def _measures(contest: Contest, result: Result, needed: Callable[[Floats], Floats]) -> Measures:
    cores, bounds = contest.node.cores, contest.nodes
    enough = np.ceil(needed(result.series.load) / cores - 1e-9)
    oracle = np.clip(enough, bounds.min_nodes, bounds.max_nodes)
    window = max(WINDOW_SECONDS, ceil(WINDOW_SECONDS / contest.trigger_seconds) * contest.trigger_seconds)
    return judge(result.series, oracle, bounds.max_nodes, result.changes, window)


def _cores_needed(work: Sequence[tuple[float, float]]) -> Callable[[Floats], Floats]:
    """Cores by load: a line through what the nodes of the reference used, for the oracle."""
    if len({load for load, _ in work}) < 2:
        return np.zeros_like
    line = fit([load for load, _ in work], [cores for _, cores in work])
    return lambda load: np.asarray(np.maximum(0.0, line.at(0.0) + line.slope * load))


def _checks(contest: Contest, name: str, results: Sequence[Result]) -> list[Check]:
    """The bounds of a policy: ratios within a repeat, and their median."""
    runs = {(one.contestant, one.number): one for one in results}
    own = [one for one in results if one.contestant == name]

    def ratio(peer: str, of: Callable[[Result], float]) -> float:
        both = [(one, runs[peer, one.number]) for one in own if (peer, one.number) in runs]
        return median(of(one) / of(other) for one, other in both) if both else math.nan

    checks = []
    if own and any(one.contestant == PEAK for one in results):
        fewer = 1 - ratio(PEAK, _node_seconds)
        checks.append(Check(name, f"fewer node-seconds than {PEAK}", fewer, FEWER_THAN_PEAK, True, "{:.0%}"))
    if own and contest.curve.partition(":")[0] in LAG_CURVES:
        control = contest.trigger_seconds + contest.period_seconds
        within = median(_p99(one) / (control + median(one.startups or [0.0])) for one in own)
        what = "p99 lag in trigger + control period + node start-up"
        checks.append(Check(name, what, within, LAG_TO_CONTROL, False, "{:.2f}"))
    if own and any(one.contestant == ALLOCATION for one in results):
        fewer = 1 - ratio(ALLOCATION, _node_seconds)
        checks.append(
            Check(name, f"fewer node-seconds than {ALLOCATION}", fewer, FEWER_THAN_ALLOCATION, True, "{:.0%}")
        )
        slower = ratio(ALLOCATION, _p99)
        checks.append(Check(name, f"p99 lag to {ALLOCATION}'s", slower, LAG_TO_ALLOCATION, False, "{:.2f}"))
    if own:
        degraded = median(_measures(contest, one, np.zeros_like).throughput_degradation for one in own)
        checks.append(Check(name, "throughput degradation", degraded, DEGRADED, False, "{:.3f}"))
    return checks


def _node_seconds(result: Result) -> float:
    return sum(result.nodes)


def _p99(result: Result) -> float:
    return float(np.percentile(result.lag, 99))


def _spread(values: Sequence[float | None], form: str) -> str:
    """The median, and from where to where.

    >>> _spread([0.3, 0.1, 0.2], "{:.1f}"), _spread([0.2], "{:.1f}"), _spread([None], "{:.1f}")
    ('0.2 (0.1-0.3)', '0.2', '-')
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return "-"
    middle, low, high = (form.format(value) for value in (median(known), min(known), max(known)))
    return middle if low == high else f"{middle} ({low}-{high})"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
