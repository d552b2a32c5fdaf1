"""The compute model where units share the CPU of their nodes; without that limit it is P4's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rheostat.allocate import ALGORITHMS, Component, MeasuredTopology, allocate, read_topology, throughput
from rheostat.allocate.compute_model import ComputeModel
from rheostat.model.errors import FileError

CORES = 1.0


def fork(cores: float | None = CORES, load: float = 1000.0, light: float = 0.001) -> MeasuredTopology:
    """A source with two leaves; a row takes the heavy one 4 ms, so that one instance has 250 rows/s."""
    return MeasuredTopology(
        "fork",
        (
            Component("in", load, source=True, given=True, children={"light": 0.5, "heavy": 0.5}),
            Component("light", 1 / light, cpu_seconds=light),
            Component("heavy", 250, cpu_seconds=0.004),
        ),
        cores,
    )


def chain(load: float, cores: float | None = CORES) -> MeasuredTopology:
    """Two operators in a row, of 2 ms and 8 ms."""
    return MeasuredTopology(
        "chain",
        (
            Component("in", load, source=True, given=True, children={"first": 1}),
            Component("first", 500, cpu_seconds=0.002, children={"second": 1}),
            Component("second", 125, cpu_seconds=0.008),
        ),
        cores,
    )


def rates_of(topology: MeasuredTopology, **added: int) -> dict[str, float]:
    """Rows/s that each component processes."""
    model = ComputeModel(topology)
    units = np.array([added.get(name, 0) for name in model.names])
    return dict(zip(model.names, model.rates(units).processed.tolist(), strict=True))


def test_without_a_limit_the_cpu_of_a_row_does_not_matter() -> None:
    assert throughput(fork(cores=None)) == pytest.approx(500 + 250)
    assert throughput(fork(cores=None), {"heavy": 1}) == pytest.approx(500 + 500)


def test_cores_that_are_enough_limit_nothing() -> None:
    assert throughput(fork(cores=1.5)) == throughput(fork(cores=None))


def test_instances_that_need_more_than_their_part_get_equal_parts() -> None:
    both = fork(light=0.002)  # it would use a whole core, too
    rates = rates_of(both)
    assert rates["light"] == pytest.approx(0.5 / 0.002)
    assert rates["heavy"] == pytest.approx(0.5 / 0.004)


def test_what_an_operator_does_not_need_is_left_to_the_others() -> None:
    rates = rates_of(fork(light=0.0004))  # 500 rows/s take it 0.2 cores
    assert rates["light"] == pytest.approx(500)
    assert rates["heavy"] == pytest.approx(0.8 / 0.004)


def test_another_instance_is_another_part_of_the_same_cpu() -> None:
    rates = rates_of(fork(light=0.002), heavy=1)
    assert rates["light"] == pytest.approx(1 / 3 / 0.002)
    assert rates["heavy"] == pytest.approx(2 / 3 / 0.004)


def test_an_operator_that_gets_fewer_rows_leaves_its_cpu_to_those_before_it() -> None:
    rates = rates_of(chain(load=1000))  # 1 core = 0.5 for each
    assert rates["first"] == pytest.approx(250)
    assert rates["second"] == pytest.approx(62.5)
    rates = rates_of(chain(load=1000), second=8)  # now `second` serves all that `first` lets through
    assert rates["first"] == rates["second"] == pytest.approx(1 / (0.002 + 0.008))


def test_rows_that_an_operator_of_the_same_query_holds_back_take_no_cpu_before_it() -> None:
    topology = chain(load=1000)
    source, first, second = topology.components
    one_query = replace(topology, components=(source, first, replace(second, held_back=True)))
    assert throughput(topology) == pytest.approx(62.5)
    assert throughput(one_query) == pytest.approx(1 / (0.002 + 0.008))
    assert throughput(replace(one_query, cores=None)) == throughput(replace(topology, cores=None))


def test_a_source_takes_its_part_as_well() -> None:
    costly = replace(fork().components[0], cpu_seconds=0.001)
    shared = replace(fork(light=0.002), components=(costly, *fork(light=0.002).components[1:]))
    rates = rates_of(shared)
    assert rates["in"] == pytest.approx(1 / 3 / 0.001)  # it would use a whole core, as the other two
    assert rates["light"] == pytest.approx(rates["in"] / 2)  # which takes it as much CPU as the source
    assert rates["heavy"] == pytest.approx(1 / 3 / 0.004)


def random_topology(seed: int) -> MeasuredTopology:
    draw = np.random.default_rng(seed)
    costs = draw.uniform(0.0005, 0.01, 9)
    children: list[dict[str, float]] = [{} for _ in costs]
    for child in range(1, len(costs)):
        parents = draw.choice(child, size=min(child, 2), replace=False)
        for parent in parents:
            children[parent][str(child)] = 0.1
    components = [
        Component(
            str(number),
            500.0 if number == 0 else 1 / cost,
            source=number == 0,
            given=number == 0,
            children=children[number],
            cpu_seconds=cost,
            ratio=3.0,
        )
        for number, cost in enumerate(costs)
    ]
    return MeasuredTopology("random", tuple(components), float(draw.uniform(0.2, 3)))


@pytest.mark.parametrize("seed", range(8))
def test_the_cores_are_used_up_or_limit_nothing(seed: int) -> None:
    topology = random_topology(seed)
    model, alone = ComputeModel(topology), ComputeModel(replace(topology, cores=None))
    added = np.random.default_rng(seed).integers(0, 3, (model.size, 20))
    rates, unlimited = model.rates(added), alone.rates(added)
    used, cores = model.cpu_seconds @ rates.processed, topology.cores or 0.0
    short = model.cpu_seconds @ unlimited.processed > cores
    assert used[short] == pytest.approx(cores)
    assert rates.processed[:, ~short] == pytest.approx(unlimited.processed[:, ~short])
    assert (rates.processed <= unlimited.processed * (1 + 1e-9)).all()
    for column in range(added.shape[1]):
        assert model.throughput(added[:, column]) == pytest.approx(model.throughput(added)[column])


@pytest.mark.parametrize("seed", range(8))
def test_what_an_allocator_promises_is_what_the_model_with_the_limit_says(seed: int) -> None:
    topology = random_topology(seed)
    answers = {name: allocate(topology, 4, name) for name in ALGORITHMS}
    for answer in answers.values():
        assert answer.throughput == pytest.approx(throughput(topology, answer.units))
    best = answers["optimal"]
    assert best.throughput >= answers["combined"].throughput * (1 - 1e-9)
    assert best.gain >= 0
    assert best.gap is not None
    for answer in answers.values():
        assert answer.throughput <= best.throughput * (1 + best.gap) * (1 + 1e-6)


def test_on_a_full_node_the_optimal_allocator_spends_no_instance_in_vain() -> None:
    assert allocate(fork(cores=0.5, light=0.002), 3, "optimal").units in ({}, {"light": 3})
    assert throughput(fork(cores=0.5, light=0.002), {"light": 3}) > throughput(fork(cores=0.5, light=0.002))


def test_a_file_may_state_the_limit(tmp_path: Path) -> None:
    text = """
cores: 1
components:
  - {name: in, output_rate: 1000, children: {heavy: 1}}
  - {name: heavy, input_rate: 1000, output_rate: 250, max_rate: 250, cpu_seconds: 0.004}
"""
    (tmp_path / "shared.yaml").write_text(text)
    shared = read_topology(tmp_path / "shared.yaml")
    assert (shared.cores, shared.components[1].cpu_seconds) == (1.0, 0.004)
    assert throughput(shared, {"heavy": 1}) == pytest.approx(250)
    (tmp_path / "none.yaml").write_text(text.replace("cores: 1", "cores: 0"))
    with pytest.raises(FileError, match="cores"):
        read_topology(tmp_path / "none.yaml")
