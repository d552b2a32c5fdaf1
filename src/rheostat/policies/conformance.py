"""What every policy must do, as checks that anyone can run on theirs: `check(MyPolicy())`."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rheostat.analyze.backlog import PATIENCE_SECONDS
from rheostat.analyze.execution import ExecutionModel, Pipelined, Staged, Storm
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Proposal
from rheostat.policies.base import Policy, Situation
from rheostat.policies.example import situation
from rheostat.policies.proving import (
    TURNS,
    half_measured,
    highest,
    settled,
    sized,
    with_something_missing,
)

MODELS: tuple[ExecutionModel, ...] = (Pipelined(), Staged(), Storm())
LOADS = (0.0, 1.0, 900.0, 3_000.0, 12_000.0, 12_000.0, 500_000.0, 700.0, 50.0, 0.0)
OVERLOAD, IDLE = 6_000.0, 50.0  # rows/s; the first keeps 0.6, 3.0 and 2.4 slots busy
SMALL, LARGE = ((1, 1, 1), 2), ((4, 6, 4), 7)  # instances and nodes; a slot for each instance
MANY_TURNS = 60
ASKING = 0.0025  # seconds for which a row waits, five times its CPU: 900 rows/s hold 2.7 instances


def check(policy: Policy) -> None:
    """Run every check; AssertionError says which one failed and how."""
    for rule in CHECKS:
        rule(policy)


def is_deterministic_for_a_seed(policy: Policy) -> None:
    for model in MODELS:
        first, second = list(_decisions(policy, model)), list(_decisions(policy, model))
        assert first == second, f"{model.name}: two runs on the same input differ"


def does_not_mutate_its_input(policy: Policy) -> None:
    for model in MODELS:
        memory: Mapping[str, Any] = {}
        for turn, current in enumerate(_situations(model)):
            kept, remembered = (
                copy.deepcopy((current.configuration, current.observation)),
                copy.deepcopy(memory),
            )
            _, after = policy.decide(current, memory)
            assert (current.configuration, current.observation) == kept, (
                f"{model.name}: turn {turn} changed its input"
            )
            assert memory == remembered, f"{model.name}: turn {turn} changed the memory it was given"
            memory = after


def respects_bounds(policy: Policy) -> None:
    for model in MODELS:
        for bounds in (Bounds(2, 4), Bounds(1, 1), Bounds(3, 3)):
            for current, proposal, _ in _decisions(policy, model, bounds):
                if not proposal.changes(current.configuration):
                    continue
                nodes = proposal.target.nodes
                assert bounds.min_nodes <= nodes <= bounds.max_nodes, f"{model.name}: {nodes} nodes, {bounds}"
                for operator in current.topology.operators:
                    count = proposal.target.parallelism[operator.name]
                    assert operator.min_parallelism <= count <= operator.max_parallelism, operator.name
                assert set(proposal.target.parallelism) == set(current.topology.names)


def holds_on_missing_measures(policy: Policy) -> None:
    for model in MODELS:
        whole = situation(load=50.0, parallelism=(4, 6, 4), nodes=7, model=model)
        for part in with_something_missing(whole):
            proposal, memory = policy.decide(part, {})
            assert not proposal.changes(part.configuration), f"{model.name}: {proposal.reason}"
            assert not memory, "a window without measures must not be remembered"


def grows_until_a_lasting_overload_is_served(policy: Policy) -> None:
    """Whatever steps it takes; a policy that declares its kind as static is not asked."""
    for model in _asked(policy):
        first, last = settled(policy, model, OVERLOAD, *sized(SMALL, model))
        most = highest(last)
        assert highest(first) > 1 >= most, (
            f"{model.name}: after {TURNS} turns at {OVERLOAD:,.0f} rows/s the highest utilisation is "
            f"{most:.2f}; it was {highest(first):.2f}"
        )


def shrinks_when_there_is_little_to_do(policy: Policy) -> None:
    """In nodes, which cost money, and not below what the load needs."""
    for model in _asked(policy):
        first, last = settled(policy, model, IDLE, *sized(LARGE, model))
        nodes, before = last.configuration.nodes, first.configuration.nodes
        assert nodes < before, f"{model.name}: after {TURNS} idle turns {nodes} of {before} nodes are left"
        assert highest(last) <= 1, f"{model.name}: it shrank below what {IDLE:,.0f} rows/s need"


def does_not_shrink_on_an_overload_that_is_half_measured(policy: Policy) -> None:
    """Missing is not zero: no queue, no CPU and no instance in sight does not mean that there is none."""
    for model in MODELS:
        parallelism, nodes = sized(SMALL, model)
        current = half_measured(situation(load=OVERLOAD, parallelism=parallelism, nodes=nodes, model=model))
        proposal, _ = policy.decide(current, {})
        had, wanted = current.configuration, proposal.target
        smaller = [name for name in had.parallelism if wanted.parallelism[name] < had.parallelism[name]]
        assert not smaller and wanted.nodes >= had.nodes, f"{model.name}: {proposal.reason}"


def does_not_shrink_while_rows_wait_for_long(policy: Policy) -> None:
    for model in MODELS:
        parallelism, nodes = sized(LARGE, model)
        backlog = IDLE * (2 * PATIENCE_SECONDS + 2 * (model.trigger_seconds or 0.0))
        current = situation(IDLE, parallelism, nodes, waiting=backlog, model=model)
        proposal, _ = policy.decide(current, {})
        had, wanted = current.configuration, proposal.target
        smaller = [name for name in had.parallelism if wanted.parallelism[name] < had.parallelism[name]]
        assert not smaller and wanted.nodes >= had.nodes, f"{model.name}: {proposal.reason}"


def leaves_an_operator_that_waits_what_it_needs(policy: Policy) -> None:
    """It takes little CPU, and yet each row holds an instance for as long as it waits."""
    for model in (Pipelined(), Staged()):
        _, last = settled(policy, model, 900.0, *sized(LARGE, model), ASKING)
        assert highest(last) <= 1, f"{model.name}: {highest(last):.2f} of what is left would be needed"


def memory_stays_bounded(policy: Policy) -> None:
    sizes: list[int] = []
    memory: Mapping[str, Any] = {}
    for turn in range(2 * MANY_TURNS):
        current = situation(load=LOADS[2 + turn % 3], now=60.0 * (turn + 1))
        _, memory = policy.decide(current, memory)
        sizes.append(len(json.dumps(memory)))
    early, late = max(sizes[:MANY_TURNS]), max(sizes)
    assert late <= 1.5 * early + 100, f"memory grows: {early} characters, then {late}"


def memory_survives_a_json_round_trip(policy: Policy) -> None:
    for model in MODELS:
        memory: Mapping[str, Any] = {}
        for current in _situations(model):
            restored = json.loads(json.dumps(memory, allow_nan=False))
            assert restored == memory, f"{model.name}: memory is not plain JSON data"
            expected, after = policy.decide(current, memory)
            actual, _ = policy.decide(current, restored)
            assert actual == expected, f"{model.name}: a restored memory decides differently"
            memory = after


def every_proposal_has_a_reason(policy: Policy) -> None:
    for model in MODELS:
        for current, proposal, _ in _decisions(policy, model):
            assert proposal.reason.strip(), f"{model.name}: no reason at load {current.load}"
            assert "\n" not in proposal.reason
            for cause in proposal.causes:
                assert cause.holds(), f"{model.name}: the stated cause is false: {cause}"
            if proposal.target != current.configuration:
                assert proposal.causes, f"{model.name}: a change without a cause: {proposal.reason}"


CHECKS: tuple[Callable[[Policy], None], ...] = (
    is_deterministic_for_a_seed,
    does_not_mutate_its_input,
    respects_bounds,
    holds_on_missing_measures,
    grows_until_a_lasting_overload_is_served,
    shrinks_when_there_is_little_to_do,
    does_not_shrink_on_an_overload_that_is_half_measured,
    does_not_shrink_while_rows_wait_for_long,
    leaves_an_operator_that_waits_what_it_needs,
    memory_stays_bounded,
    memory_survives_a_json_round_trip,
    every_proposal_has_a_reason,
)


def _decisions(
    policy: Policy, model: ExecutionModel, bounds: Bounds = Bounds(max_nodes=20)
) -> Iterator[tuple[Situation, Proposal, Mapping[str, Any]]]:
    memory: Mapping[str, Any] = {}
    for current in _situations(model, bounds):
        proposal, memory = policy.decide(current, memory)
        yield current, proposal, memory


def _situations(model: ExecutionModel, bounds: Bounds = Bounds(max_nodes=20)) -> Iterator[Situation]:
    nodes = max(2, bounds.min_nodes) if bounds.max_nodes >= 2 else 1
    for turn, load in enumerate(LOADS):
        yield situation(
            load=load,
            parallelism=(1, 2, 1) if turn % 2 else (1, 1, 1),
            nodes=nodes,
            now=60.0 * (turn + 1),
            waiting=load if turn % 3 == 2 else 0.0,
            model=model,
            bounds=bounds,
        )


def _asked(policy: Policy) -> tuple[ExecutionModel, ...]:
    return () if policy.info.kind == "static" else MODELS
