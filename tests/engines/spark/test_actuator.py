"""What the actuator takes for there, without Spark."""

from typing import Any, cast

from rheostat.control.clock import SystemClock
from rheostat.engines.spark.actuate.actuator import Actuator
from rheostat.engines.spark.driver_process import DriverProcess
from rheostat.engines.spark.observe.monitor import Monitor
from rheostat.model.configuration import NodeKind
from rheostat.model.topology import Operator, Topology
from rheostat.providers.standalone import StandaloneProvider

KIND = NodeKind(slots=2)
TWO = [{"id": "0", "host": "old", "slots": 2, "ready": True}, {"id": "1", "host": "new", "slots": 2}]


class Driver:
    """Reports executors."""

    def __init__(self) -> None:
        self.executors: list[dict[str, Any]] = []

    def ask(self, what: str) -> dict[str, Any]:
        assert what == "report"
        return {"executors": self.executors, "queries": [], "events": []}


def test_an_executor_whose_node_is_gone_is_not_counted_although_spark_keeps_it_for_a_while() -> None:
    driver, provider = Driver(), StandaloneProvider((KIND,))
    monitor = Monitor(cast(DriverProcess, driver), provider, began_at=0.0, realtime=False)
    actuator = Actuator(monitor, provider, SystemClock(0.0), Topology("one", (Operator("in"),), ()), False)
    actuator.planned = ((KIND, "local"),)
    driver.executors = [{**TWO[0]}]
    monitor.poll(1.0)
    assert actuator.whole
    monitor.executors = [TWO[0], {**TWO[1], "ready": False}]
    provider.refresh(["new"])  # the old node is gone, the executor of the new one rehearses
    assert not actuator.whole
    driver.executors = [{**TWO[1], "ready": True}]
    monitor.poll(2.0)
    assert actuator.whole
