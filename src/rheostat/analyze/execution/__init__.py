"""The execution models: how instances share slots, and what parallelism gains.

Policies, guards and commands ask the model and assume nothing themselves. `busy` is the number of slots
that an operator keeps busy: its demand times the seconds for which one row occupies a slot.
"""

from rheostat.analyze.execution.fixed_tasks import FixedTasks
from rheostat.analyze.execution.pipelined import Pipelined, Storm
from rheostat.analyze.execution.questions import ExecutionModel, ceil
from rheostat.analyze.execution.staged import Staged

MODES = ("pipelined", "staged", "storm")

__all__ = ["MODES", "ExecutionModel", "FixedTasks", "Pipelined", "Staged", "Storm", "ceil"]
