"""Spark's events with missing or absurd fields: no traceback, no wrong action, nothing absurd recorded."""

import json
import math
from collections.abc import Collection
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.analyze.execution import ExecutionModel, Pipelined, Staged
from rheostat.control.guards import Guards
from rheostat.control.loop import Loop
from rheostat.control.turn import Turn
from rheostat.engines.spark.events import read_events
from rheostat.engines.spark.observe.application_measures import application, stage_overhead
from rheostat.engines.spark.observe.batch_window import BatchWindow
from rheostat.engines.spark.observe.batches import Ledger
from rheostat.engines.spark.observe.operator_measures import operators
from rheostat.engines.spark.protocol import PROTOCOL_VERSION, Arrival, TakeReport
from rheostat.engines.spark.wire import ProtocolError, read_answer
from rheostat.journal.store import Journal
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.decision import Outcome, Plan, Status
from rheostat.model.observation import NodeMeasures, Observation
from rheostat.model.topology import Operator, Stream, Topology
from rheostat.policies.registry import build
from tests.control.fakes import FakeClock

from .absurd import FUZZ, VALUES, spoiled

CHAIN = Topology("chain", (Operator("in"), Operator("work"), Operator("out", max_parallelism=6)),
                 (Stream("in", "work"), Stream("work", "out")))  # fmt: skip
STAGES = {"in": (0,), "work": (1,), "out": (2,)}
KIND = NodeKind(cores=1.0, slots=2)
BOUNDS = Bounds(1, 12)
CURRENT = Configuration(dict.fromkeys(CHAIN.names, 2), 3, 3)
POLICIES = ("ds2", "joint", "threshold", "occupancy", "multilevel", "elysium", "e2df", "autoscale", "static")
BATCHES = 5


def heard(cpu_seconds: float) -> list[dict[str, Any]]:
    """Five batches of 600 rows, 2 s apart; every stage needs so much CPU."""
    events: list[dict[str, Any]] = [{"event": "executor added", "id": "0", "slots": 2, "at": 61_000}]
    took = 100 + round(500 * cpu_seconds)
    for batch in range(BATCHES):
        for stage in range(3):
            number, each = 10 * batch + stage, cpu_seconds * 1e9 / 2
            events.append(
                {"event": "stage", "id": number, "parents": [number - 1] if stage else [], "query": "q",
                 "batch": batch, "tasks": 2, "failed": False, "cpu_ns": cpu_seconds * 1e9,
                 "run_ms": 1000 * cpu_seconds, "wait_ms": 0, "gc_ms": 0, "python_ms": 0,
                 "each": [["0", each, 300, each / 1e6, 0, None], ["1", each, 300, each / 1e6, 1, 300]]}
            )  # fmt: skip
        ends = {"topic": {"0": 600 * batch}}
        progress = {
            "id": "q", "timestamp": f"1970-01-01T00:01:{2 * batch:02d}.000Z", "batchId": batch,
            "numInputRows": 600, "durationMs": {"triggerExecution": took, "addBatch": took},
            "observedMetrics": {name: {"rows": 600} for name in CHAIN.names},
            "stateOperators": [{"numRowsTotal": 5, "memoryUsedBytes": 900, "customMetrics": {}}],
            "sources": [{"startOffset": ends, "endOffset": ends, "latestOffset": ends}],
        }  # fmt: skip
        events.append({"event": "progress", "progress": progress})
    return [*events, {"event": "query ended", "run": "r", "reason": "no reason", "at": 70_000}]


SCENES = {"idle": heard(0.001), "busy": heard(3.6)}


@dataclass
class Replayed:
    """An engine that measures what the events say, by the code that measures Spark."""

    events: list[Any]
    realtime: bool = False
    topology: Topology = CHAIN
    kinds: tuple[NodeKind, ...] = (KIND,)
    configuration: Configuration = CURRENT
    arrived: tuple[Arrival, ...] = ()
    alarmed: bool = False
    plans_state: bool = True

    def rewrite_refusal(self, operators: Collection[str]) -> str | None:
        return None

    @property
    def model(self) -> ExecutionModel:
        return Pipelined() if self.realtime else Staged(2.0, self._overhead)

    _overhead: float = 0.1

    def observe(self) -> Observation:
        ledger = Ledger(60.0, "in", self.realtime)
        ledger.count_arrivals(self.arrived)
        batches, reported = ledger.read(read_events(self.events))
        window = BatchWindow(None, tuple(batches), self.realtime, 12.0)
        overheads = [stage_overhead(batch, 3, 4) for batch in batches]
        self._overhead = next((seen for seen in overheads if seen is not None), 0.1)
        measured = operators(
            CHAIN,
            CHAIN.names,
            window,
            STAGES,
            CURRENT.parallelism,
            {"0": "n1", "1": "n2"},
            {"n1": KIND, "n2": KIND},
        )
        nodes = tuple(NodeMeasures(name, KIND.slots, KIND.cores, cpu=0.5) for name in ("n1", "n2", "n3"))
        return Observation(0.0, 12.0, measured, nodes, application({"in": 1.0}, window, 2.0), tuple(reported))

    def apply(self, plan: Plan) -> Outcome:
        status = Status.APPLIED if plan.changes else Status.UNCHANGED
        return Outcome(status, plan.target, plan.decided_at, plan.decided_at, plan.reason)


