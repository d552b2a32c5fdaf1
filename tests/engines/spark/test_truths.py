"""What the actuator counts as there, without Spark."""

from dataclasses import replace
from typing import Any, cast

from rheostat.engines.spark.actuate.truths import Truths
from rheostat.engines.spark.observe.monitor import Monitor
from rheostat.engines.spark.protocol import Channel, Executor, Report
from rheostat.model.configuration import NodeKind
from rheostat.providers.standalone import StandaloneProvider

OLD, NEW = Executor("0", "old", 2), Executor("1", "new", 2)


class Driver:
    """Reports executors."""

    def __init__(self) -> None:
        self.executors: tuple[Executor, ...] = ()

    def ask(self, _request: Any) -> Report:
        return Report((), self.executors, ())


def test_an_executor_whose_node_is_gone_does_not_count_although_spark_keeps_it_for_a_while() -> None:
    driver, provider = Driver(), StandaloneProvider((NodeKind(slots=2),))
    monitor = Monitor(cast(Channel, driver), provider, began_at=0.0, realtime=False)
    truths = Truths(monitor, provider)
    truths.planned = truths.first(1)
    driver.executors = (OLD,)
    monitor.poll(1.0)
    assert truths.complete
    monitor.executors = (OLD, replace(NEW, ready=False))
    provider.refresh(["new"])  # the old node is gone, the executor of the new one rehearses
    assert not truths.complete
    driver.executors = (NEW,)
    monitor.poll(2.0)
    assert truths.complete
