"""State follows the executors: a stateful operator runs on all of them, whoever had its state before."""

from tests.spark.shared import Shared
from tests.spark.state import change_nodes, tasks_per_executor
from tests.spark.support import observe_batches


def test_state_spreads_over_new_nodes_and_comes_back_when_they_leave(totals: Shared) -> None:
    engine = totals.at(nodes=1, total=4)  # all state would find a slot where it was
    observe_batches(engine, 3)
    assert tasks_per_executor(engine) == [4]

    change_nodes(engine, nodes=2)
    events = observe_batches(engine, 3).events
    assert tasks_per_executor(engine) == [2, 2]
    moves = [event.text for event in events if event.kind == "state"]
    assert any(text.startswith("2 of 4 partitions moved to executor ") for text in moves), moves

    change_nodes(engine, nodes=1)
    observe_batches(engine, 3)
    assert tasks_per_executor(engine) == [4]
