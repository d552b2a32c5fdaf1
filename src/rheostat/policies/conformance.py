"""What every policy must do, as checks that anyone can run on theirs: `check(MyPolicy())`."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from rheostat.analyze.evaluation import evaluate
from rheostat.analyze.execution import ExecutionModel, Pipelined, Staged, Storm
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Proposal
from rheostat.model.observation import Observation
from rheostat.policies.base import Policy, Situation
from rheostat.policies.example import situation

MODELS: tuple[ExecutionModel, ...] = (Pipelined(), Staged(), Storm())
LOADS = (0.0, 1.0, 900.0, 3_000.0, 12_000.0, 12_000.0, 500_000.0, 700.0, 50.0, 0.0)


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
        for turn, seen in enumerate(_situations(model)):
            kept, remembered = copy.deepcopy((seen.configuration, seen.observation)), copy.deepcopy(memory)
            _, after = policy.decide(seen, memory)
            assert (seen.configuration, seen.observation) == kept, (
                f"{model.name}: turn {turn} changed its input"
            )
            assert memory == remembered, f"{model.name}: turn {turn} changed the memory it was given"
            memory = after


def respects_bounds(policy: Policy) -> None:
    for model in MODELS:
        for bounds in (Bounds(2, 4), Bounds(1, 1), Bounds(3, 3)):
            for seen, proposal, _ in _decisions(policy, model, bounds):
                if not proposal.changes(seen.configuration):
                    continue
                nodes = proposal.target.nodes
                assert bounds.min_nodes <= nodes <= bounds.max_nodes, f"{model.name}: {nodes} nodes, {bounds}"
                for operator in seen.topology.operators:
                    count = proposal.target.parallelism[operator.name]
                    assert operator.min_parallelism <= count <= operator.max_parallelism, operator.name
                assert set(proposal.target.parallelism) == set(seen.topology.names)


def holds_on_missing_measures(policy: Policy) -> None:
    for model in MODELS:
        whole = situation(load=50.0, parallelism=(4, 6, 4), nodes=7, model=model)
        for part in _with_something_missing(whole):
            proposal, memory = policy.decide(part, {})
            assert not proposal.changes(part.configuration), f"{model.name}: {proposal.reason}"
            assert not memory, "a window without measures must not be remembered"


def memory_survives_a_json_round_trip(policy: Policy) -> None:
    for model in MODELS:
        memory: Mapping[str, Any] = {}
        for seen in _situations(model):
            restored = json.loads(json.dumps(memory, allow_nan=False))
            assert restored == memory, f"{model.name}: memory is not plain JSON data"
            expected, after = policy.decide(seen, memory)
            actual, _ = policy.decide(seen, restored)
            assert actual == expected, f"{model.name}: a restored memory decides differently"
            memory = after


def every_proposal_has_a_reason(policy: Policy) -> None:
    for model in MODELS:
        for seen, proposal, _ in _decisions(policy, model):
            assert proposal.reason.strip(), f"{model.name}: no reason at load {seen.load}"
            assert "\n" not in proposal.reason
            for cause in proposal.causes:
                assert cause.holds(), f"{model.name}: the stated cause is false: {cause}"
            if proposal.target != seen.configuration:
                assert proposal.causes, f"{model.name}: a change without a cause: {proposal.reason}"


CHECKS: tuple[Callable[[Policy], None], ...] = (
    is_deterministic_for_a_seed,
    does_not_mutate_its_input,
    respects_bounds,
    holds_on_missing_measures,
    memory_survives_a_json_round_trip,
    every_proposal_has_a_reason,
)


def _decisions(
    policy: Policy, model: ExecutionModel, bounds: Bounds = Bounds(max_nodes=20)
) -> Iterator[tuple[Situation, Proposal, Mapping[str, Any]]]:
    memory: Mapping[str, Any] = {}
    for seen in _situations(model, bounds):
        proposal, memory = policy.decide(seen, memory)
        yield seen, proposal, memory


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


def _with_something_missing(whole: Situation) -> Iterator[Situation]:
    """The same situation without the load, an operator's CPU or rows, an operator, or all nodes."""
    seen = whole.observation
    split = seen.operators["split"]
    yield _observed(whole, replace(seen, application=replace(seen.application, load={"lines": None})))
    yield _observed(
        whole, replace(seen, operators={**seen.operators, "split": replace(split, cpu_seconds=None)})
    )
    yield _observed(
        whole, replace(seen, operators={**seen.operators, "split": replace(split, processed=None)})
    )
    without = {name: measures for name, measures in seen.operators.items() if name != "split"}
    yield _observed(whole, replace(seen, operators=without))
    yield _observed(whole, replace(seen, nodes=()))


def _observed(whole: Situation, observation: Observation) -> Situation:
    judged = evaluate(whole.topology, observation, whole.model, whole.kind)
    return replace(whole, observation=observation, evaluation=judged)
