"""The load that a policy acts on: what frequent samples show together, or what a schedule expects (P0)."""

from dataclasses import dataclass

from rheostat.analyze.forecasts import History, LeastSquares, Schedule
from rheostat.policies.base import Situation

NOISE = 0.02  # differences of this part of a load or level mean nothing
WHOLE_WINDOW_SECONDS = 60.0  # a window as long as this shows the load by itself


@dataclass(frozen=True, slots=True)
class Outlook:
    """A load, and what is known about it."""

    load: float
    may_rise: bool = False  # or already does: then nothing shrinks
    expected: bool = False  # by a schedule; else as measured
    alert: str | None = None

    @property
    def word(self) -> str:
        """What a reason calls the load."""
        return "expected load" if self.expected else "load"


def trend(situation: Situation, history: History, samples: int) -> Outlook:
    """Frequent samples vary too much to act on one: the fitted line's value now, and whether it rises."""
    if situation.observation.seconds >= WHOLE_WINDOW_SECONDS:
        return Outlook(situation.load)
    line = LeastSquares(samples).line(history)
    if line is None:
        return Outlook(situation.load, may_rise=True)  # too few samples to know
    lowest, highest = min(load for _, load in history), max(load for _, load in history)
    rises = line.change(history[0][0], situation.now) > 0 and highest - lowest > NOISE * situation.load
    # After a jump the line overshoots every load there was.
    return Outlook(min(highest, max(lowest, line.at(situation.now))), may_rise=rises)


def ahead(
    situation: Situation, schedule: Schedule, present: Outlook, lead_seconds: float, band: float
) -> Outlook:
    """The schedule's highest load until the lead time, where the window's load was as expected."""
    window, expected = situation.observation, schedule.expected(situation.local_start)
    # A source that counts nothing itself shows its load by batches, the first of which began earlier.
    before = (window.application.trigger_seconds or 0.0) + (window.application.batch_seconds or 0.0)
    then = expected.path(window.start - before, window.end)[:-1]
    low, high = float(then.min()), float(then.max())
    if not low * (1 - band) <= situation.load <= high * (1 + band):
        around = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
        alert = f"load {situation.load:,.0f} rows/s left the expected band around {around}"
        return Outlook(present.load, present.may_rise, alert=alert)
    highest = float(expected.path(situation.now, situation.now + lead_seconds).max())
    return Outlook(max(present.load, highest), present.may_rise, expected=True)
