"""The question behind `rheostat allocate --journal`: the running application as P4's topology."""

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.allocate.from_windows import WAIT, from_windows
from rheostat.allocate.measured import MeasuredTopology
from rheostat.analyze.execution import ExecutionModel, Pipelined, Storm
from rheostat.analyze.leaves import leaf_throughput
from rheostat.control.turn import Turn
from rheostat.journal.reader import JournalReader
from rheostat.model.errors import UserError
from rheostat.model.observation import Measure

WINDOWS, SECONDS = 300, 300.0  # that are looked at; each operator counts with its recent ones
STAGED = ("microbatch", "staged")
MODELS: Mapping[str, ExecutionModel] = {"storm": Storm()}  # all others are pipelined


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What the newest windows of a run's present configuration show."""

    topology: MeasuredTopology
    parallelism: Mapping[str, int]
    windows: int  # of the present configuration
    seconds: float  # from the first window's start to the last one's end
    throughput: Measure  # of the leaves, in rows/s


def read_measured(journal: JournalReader) -> MeasuredRun:
    """Build the allocators' input from a journal; UserError says what is missing and what to do."""
    facts = journal.facts()
    if facts.get("mode") in STAGED:
        raise UserError(
            f"{journal.path}: in micro-batch mode the stages take turns on all slots, so no operator has a "
            "capacity of its own that instances would raise: let a policy choose the nodes (`rheostat run "
            "--policy ds2`), or run the application with --mode realtime"
        )
    turns = _of_present_configuration(journal)
    if not turns:
        raise UserError(f"{journal.path}: has no window of the present configuration yet; {WAIT}")
    name = facts.get("application") or facts.get("topology") or "application"
    windows = [turn.observation for turn in turns]
    running = turns[-1].plan.current.parallelism
    model = MODELS.get(str(facts.get("mode")), Pipelined())
    try:
        topology = from_windows(str(name), windows, running, model)
    except UserError as error:
        raise UserError(f"{journal.path}: {error}") from None
    seconds = windows[-1].end - windows[0].start
    return MeasuredRun(topology, running, len(windows), seconds, leaf_throughput(windows, lately=True))


def _of_present_configuration(journal: JournalReader) -> list[Turn]:
    """The newest turns whose windows were measured in the configuration that runs now, oldest first."""
    newest = journal.newest(WINDOWS)
    present = newest[-1].outcome.configuration if newest else None
    turns: list[Turn] = []
    for turn in reversed(newest):
        old = turns and turns[-1].observation.end - turn.observation.end > SECONDS
        if old or turn.plan.current != present:
            break
        turns.insert(0, turn)
    return turns
