"""Runs policies on the same load in the simulator and judges them side by side."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rheostat.analyze.judging import WINDOW_SECONDS, Measures, Series, judge
from rheostat.control.loop import Loop, NoRecorder
from rheostat.control.ports import Recorder
from rheostat.control.turn import Turn
from rheostat.engines.simulator.deployment import Floats
from rheostat.engines.simulator.engine import Simulator
from rheostat.engines.simulator.scenario import Scenario
from rheostat.model.configuration import Configuration
from rheostat.model.decision import Status
from rheostat.model.errors import UserError
from rheostat.policies.base import Policy
from rheostat.policies.foreign import first_configuration
from rheostat.policies.registry import build, split_top

Progress = Callable[[float], None]  # called with the fraction that is done


@dataclass(frozen=True)
class Run:
    """One policy's run."""

    series: Series
    measures: Measures
    parallelism: dict[str, Floats]  # per operator, at each turn
    alerts: int = 0


def build_policies(text: str) -> dict[str, Policy]:
    """Build the policies of a comma-separated list, by what is written of each."""
    specs = [spec.strip() for spec in split_top(text) if spec.strip()]
    if not specs:
        raise UserError("--policies is empty; see `rheostat policies`")
    if len(set(specs)) < len(specs):
        raise UserError("--policies names a policy twice; give the second one other parameters")
    return {spec: build(spec) for spec in specs}


def compare(
    scenario: Scenario, policies: Mapping[str, Policy], begin: Callable[[str], Progress]
) -> dict[str, Run]:
    """Run every policy on the same scenario; `begin` starts a progress bar by name."""
    oracle = scenario.oracle()
    runs: dict[str, Run] = {}
    for name, policy in policies.items():
        advance = begin(name)
        runs[name] = run_policy(scenario, policy, oracle=oracle, progress=advance)
        advance(1.0)
    return runs


def run_policy(
    scenario: Scenario,
    policy: Policy,
    *,
    initial: Configuration | None = None,
    on_turn: Callable[[Turn], None] | None = None,
    recorder: Recorder | None = None,
    progress: Progress | None = None,
    oracle: Floats | None = None,
) -> Run:
    """Run one policy over the whole load and judge it."""
    start = scenario.start()
    simulator = Simulator(
        scenario.topology, scenario.load, initial or first_configuration(policy, start), scenario.settings
    )
    loop = Loop(
        simulator,
        simulator,
        policy,
        scenario.bounds,
        scenario.guards,
        seed=scenario.settings.seed,
        recorder=recorder or NoRecorder(),
    )
    counts = {name: [float(count)] for name, count in simulator.configuration.parallelism.items()}
    changes = alerts = 0
    for turn in loop.run(simulator.ends_at):
        changes += turn.outcome.status is Status.APPLIED
        alerts += turn.plan.alert is not None
        for name, count in turn.outcome.configuration.parallelism.items():
            counts[name].append(float(count))
        if on_turn:
            on_turn(turn)
        if progress:
            progress(turn.outcome.finished_at / simulator.ends_at)
    record = simulator.record
    series = Series(
        record.step_seconds,
        record.load,
        record.throughput(),
        record.lag(),
        record.nodes.astype(np.float64),
        record.instances.astype(np.float64),
        record.price_per_hour,
    )
    oracle_nodes = scenario.oracle() if oracle is None else oracle
    staged = scenario.settings.mode == "staged"
    window = max(WINDOW_SECONDS, scenario.settings.trigger_seconds if staged else 0.0)
    peak = start.sized_for(start.peak_load).nodes
    measures = judge(series, oracle_nodes, peak, changes, window)
    return Run(series, measures, {name: np.array(c) for name, c in counts.items()}, alerts)
