"""What the actuator counts as there, without Spark."""

from dataclasses import replace
from typing import Any, cast

from rheostat.engines.spark.actuate.truths import Truths
from rheostat.engines.spark.machines import ForeignMachines
from rheostat.engines.spark.observe.monitor import Monitor
from rheostat.engines.spark.protocol import Channel, Executor, Report
from rheostat.model.configuration import NodeKind

OLD, NEW = Executor("0", "old", 2), Executor("1", "new", 2)


class Driver:
    """Reports executors."""

    def __init__(self) -> None:
        self.executors: tuple[Executor, ...] = ()

    def ask(self, _request: Any) -> Report:
        return Report((), self.executors, ())


def test_an_executor_whose_node_is_gone_does_not_count_although_spark_keeps_it_for_a_while() -> None:
    driver, machines = Driver(), ForeignMachines("spark://h:7077", NodeKind(slots=2))
    monitor = Monitor(cast(Channel, driver), machines, began_at=0.0, realtime=False)
    truths = Truths(monitor, machines)
    truths.planned = truths.size(1)
    driver.executors = (OLD,)
    monitor.poll(1.0)
    assert truths.complete
    monitor.executors = (OLD, replace(NEW, ready=False))
    machines.check((NEW,))  # the old node is gone, the executor of the new one rehearses
    assert not truths.complete
    driver.executors = (NEW,)
    monitor.poll(2.0)
    assert truths.complete
