"""The paper's neural network (P2, sections 3.2 and 5.1, ILP): 13 inputs, 24 hidden neurons, 5 outputs."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from rheostat.analyze.forecasts.evenly import evenly
from rheostat.analyze.forecasts.forecast import Forecast, certain
from rheostat.analyze.forecasts.forecaster import Forecaster, History, Memory, keep
from rheostat.analyze.forecasts.network_file import Learned, load_learned
from rheostat.analyze.perceptron import fresh, train
from rheostat.model.errors import UserError
from rheostat.workloads.curve import FloatArray

PAST, HIDDEN, AHEAD = 10, 24, 5  # the inputs are day, hour, minute and the loads of ten minutes
HELD_BACK = 0.3
MOST_WINDOWS = 6_000  # of the training, evenly spaced


@dataclass(frozen=True)
class Network(Forecaster):
    """Day of the week, hour, minute and the last ten loads give the next five; for more it is fed its own.

    As in the paper: linear, tanh, tanh; everything scaled to [0, 1] between the extremes of the training;
    resilient propagation; 30 % of the training held back, here to choose the best weights. So it expects no
    load above those that it was trained on.
    """

    learned: Learned | None = None
    day: float = 86_400.0
    epochs: int = 300
    seed: int = 0

    @staticmethod
    def parse(text: str) -> "Network":
        """Parse nothing, or the file that `rheostat forecast backtest --out` wrote."""
        if not text:
            return Network()
        learned = load_learned(Path(text), PAST + 3, HIDDEN, AHEAD)
        return Network(learned, learned.day, step_seconds=learned.step_seconds)

    @property
    def needs_training(self) -> bool:
        return self.learned is None

    def paced(self, step_seconds: float, day_seconds: float = 86_400.0) -> Self:
        return replace(self, step_seconds=step_seconds, day=day_seconds)

    def observe(self, memory: Memory, at: float, rate: float, local_start: float = 0.0) -> Memory:
        return {"recent": keep(memory, at, rate, (PAST - 0.5) * self.step_seconds)}

    def forecast(self, memory: Memory, now: float, steps: int, local_start: float = 0.0) -> Forecast | None:
        even = evenly(memory.get("recent", ()), self.step_seconds, PAST)
        if self.learned is None or even is None:
            return None
        learned, loads = self.learned, ((even - self.learned.low) / self.learned.spread).tolist()
        for step in range(0, steps, AHEAD):
            clock = self._clock(np.array([now + local_start + step * self.step_seconds]))
            inputs = np.concatenate([clock[0], loads[-PAST:]])
            loads += learned.network(inputs[None, :])[0].tolist()
        path = [learned.low + learned.spread * load for load in loads[PAST : PAST + steps]]
        return certain(now, self.step_seconds, path)

    def trained(self, history: History, local_start: float = 0.0) -> Self:
        """Train on a whole history, unless it was trained before; UserError if that is too short."""
        if self.learned is not None:
            return self
        even = evenly(history, self.step_seconds)
        if even is None or len(even) < 3 * (PAST + AHEAD):
            raise UserError(f"the network needs at least {3 * (PAST + AHEAD)} steps to be trained on")
        low, spread = float(even.min()), float(np.ptp(even)) or 1.0
        windows = np.lib.stride_tricks.sliding_window_view((even - low) / spread, PAST + AHEAD)
        chosen = np.linspace(0, len(windows) - 1, min(len(windows), MOST_WINDOWS)).astype(np.int64)
        before_end = (len(windows) - 1 - chosen + AHEAD) * self.step_seconds
        issued: FloatArray = np.asarray(history[-1][0] + local_start - before_end, dtype=np.float64)
        inputs = np.column_stack([self._clock(issued), windows[chosen, :PAST]])
        untrained = fresh(PAST + 3, HIDDEN, AHEAD, self.seed)
        network = train(untrained, inputs, windows[chosen, PAST:], HELD_BACK, self.epochs)
        return replace(self, learned=Learned(network, low, spread, self.day, self.step_seconds))

    def _clock(self, local: FloatArray) -> FloatArray:
        """The day of the week, the hour and the minute, each scaled to [0, 1]."""
        day = local / self.day
        hour = day % 1 * 24
        return np.column_stack([np.floor(day % 7) / 6, np.floor(hour) / 23, np.floor(hour % 1 * 60) / 59])
