"""`rheostat tune`: ELYSIUM's thresholds for a load, learned in the simulator."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from rheostat.cli import console, options
from rheostat.model.errors import UserError

EPISODES = 100
LEAST_EPISODES = 20


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "tune",
        epilog="Example: rheostat tune -t topk -c stair:duration=40m:noise=poisson -m storm "
        "--node cores=4,slots=4,startup_seconds=0 --nodes 1:4",
    )(_tune)


def _tune(
    topology: options.TopologyOption,
    curve: options.CurveOption,
    mode: options.SimulatedModeOption = "pipelined",
    seed: options.SeedOption = 0,
    node: options.NodeKindsOption = [""],  # noqa: B006 - typer copies it
    nodes: options.NodesOption = "1:1000",
    settings: options.SetOption = None,
    episodes: Annotated[
        int, typer.Option("--episodes", min=LEAST_EPISODES, help="Simulated runs for each threshold.")
    ] = EPISODES,
    as_json: options.JsonOption = False,
) -> None:
    """Learn ELYSIUM's thresholds for a load in the simulator.

    They are cpu_max_thr, core_max_thr and core_min_thr, learned by Q-learning. The reward is threshold -
    throughput degradation; an episode is the whole load, with noise of its own.
    """
    from rheostat.analyze.judging import Measures
    from rheostat.bench.tuning import tune
    from rheostat.cli import tune_page
    from rheostat.cli.scenario_options import read_scenario
    from rheostat.engines.simulator.comparison import run_policy
    from rheostat.engines.simulator.scenario import Scenario, check_start
    from rheostat.policies.elysium import Elysium

    def scenario_of(number: int) -> Scenario:
        return read_scenario(topology, curve, mode, number, node, nodes, settings)

    def judge(thresholds: Mapping[str, float], number: int) -> Measures:
        given: dict[str, Any] = dict(thresholds)
        try:
            policy = Elysium(**given)
        except ValueError as error:
            raise UserError(f"elysium: {error}") from None
        return run_policy(scenario_of(number), policy).measures

    check_start(scenario_of(seed), {"elysium": Elysium()})
    with console.progress() as begin:
        tuned = tune(judge, episodes, seed, begin)
    title = f"elysium on {topology} under {curve} ({mode}, simulated, {episodes} episodes each)"
    tune_page.show(title, tuned, as_json)
