"""The physics of each execution model, on topologies small enough to work out by hand."""

import numpy as np
import pytest

from rheostat.analyze.node_overhead import Overhead
from rheostat.engines.simulator.engine import Simulator
from rheostat.engines.simulator.settings import Settings
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Placement, Plan, Status
from rheostat.model.errors import UserError
from rheostat.model.topology import Operator, Stream, Topology

CHAIN = Topology("chain", (Operator("in"), Operator("work", 0.01)), (Stream("in", "work"),))
ONE_CORE = NodeKind(cores=1, slots=2, startup_seconds=30)
PLAIN = Overhead()


def simulator(
    load: float | list[float], work: int = 1, nodes: int = 1, topology: Topology = CHAIN, **settings: object
) -> Simulator:
    rates = np.full(600, load) if isinstance(load, float) else np.array(load)
    simulation = Settings(kinds=(ONE_CORE,), overhead=PLAIN, **settings)  # type: ignore[arg-type]
    parallelism = dict.fromkeys(topology.names, 1) | {"work": work}
    return Simulator(topology, rates, Configuration(parallelism, nodes, nodes), simulation)


def plan(engine: Simulator, target: Configuration, placement: Placement = Placement()) -> Plan:
    return Plan(1, engine.now(), engine.configuration, target, "test", placement=placement)


@pytest.mark.parametrize("mode", ["pipelined", "storm"])
def test_an_instance_processes_what_one_core_can_and_the_rest_waits(mode: str) -> None:
    engine = simulator(150.0, mode=mode)  # 100 rows/s is what one core can do
    engine.sleep(100)
    waiting = engine.record.backlog[100]
    assert waiting == pytest.approx(50 * 100, rel=0.02)
    assert engine.record.lag()[-1] == pytest.approx(100 / 3, rel=0.05)  # 5,000 rows at 150 rows/s


@pytest.mark.parametrize("mode", ["pipelined", "storm"])
def test_two_instances_on_one_core_share_it_and_on_two_nodes_do_not(mode: str) -> None:
    shared = simulator(150.0, work=2, nodes=2, mode=mode)
    shared.sleep(100)
    assert shared.record.backlog[100] < 1
    if mode == "storm":  # only Storm lets three instances sit in two slots
        crowded = simulator(150.0, work=2, nodes=1, mode=mode)
        crowded.sleep(100)
        assert crowded.record.backlog[100] == pytest.approx(50 * 100, rel=0.02)


def test_pipelined_refuses_more_instances_than_slots() -> None:
    with pytest.raises(UserError, match="slots"):
        simulator(1.0, work=5, mode="pipelined")


def test_a_node_s_overhead_leaves_less_for_its_instances() -> None:
    rates = np.full(100, 100.0)
    simulation = Settings(kinds=(ONE_CORE,), overhead=Overhead(idle=0.1, slope=1.25))
    engine = Simulator(CHAIN, rates, Configuration({"in": 1, "work": 1}, 1, 1), simulation)
    engine.sleep(100)
    assert engine.record.throughput()[50:].mean() == pytest.approx(100 * 0.9 / 1.25, rel=0.01)
    node = engine.observe().nodes[0]
    assert node.cpu == pytest.approx(1.0)


def test_a_batch_takes_the_sum_of_its_stages() -> None:
    engine = simulator(50.0, mode="staged", trigger_seconds=10.0, stage_overhead_seconds=0.25)
    engine.sleep(100)
    observed = engine.observe().application
    # 500 rows x 0.01 s on one task, and two stages of 0.25 s.
    assert observed.batch_seconds == pytest.approx(5.5, rel=0.12)  # the first batch is empty
    assert observed.trigger_seconds == 10.0
    assert engine.record.backlog[100] <= 1_000


def test_tasks_run_in_waves_when_there_are_more_than_slots() -> None:
    def batch(work: int) -> float:
        engine = simulator(40.0, work=work, nodes=2, mode="staged", stage_overhead_seconds=0.0)
        engine.sleep(200)
        engine.observe()
        engine.sleep(200)
        return engine.observe().application.batch_seconds or 0.0

    item, two, five = batch(1), batch(2), batch(5)
    assert item == pytest.approx(4.0, rel=0.01)  # 400 rows x 0.01 s on one core
    assert two == pytest.approx(2.0, rel=0.01)
    # Five tasks in four slots of half a core each need two waves: 2 x 80 rows x 0.01 / 0.5.
    assert five == pytest.approx(3.2, rel=0.01)


def test_a_staged_application_that_is_too_small_runs_ever_longer_batches() -> None:
    engine = simulator(120.0, mode="staged", trigger_seconds=10.0)
    engine.sleep(600)
    durations = engine.observe().application.batch_seconds
    assert durations is not None
    assert durations > 20
    assert engine.record.lag()[-1] > 60


def test_a_full_queue_holds_rows_back_before_the_operator_above() -> None:
    engine = simulator(150.0, mode="storm", queue_rows=500.0)
    engine.sleep(100)
    observed = engine.observe().operators
    assert observed["work"].waiting == pytest.approx(500, abs=150)
    assert (observed["in"].waiting or 0) > 3_000
    assert engine.record.dropped[100] == 0


def test_a_full_queue_drops_rows_if_configured() -> None:
    engine = simulator(150.0, mode="storm", queue_rows=500.0, on_full="drop")
    engine.sleep(200)
    record = engine.record
    assert record.dropped[200] == pytest.approx(50 * 200 - 500, rel=0.05)
    assert record.backlog[200] == pytest.approx(500, rel=0.01)
    assert record.completed()[-1] + record.backlog[200] + record.dropped[200] == pytest.approx(150 * 200)


