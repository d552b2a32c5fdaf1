"""Who decides about rewrites of a script's state: the user, above all policies."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import pytest

from rheostat.analyze.evaluation import evaluate
from rheostat.analyze.execution import ExecutionModel, FixedTasks
from rheostat.control.guards import Guards
from rheostat.control.loop import Loop
from rheostat.control.rescaling import Rescale, Rescaling
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.decision import Outcome, Plan, Proposal, Status
from rheostat.model.observation import ApplicationMeasures, NodeMeasures, Observation, OperatorMeasures
from rheostat.model.rewrite import Rewrite
from rheostat.model.topology import Operator, Stream, Topology
from rheostat.policies.base import Info, Memory, Policy, Situation, hold
from tests.control.fakes import FakeClock

HOT = Topology("hot", (Operator("scan"), Operator("count")), (Stream("scan", "count"),))
KIND = NodeKind(cores=1.0, slots=2)
RESCALES = tuple(Rescale)
OWN = Rewrite(("count",), 200, 12, 12.0, 2.0, 15.0)


@dataclass
class ScriptEngine:
    """A script whose query keeps its state in so many partitions, each of which costs 0.1 s per batch."""

    partitions: int = 200
    refusal: str | None = None
    refused: tuple[str, ...] = ()  # of these operators alone
    plans_state: bool = False
    blind: bool = False
    clock: FakeClock = field(default_factory=lambda: FakeClock(60.0))
    topology: Topology = HOT
    kinds: tuple[NodeKind, ...] = (KIND,)
    configuration: Configuration = field(
        default_factory=lambda: Configuration({"scan": 2, "count": 2}, executors=1, nodes=1)
    )
    alarmed: bool = False
    asked: list[tuple[str, ...]] = field(default_factory=list)  # whose state may be rewritten
    applied: list[Plan] = field(default_factory=list)

    @property
    def model(self) -> ExecutionModel:
        pinned = {"scan": 2, "count": self.partitions}
        return FixedTasks(3.0, 0.1, pinned, partition_seconds={"count": 0.1})

    def rewrite_refusal(self, operators: Collection[str]) -> str | None:
        self.asked.append(tuple(operators))
        return "its store cannot" if {*operators} & {*self.refused} else self.refusal

    def observe(self) -> Observation:
        rows = OperatorMeasures(2, received=1_000.0, processed=1_000.0, cpu_seconds=1.0, busy_seconds=1.0)
        operators = {
            "scan": replace(rows, emitted={"count": 1_000.0}),
            "count": replace(rows, partitions=self.partitions, partition_seconds=0.1),
        }
        application = ApplicationMeasures(load={"scan": 100.0}, throughput=100.0)
        if self.blind:
            operators.clear()
        now = self.clock.now()
        return Observation(now - 10.0, now, operators, (NodeMeasures("n1", 2, 1.0, cpu=0.5),), application)

    def apply(self, plan: Plan) -> Outcome:
        now, status = self.clock.now(), Status.APPLIED if plan.changes else Status.UNCHANGED
        self.applied += [plan] * plan.changes
        return Outcome(status, self.configuration, now, now, "done")


@dataclass(frozen=True)
class Always(Policy):
    """Holds, or wishes for this rewrite."""

    info = Info("always", "operators", "reactive", "tests")
    rewrite: Rewrite | None = None

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        return replace(hold(situation, "hold: enough"), rewrite=self.rewrite), memory


def situation(engine: ScriptEngine) -> Situation:
    seen = engine.observe()
    judged = evaluate(engine.topology, seen, engine.model, KIND)
    assert not judged.missing
    return Situation(
        60.0, HOT, engine.configuration, seen, judged, engine.model, (KIND,), Bounds(1, 3)
    )  # fmt: skip


def checked(mode: Rescale, engine: ScriptEngine, own: Rewrite | None = None) -> Proposal:
    around = situation(engine)
    proposal = replace(hold(around, "hold: enough"), rewrite=own)
    return Rescaling(mode).check(proposal, around, engine)


def test_with_auto_the_rewrite_takes_the_place_of_what_the_policy_proposed() -> None:
    engine = ScriptEngine()
    proposal = checked(Rescale.AUTO, engine)
    assert proposal.rewrite is not None
    assert (proposal.rewrite.operators, proposal.rewrite.before, proposal.rewrite.after) == (
        ("count",),
        200,
        6,
    )
    assert proposal.target == engine.configuration
    assert proposal.reason == proposal.rewrite.describe()
    assert proposal.rejected == ("the policy alone: hold: enough",)
    assert [str(cause) for cause in proposal.causes] == ["state partitions of count 200 > 6"]
    assert all(cause.holds() for cause in proposal.causes)
    assert proposal.expected == {"batch (s)": proposal.rewrite.predicted_seconds}
    assert proposal.advice is None
    assert engine.asked == [("count",)]


def test_by_default_the_policy_decides_and_the_advice_says_what_a_rewrite_would_bring() -> None:
    assert Rescaling().mode is Rescale.ADVISE
    proposal = checked(Rescale.ADVISE, ScriptEngine())
    assert (proposal.rewrite, proposal.reason) == (None, "hold: enough")
    assert proposal.advice is not None
    assert proposal.advice.startswith("6 state partitions instead of 200 (count): batches of ")
    assert proposal.advice.endswith(": `--rescale auto` does it")


def test_what_cannot_be_rewritten_does_not_keep_the_rest_from_it() -> None:
    both = replace(OWN, operators=("count", "totals.count"))
    proposal = checked(Rescale.AUTO, ScriptEngine(refused=("totals.count",)), both)
    assert proposal.rewrite == OWN


def test_with_never_nothing_is_said_and_nobody_is_asked() -> None:
    engine = ScriptEngine()
    proposal = checked(Rescale.NEVER, engine)
    assert (proposal.rewrite, proposal.advice, engine.asked) == (None, None, [])


@pytest.mark.parametrize("mode", [Rescale.AUTO, Rescale.ADVISE])
def test_state_that_spark_cannot_rewrite_is_left_alone_and_the_advice_says_why(mode: Rescale) -> None:
    proposal = checked(mode, ScriptEngine(refusal="its checkpoint is another provider's"))
    assert (proposal.rewrite, proposal.reason) == (None, "hold: enough")
    assert proposal.advice is not None
    assert proposal.advice.endswith("; but its checkpoint is another provider's")


@pytest.mark.parametrize("mode", RESCALES)
def test_nothing_is_proposed_where_partitions_are_few_enough(mode: Rescale) -> None:
    engine = ScriptEngine(partitions=6)
    proposal = checked(mode, engine)
    assert (proposal.rewrite, proposal.advice, engine.asked) == (None, None, [])


@pytest.mark.parametrize("mode", RESCALES)
def test_applications_whose_state_is_rescaled_by_plan_are_left_to_their_policies(mode: Rescale) -> None:
    proposal = checked(mode, ScriptEngine(plans_state=True), OWN)
    assert (proposal.rewrite, proposal.advice) == (None, None)


def test_a_policy_that_proposes_a_rewrite_itself_obeys_as_well() -> None:
    engine = ScriptEngine(partitions=6)  # nothing that is worth it by our own reckoning
    assert checked(Rescale.AUTO, engine, OWN).rewrite == OWN
    assert checked(Rescale.NEVER, engine, OWN).rewrite is None
    advised = checked(Rescale.ADVISE, engine, OWN)
    assert advised.rewrite is None
    assert advised.advice == f"{OWN.describe()}: `--rescale auto` does it"
    refused = checked(Rescale.AUTO, ScriptEngine(refusal="no"), OWN)
    assert (refused.rewrite, refused.advice) == (None, f"{OWN.describe()}; but no")


def test_a_rewrite_is_a_change_that_the_guards_count_and_hold_back() -> None:
    engine = ScriptEngine()
    rescaling = Rescaling(Rescale.AUTO)
    loop = Loop(
        engine, engine.clock, Always(60.0), Bounds(1, 3), Guards(cooldown_seconds=100.0), rescaling=rescaling
    )
    turns = list(loop.run(until=250.0))
    assert [turn.plan.decided_at for turn in turns] == [120.0, 180.0, 240.0]
    done, held, again = turns
    assert (done.plan.changes, done.outcome.status) == (True, Status.APPLIED)
    assert done.plan.describe() == "state of count 200 -> 6 partitions"
    assert (held.plan.changes, held.plan.rewrite, held.outcome.status) == (False, None, Status.UNCHANGED)
    assert held.plan.vetoes == ("cool-down: the last change was 60 s ago, less than 100 s",)
    assert again.plan.rewrite is not None  # here the engine did nothing


def test_a_dry_run_says_what_it_would_rewrite() -> None:
    engine = ScriptEngine()
    rescaling = Rescaling(Rescale.AUTO)
    loop = Loop(engine, engine.clock, Always(60.0), Bounds(1, 3), rescaling=rescaling, dry_run=True)
    [turn] = loop.run(until=130.0)
    assert turn.outcome.status is Status.DRY_RUN
    assert turn.outcome.reason == "dry run: would change state of count 200 -> 6 partitions"
    assert engine.applied == []


def test_the_last_advice_stands_while_nothing_is_measured() -> None:
    engine = ScriptEngine()
    loop = Loop(engine, engine.clock, Always(60.0), Bounds(1, 3))
    first = loop.turn()
    assert first.plan.advice is not None
    engine.blind = True
    assert loop.turn().plan.advice == first.plan.advice
    engine.blind, engine.partitions = False, 6
    assert loop.turn().plan.advice is None
