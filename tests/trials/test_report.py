"""How the results of a trial are judged and reported, with exact answers; no Spark."""

from dataclasses import replace

import pytest

from rheostat.trials.bounds import Check
from rheostat.trials.report import make_report
from rheostat.trials.trial import Result, Trial
from tests.trials.results import TRIAL, result


def checks(*results: Result) -> dict[str, Check]:
    report = make_report(TRIAL, ["ours"], results)
    return {check.what: check for check in report.checks}


def test_a_policy_that_saves_enough_and_is_quick_enough_keeps_every_bound() -> None:
    checked = checks(
        result("ours", nodes=2.0), result("static-peak"), result("spark-dra", nodes=3.0, lag=4.0)
    )
    assert [check.kept for check in checked.values()] == [True] * 5
    assert checked["fewer node-seconds than static-peak"].value == 0.5
    assert checked["fewer node-seconds than spark-dra"].value == pytest.approx(1 / 3)
    assert checked["p99 lag to spark-dra's"].value == 1.25
    assert checked["p99 lag in trigger + control period + node start-up"].value == pytest.approx(5 / 15)


def test_each_bound_can_be_missed() -> None:
    checked = checks(
        result("ours", nodes=3.0, lag=31.0, served=0.8),
        result("static-peak"),
        result("spark-dra", nodes=3.5, lag=20.0),
    )
    assert [check.kept for check in checked.values()] == [False] * 5
    assert checked["throughput degradation"].cells[-1] == "RED"


def test_a_peer_that_began_behind_is_also_judged_from_when_it_had_caught_up() -> None:
    behind = replace(result("spark-dra", lag=2.0), lag=[30.0] * 10 + [2.0] * 90)
    checked = checks(result("ours"), result("static-peak"), behind)
    assert checked["p99 lag to spark-dra's"].kept
    later = checked["the same, from when spark-dra had caught up with its start"]
    assert (later.value, later.kept) == (2.5, False)


def test_ratios_are_taken_within_a_repeat_and_the_median_counts() -> None:
    checked = checks(
        *(result("ours", number, nodes=nodes) for number, nodes in enumerate((1.0, 2.0, 2.0), 1)),
        *(result("static-peak", number, nodes=nodes) for number, nodes in enumerate((4.0, 4.0, 8.0), 1)),
    )
    saved = checked["fewer node-seconds than static-peak"]
    assert (saved.value, saved.verdict) == (0.75, "ok")


def test_a_square_has_no_bound_on_the_lag() -> None:
    square = make_report(
        Trial(**{**TRIAL.__dict__, "curve": "square:duration=100"}),
        ["ours"],
        [result("ours"), result("static-peak")],
    )
    assert [check.what for check in square.checks] == [
        "fewer node-seconds than static-peak",
        "throughput degradation",
    ]


def test_the_oracle_needs_the_cpu_that_the_peak_s_nodes_used() -> None:
    report = make_report(TRIAL, ["ours"], [result("ours", nodes=4.0), result("static-peak")])
    [measures] = report.measures["ours"]
    assert measures.node_seconds_to_oracle == pytest.approx(
        400 / (50 * 2 + 50 * 3)
    )  # 0.7 and 1.2 cores of 0.5
    assert measures.overshoot == pytest.approx(4 / 3 - 1)


def test_the_report_shows_spread_bounds_and_who_did_not_run() -> None:
    failed = Result("spark-dra", 1, failure="it died")
    report = make_report(
        TRIAL,
        ["ours"],
        [result("ours", nodes=2.0), result("ours", 2, nodes=3.0), result("static-peak"), failed],
    )
    text = report.markdown(["trial.png"])
    assert "| ours | 2 | 0.000 |" in text
    assert "250 (200-300)" in text
    assert "\nspark-dra did not run: it died\n" in text
    assert "| ours | fewer node-seconds than static-peak | 50.0% | at least 40.0% | ok so far |" in text
    assert "| ours | fewer node-seconds than spark-dra | no run | at least 25.0% | **RED** |" in text
    assert list(report.series) == ["ours", "static-peak"]
    assert "did not run: it died" in failed.line()


def test_a_failed_repeat_of_a_contestant_is_reported() -> None:
    results = [result("ours"), Result("ours", 2, failure="it died"), Result("ours", 3, failure="it died")]
    report = make_report(TRIAL, ["ours"], results)
    assert report.failed() == ["ours did not run in repeat 2 and 3: it died"]


def test_nodes_with_a_price_are_counted_in_money_too() -> None:
    priced = replace(TRIAL, node=replace(TRIAL.node, price_per_hour=3.6))
    report = make_report(priced, ["ours"], [result("ours", nodes=2.0), result("static-peak")])
    [measures] = report.measures["ours"]
    assert measures.money == pytest.approx(2 * 100 * 3.6 / 3600)
    assert any("| money |" in line for line in report.tables())
