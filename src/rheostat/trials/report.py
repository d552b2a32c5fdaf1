"""The report of a trial: measures with their spread, and the bounds that a policy has to keep."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from rheostat.analyze.execution import ceil
from rheostat.analyze.forecasts.line import fit
from rheostat.analyze.judging import WINDOW_SECONDS, Floats, Measures, Series, judge
from rheostat.trials.trial import Result, Trial

PEAK, ALLOCATION = "static-peak", "spark-dra"
REPEATS = 3  # that a bound must be kept in
FEWER_THAN_PEAK, FEWER_THAN_ALLOCATION = 0.40, 0.25  # node-seconds
LAG_TO_CONTROL, LAG_TO_ALLOCATION = 2.0, 1.5  # p99
DEGRADED = 0.15
LAG_CURVES = ("stair", "sine")  # curves on which the lag has a bound; a square leaves no time to act

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
class Check:
    """A bound, and the value reached: the median over the repeats."""

    policy: str
    what: str
    runs: Sequence[float]  # the value of each repeat
    bound: float
    form: str
    is_minimum: bool = False

    @property
    def value(self) -> float:
        """The median; NaN without any run."""
        return median(self.runs) if self.runs else math.nan

    @property
    def kept(self) -> bool:
        return self.value >= self.bound if self.is_minimum else self.value <= self.bound

    @property
    def verdict(self) -> str:
        """Whether it is kept; one or two runs prove little."""
        few = len(self.runs) < REPEATS
        return ("ok so far" if few else "ok") if self.kept else "RED"

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """A row of a table."""
        word = "at least" if self.is_minimum else "at most"
        value = self.form.format(self.value) if math.isfinite(self.value) else "no run"
        return (
            self.policy,
            self.what,
            value,
            f"{word} {self.form.format(self.bound)}",
            self.verdict,
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
    needed = _cores_needed([pair for result in ran if result.contestant == PEAK for pair in result.work])
    measures = {
        name: [_measures(trial, result, needed) for result in ran if result.contestant == name]
        for name in names
        if any(result.contestant == name for result in ran)
    }
    first = {result.contestant: _smoothed(result.series, _window(trial)) for result in reversed(ran)}
    return Report(
        trial,
        measures,
        [result for result in results if result.failure],
        [check for name in judged for check in _checks(trial, name, ran, names)],
        {name: first[name] for name in names if name in first},
    )


def _measures(trial: Trial, result: Result, needed: Callable[[Floats], Floats]) -> Measures:
    cores, bounds = trial.node.cores, trial.nodes
    enough = np.ceil(needed(result.series.load) / cores - 1e-9)
    oracle = np.clip(enough, bounds.min_nodes, bounds.max_nodes)
    price = trial.node.price_per_hour * result.series.nodes
    return judge(
        replace(result.series, price_per_hour=price), oracle, bounds.max_nodes, result.changes, _window(trial)
    )


def _window(trial: Trial) -> float:
    """Seconds over which throughput is compared with load: whole triggers."""
    return max(WINDOW_SECONDS, ceil(WINDOW_SECONDS / trial.trigger_seconds) * trial.trigger_seconds)


def _smoothed(series: Series, window: float) -> Series:
    """Smooth a series for drawing: its steps between two batches would hide everything else."""
    around = min(len(series.lag), round(window / series.step_seconds))
    before, after = (around - 1) // 2, around // 2

    def windows(values: Floats) -> Floats:
        return np.lib.stride_tricks.sliding_window_view(np.pad(values, (before, after), "edge"), around)

    return replace(
        series, throughput=windows(series.throughput).mean(axis=1), lag=windows(series.lag).max(axis=1)
    )


def _cores_needed(work: Sequence[tuple[float, float]]) -> Callable[[Floats], Floats]:
    """Return the cores that a load needs, for the oracle: a line through what the reference used."""
    if len({load for load, _ in work}) < 2:
        return np.zeros_like
    line = fit([load for load, _ in work], [cores for _, cores in work])
    return lambda load: np.asarray(np.maximum(0.0, line.at(0.0) + line.slope * load))


def _checks(trial: Trial, name: str, results: Sequence[Result], contestants: Collection[str]) -> list[Check]:
    """Check the bounds of a policy: ratios within a repeat, and their median."""
    runs = {(result.contestant, result.number): result for result in results}
    own = [result for result in results if result.contestant == name]

    def pairs(peer: str) -> list[tuple[Result, Result]]:
        return [(mine, runs[peer, mine.number]) for mine in own if (peer, mine.number) in runs]

    def ratios(peer: str, of: Callable[[Result], float]) -> list[float]:
        return [of(mine) / (of(other) or math.nan) for mine, other in pairs(peer)]

    def later_lags(peer: str) -> list[float]:
        from_then = [(mine, other, _caught_up(other, trial)) for mine, other in pairs(peer)]
        return [_p99(mine, then) / (_p99(other, then) or math.nan) for mine, other, then in from_then]

    def fewer_nodes(peer: str) -> list[float]:
        return [1 - ratio for ratio in ratios(peer, lambda result: sum(result.nodes))]

    def lag_to_control(result: Result) -> float:
        control = trial.trigger_seconds + trial.period_seconds
        return _p99(result) / (control + median(result.startups or [0.0]))

    checks = [
        Check(
            name,
            "fewer node-seconds than static-peak",
            fewer_nodes(PEAK),
            FEWER_THAN_PEAK,
            "{:.1%}",
            is_minimum=True,
        )
    ]
    if trial.curve.partition(":")[0] in LAG_CURVES:
        what = "p99 lag in trigger + control period + node start-up"
        checks.append(Check(name, what, [lag_to_control(result) for result in own], LAG_TO_CONTROL, "{:.2f}"))
    if ALLOCATION in contestants:
        checks += [
            Check(
                name,
                f"fewer node-seconds than {ALLOCATION}",
                fewer_nodes(ALLOCATION),
                FEWER_THAN_ALLOCATION,
                "{:.1%}",
                is_minimum=True,
            ),
            Check(name, f"p99 lag to {ALLOCATION}'s", ratios(ALLOCATION, _p99), LAG_TO_ALLOCATION, "{:.2f}"),
        ]
    if any(_caught_up(result, trial) for result in results if result.contestant == ALLOCATION):
        what = f"the same, from when {ALLOCATION} had caught up with its start"
        checks.append(Check(name, what, later_lags(ALLOCATION), LAG_TO_ALLOCATION, "{:.2f}"))
    degraded = [_measures(trial, result, np.zeros_like).throughput_degradation for result in own]
    return [*checks, Check(name, "throughput degradation", degraded, DEGRADED, "{:.3f}")]


def _p99(result: Result, begin: int = 0) -> float:
    return float(np.percentile(result.lag[begin:], 99))


def _caught_up(result: Result, trial: Trial) -> int:
    """Return the second at which a run has caught up with its start; 0: it was never behind, or always is.

    A stream that is never behind lags by up to twice its trigger.
    """
    return next((at for at, lag in enumerate(result.lag) if lag <= 2 * trial.trigger_seconds), 0)


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