def arrivals(samples: list[Any]) -> tuple[Arrival, ...]:
    """What the protocol lets through of arrivals that a driver sends."""
    query = {"name": "in", "id": "q", "run": "r", "busy": False, "stages": [], "arrived": samples}
    report = {"kind": "report", "events": [], "executors": [], "queries": [query]}
    line = json.dumps({"version": PROTOCOL_VERSION, "answer": report}).encode()
    try:
        return read_answer(TakeReport(), line).queries[0].arrived
    except ProtocolError as error:
        assert "\n" not in str(error)
        return ()


def turn(policy: str, engine: Replayed) -> Turn:
    return Loop(engine, FakeClock(12.0), build(policy), BOUNDS, Guards()).turn()


def same_way(wanted: Configuration, chosen: Configuration) -> bool:
    """Whether nothing is grown that sound events would shrink or leave alone, and the other way round."""
    pairs = [(CURRENT.nodes, wanted.nodes, chosen.nodes)]
    pairs += [
        (n, wanted.parallelism[name], chosen.parallelism[name]) for name, n in CURRENT.parallelism.items()
    ]
    return all(got == had or (got - had) * (wish - had) > 0 for had, wish, got in pairs)


def numbers(value: Any) -> list[float]:
    """Every number in a tree of dataclasses, mappings and sequences."""
    if is_dataclass(value):
        return [n for f in fields(value) for n in numbers(getattr(value, f.name))]
    if isinstance(value, dict):
        return [n for part in value.values() for n in numbers(part)]
    if isinstance(value, tuple | list):
        return [n for part in value for n in numbers(part)]
    return [float(value)] if isinstance(value, int | float) else []


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("realtime", [False, True])
def test_sound_events_let_a_policy_decide(scene: str, realtime: bool) -> None:
    """Else the tests below could not fail: the wish differs from what runs, up when busy, down when idle."""
    done = turn("ds2", Replayed(SCENES[scene], realtime))
    assert done.evaluation.missing == ()
    wanted, had = done.plan.target, CURRENT
    assert wanted.nodes > had.nodes if scene == "busy" else wanted.nodes < had.nodes


@FUZZ
@given(data=st.data(), scene=st.sampled_from(sorted(SCENES)), policy=st.sampled_from(POLICIES))
def test_absurd_events_never_lead_another_way_than_sound_ones(
    tmp_path: Path, data: st.DataObject, scene: str, policy: str
) -> None:
    realtime = data.draw(st.booleans())
    events = data.draw(spoiled(SCENES[scene]))
    wanted = turn(policy, Replayed(SCENES[scene], realtime)).plan.target
    done = turn(policy, Replayed(events, realtime))
    assert same_way(wanted, done.plan.target), done.plan.reason
    assert done.plan.alert is None or "failed" not in done.plan.alert, done.plan.alert
    seen = done.observation
    assert all(0 <= n < math.inf for n in numbers([seen.operators, seen.application, done.evaluation]))
    assert all(math.isfinite(n) for n in numbers(seen.events))
    path = tmp_path / "j.sqlite"
    path.unlink(missing_ok=True)
    with Journal(path) as journal:
        journal.done(done)
        assert journal.last() == done


@FUZZ
@given(
    events=st.lists(
        st.sampled_from(VALUES)
        | st.dictionaries(
            st.sampled_from(["event", "query", "id", "batch", "progress", "kind", "text", "at", "reason"]),
            st.sampled_from([*VALUES, "stage", "progress", "note", "query ended", "executor removed"]),
        ),
        max_size=6,
    ),
    arrived=st.lists(st.sampled_from(VALUES) | st.lists(st.sampled_from(VALUES), max_size=3), max_size=4),
)
def test_whatever_is_heard_is_no_reason_to_act(events: list[Any], arrived: list[Any]) -> None:
    done = turn("ds2", Replayed(events, True, arrived=arrivals(arrived)))
    assert not done.plan.changes
    assert all(math.isfinite(n) for n in numbers(done.observation))
    json.dumps([event.text for event in done.observation.events]).encode()


@pytest.mark.parametrize("value", [math.nan, -5, "x", None, 10**400, [3]])
@pytest.mark.parametrize("place", ["numInputRows", "batchId", "timestamp", "durationMs"])
def test_one_absurd_batch_holds_its_window_and_is_told(place: str, value: Any) -> None:
    events = heard(3.6)
    progress = events[8]["progress"]
    if place == "numInputRows":
        del progress["observedMetrics"]
    progress[place] = value
    done = turn("ds2", Replayed(events))
    assert not done.plan.changes
    assert "not measured" in done.plan.reason
    assert [event.kind for event in done.observation.events].count("absurd") == 1


def test_a_lost_batch_holds_its_window() -> None:
    events = heard(0.001)
    del events[8]
    assert not turn("ds2", Replayed(events)).plan.changes


def test_a_batch_whose_stages_were_not_heard_costs_what_the_others_did() -> None:
    events = heard(3.6)
    whole = turn("ds2", Replayed(list(events)))
    del events[9:11]
    part = turn("ds2", Replayed(events))
    assert part.evaluation.operators["work"].cost_seconds == pytest.approx(
        whole.evaluation.operators["work"].cost_seconds
    )
