"""P3, section 5: the linear topology under an exponential rise that falls by plateaus."""

from rheostat.engines.simulator.comparison import Run
from rheostat.model.configuration import Bounds, Configuration
from rheostat.model.topology_file import find_topology

from .worlds import P3, run

LINEAR = find_topology("linear")
CONF_MIN = Configuration({"source": 1, "intermediate": 1, "sink": 1}, executors=6, nodes=6)
CONF_EXPT = Configuration({"source": 1, "intermediate": 1, "sink": 12}, executors=6, nodes=6)


def on_rise(policy: str, initial: Configuration) -> Run:
    return run(LINEAR, "exponential:duration=30m:noise=poisson", policy, P3, Bounds(6, 6), initial)


def test_autoscale_survives_from_conf_min_where_static_collapses() -> None:
    static, autoscale = on_rise("static", CONF_MIN), on_rise("autoscale", CONF_MIN)
    offered = static.series.load.sum()
    assert static.series.throughput.sum() < 0.5 * offered  # Figure 3: the topology never recovers
    assert static.series.lag[-1] > 600
    assert autoscale.series.throughput.sum() > 0.999 * offered
    assert autoscale.measures.p99_lag_seconds < 10
    assert autoscale.series.lag[-1] < 1


def test_autoscale_saves_about_30_percent_from_conf_expt_at_equal_latency() -> None:
    static, autoscale = on_rise("static", CONF_EXPT), on_rise("autoscale", CONF_EXPT)
    saved = 1 - autoscale.measures.mean_instances / static.measures.mean_instances
    assert abs(saved - 0.30) < 0.05
    # Equal but for the seconds in which a rebalance stops the topology.
    assert autoscale.measures.mean_lag_seconds - static.measures.mean_lag_seconds < 1
    assert autoscale.measures.throughput_degradation < 0.1


def test_the_printed_equation_anticipates_less_and_holds_more_instances() -> None:
    repaired, printed = on_rise("autoscale", CONF_MIN), on_rise("autoscale(printed_equation=true)", CONF_MIN)
    assert printed.measures.mean_instances > repaired.measures.mean_instances
    assert printed.measures.p99_lag_seconds >= repaired.measures.p99_lag_seconds
