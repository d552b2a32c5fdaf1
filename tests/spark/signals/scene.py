"""An application whose load and costs a test sets, and the windows in which each signal is on real Spark."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rheostat.analyze.evaluation import Evaluation, evaluate
from rheostat.control.loop import Loop
from rheostat.control.turn import Turn
from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.decision import Cause, Status
from rheostat.model.observation import Observation
from rheostat.policies.registry import build
from rheostat.services.local_cluster import LocalCluster
from tests.spark.controllers import eventually
from tests.spark.shared import Shared
from tests.spark.support import application, observe_batches, observe_open_window

WAIT_SECONDS = 0.01  # for which a row holds `wait`: an instance serves a hundred rows/s
MOST_NODES = 2


@dataclass(frozen=True)
class Scene:
    """A running application, and the file that says its load."""

    shared: Shared
    orders: Path
    late_seconds: float  # after which a batch that still runs is late; 0 in Real-Time Mode, where none is

    @property
    def engine(self) -> SparkEngine:
        return self.shared.engine

    def offer(self, rate: float, *, rise: float = 0.0, wait: float = WAIT_SECONDS, rounds: int = 0) -> None:
        """Offer so many rows/s from now on, each second so many more, and rows that cost so much."""
        write(self.orders, rate, rise, wait, rounds)

    def calm(self) -> None:
        """Offer few rows."""
        self.offer(10)

    def calm_down(self, wait: int = 1) -> Observation:
        """Run in this size, with nothing left to do from before."""
        self.at(wait=wait)
        self.calm()
        return self.window(lambda seen, _: (seen.application.backlog or 0.0) < 100, "no backlog")

    def at(self, nodes: int = 1, wait: int = 1) -> SparkEngine:
        """Run one instance of each operator, but for `wait`."""
        single = dict.fromkeys(self.engine.topology.names, 1)
        return self.shared.at(nodes, **{**single, "wait": wait})

    def evaluate(self, observed: Observation) -> Evaluation:
        engine = self.engine
        return evaluate(engine.topology, observed, engine.model, engine.kinds[0])

    def window(
        self,
        shows: Callable[[Observation, Evaluation], bool],
        what: str,
        *,
        running: float = 0.0,
        open_for: float = 0.0,
    ) -> Observation:
        """The first window from now on that shows something; it is closed once a batch ended so long ago."""

        def look() -> Observation | None:
            eventually(lambda: self._shows_a_batch(running, open_for), what)
            observed = self.engine.observe()
            judged = self.evaluate(observed)
            return observed if not judged.missing and shows(observed, judged) else None

        self.engine.observe()
        return eventually(look, what, pause=0.0)

    def _shows_a_batch(self, running: float, open_for: float) -> bool:
        engine = self.engine
        engine.poll()
        ended = [batch.finished for query in engine.monitor.queries.values() for batch in query.batches]
        now = engine.now()
        return bool(ended) and now - ended[-1] >= running and now - engine.monitor.start >= open_for


def write(orders: Path, rate: float, rise: float, wait: float, rounds: int) -> None:
    said = {"rate": rate, "rise": rise, "wait_nanoseconds": round(wait * 1e9), "rounds": rounds}
    new = orders.with_suffix(".new")
    new.write_text(json.dumps(said))
    new.replace(orders)


def running(cluster: LocalCluster, folder: Path, mode: str, kind: NodeKind, burning: int) -> Iterator[Scene]:
    orders = folder / "orders.json"
    write(orders, 10, 0.0, WAIT_SECONDS, 0)
    names = ["in", "wait", *(f"burn{number}" for number in range(burning))]
    with application(
        cluster,
        folder,
        "commanded",
        str(orders),
        str(burning),
        parallelism=dict.fromkeys(names, 1),
        mode=mode,
        kind=kind,
    ) as engine:
        observe_batches(engine, 3)
        yield Scene(Shared(engine, folder), orders, 0.0 if mode == "realtime" else 4.5)


def act(scene: Scene, observed: Observation, policy: str, patch: pytest.MonkeyPatch) -> Turn:
    """Let a policy decide on a window, apply what it decides, and see that it runs."""
    engine = scene.at()
    turn = decide(scene, observed, policy, patch)
    assert turn.outcome.status is Status.APPLIED, turn.outcome.reason
    after = observe_open_window(engine, 1)
    assert {name: one.parallelism for name, one in after.operators.items()} == turn.plan.target.parallelism
    assert [node.executors for node in after.nodes] == [1] * turn.plan.target.nodes
    return turn


def decide(
    scene: Scene, observed: Observation, policy: str, patch: pytest.MonkeyPatch, *, dry_run: bool = False
) -> Turn:
    """One turn of the control loop on a window that was measured before."""
    with patch.context() as replay:
        replay.setattr(scene.engine, "observe", lambda: observed)
        loop = Loop(scene.engine, scene.engine.clock, build(policy), Bounds(1, MOST_NODES), dry_run=dry_run)
        return loop.turn()


def cause(turn: Turn, measure: str, subject: str) -> Cause:
    """The cause of a decision that names this measure."""
    found = [each for each in turn.plan.causes if (each.measure, each.subject) == (measure, subject)]
    assert found and found[0].holds(), turn.plan.causes
    return found[0]