def test_a_storm_rebalance_pauses_everything_for_5_to_8_seconds_and_the_queue_drains_afterwards() -> None:
    engine = simulator(90.0, nodes=2, mode="storm")
    engine.sleep(60)
    outcome = engine.apply(plan(engine, Configuration({"in": 1, "work": 2}, 2, 2)))
    assert 5 <= outcome.pause_seconds <= 8
    pause = round(outcome.pause_seconds)
    assert engine.record.throughput()[60 : 60 + pause].max() == 0
    # What arrived meanwhile, and the second's worth that was between two operators.
    assert engine.record.backlog[60 + pause] == pytest.approx(90 * (pause + 1))
    engine.sleep(60)
    assert engine.record.backlog[engine.record.steps] < 1


def test_a_stateless_change_on_spark_needs_no_pause_and_a_stateful_one_moves_its_state() -> None:
    stateful = Topology(
        "state",
        (Operator("in"), Operator("work", 0.01, stateful=True, state_bytes=100e6)),
        (Stream("in", "work"),),
    )
    target = Configuration({"in": 1, "work": 2}, 2, 2)
    live = simulator(10.0, nodes=2)
    assert live.apply(plan(live, target)).pause_seconds == 0
    moved = simulator(10.0, nodes=2, topology=stateful, restart_seconds=2.0, state_bytes_per_second=50e6)
    assert moved.apply(plan(moved, target)).pause_seconds == pytest.approx(4.0)


def test_a_node_costs_from_its_order_and_works_after_its_start_up() -> None:
    engine = simulator(10.0)
    engine.sleep(10)
    outcome = engine.apply(plan(engine, Configuration({"in": 1, "work": 2}, 2, 2)))
    assert outcome.finished_at - outcome.started_at == 30 + 5  # the node, then its executor
    assert engine.record.nodes[9] == 1
    assert (engine.record.nodes[10:45] == 2).all()


def test_a_plan_without_slots_is_rolled_back_and_says_so() -> None:
    engine = simulator(10.0)
    before = engine.configuration
    outcome = engine.apply(plan(engine, Configuration({"in": 1, "work": 9}, 1, 1)))
    assert outcome.status is Status.FAILED
    assert "rolled back" in outcome.reason
    assert [str(cause) for cause in outcome.causes] == ["slots of chain 2 < 10"]
    assert engine.configuration == outcome.configuration == before
    assert len(engine.provider.nodes()) == 1


def test_the_same_seed_gives_the_same_run_and_another_seed_another_run() -> None:
    def cpu(seed: int) -> list[float | None]:
        engine = simulator(50.0, mode="storm", noise=0.2, seed=seed)
        result = []
        for _ in range(5):
            engine.sleep(60)
            result.append(engine.observe().operators["work"].cpu_seconds)
        return result

    assert cpu(1) == cpu(1)
    assert cpu(1) != cpu(2)


def test_rows_of_two_sources_flow_by_their_stated_mix() -> None:
    star = Topology(
        "star",
        (Operator("a", load=300.0), Operator("b", load=100.0), Operator("work", 0.001)),
        (Stream("a", "work"), Stream("b", "work", selectivity=2.0)),
    )
    simulation = Settings(kinds=(NodeKind(cores=4, slots=4),))
    engine = Simulator(star, np.full(60, 400.0), Configuration({"a": 1, "b": 1, "work": 1}, 1, 1), simulation)
    engine.sleep(60)
    observed = engine.observe()
    assert observed.application.load == {"a": pytest.approx(300), "b": pytest.approx(100)}
    assert observed.operators["work"].processed == pytest.approx(60 * 500)


def test_a_source_row_is_done_when_the_slowest_branch_is() -> None:
    fork = Topology(
        "fork",
        (Operator("in"), Operator("quick", 0.001), Operator("work", 0.02)),
        (Stream("in", "quick", 2.0, 0.5), Stream("in", "work", 2.0, 0.5)),  # a copy to each
    )
    engine = simulator(100.0, topology=fork, nodes=3, mode="storm")
    engine.sleep(100)
    # `work` does 50 rows/s, so half of the source rows wait although `quick` is idle.
    assert engine.record.backlog[100] == pytest.approx(50 * 100, rel=0.03)


def test_nodes_of_several_kinds_serve_together_and_are_paid_for_each_at_its_price() -> None:
    small = NodeKind("small", cores=1, slots=2, startup_seconds=30, price_per_hour=1.0)
    large = NodeKind("large", cores=4, slots=8, executors=4, startup_seconds=60, price_per_hour=3.0)
    world = Settings(kinds=(small, large), overhead=PLAIN)
    engine = Simulator(CHAIN, np.full(600, 250.0), Configuration({"in": 1, "work": 1}, 1, 1), world)
    target = Configuration({"in": 1, "work": 4}, 5, 2)
    outcome = engine.apply(plan(engine, target, Placement(add=(("large", "local"),))))
    assert (outcome.status, outcome.configuration.executors) == (Status.APPLIED, 5)
    assert outcome.finished_at >= 60
    engine.sleep(400)
    assert engine.record.throughput()[-50:].mean() == pytest.approx(250, rel=0.02)
    assert set(engine.record.price_per_hour[1:400]) == {4.0}  # from when the large one was ordered
    assert [(node.kind, node.slots, node.price_per_hour) for node in engine.observe().nodes] == [
        ("small", 2, 1.0), ("large", 8, 3.0),
    ]  # fmt: skip
