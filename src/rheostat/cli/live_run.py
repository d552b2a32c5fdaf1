"""Shows a run: live in a terminal, otherwise a line per change."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.live import Live

from rheostat.cli import console, prose
from rheostat.cli.live_view import View, describe_turn, notes
from rheostat.control.turn import Turn
from rheostat.run.composition import Running, start_run
from rheostat.run.order import Order
from rheostat.run.samples import Sampler


@dataclass(frozen=True)
class LiveRun:
    """A run, its samples, and the function that shows a turn."""

    running: Running
    sampler: Sampler
    show: Callable[[Turn], None]


@contextmanager
def show_run(order: Order, ends_after: float | None) -> Iterator[LiveRun]:
    """Start a run and show it."""
    with (
        _warnings_shown(),
        console.err.status("starting") as status,
        _advice_at_the_end() as advise,
        start_run(order, status.update) as running,
    ):
        status.stop()
        sampler = Sampler(running.engine)
        running.heartbeat.listen(sampler.sample)
        advise(running)
        if not console.out.is_terminal:
            yield LiveRun(running, sampler, Lines().show)
            return
        title = f"{order.name}: {order.policy_text}, {order.mode}" + (" (dry run)" if order.dry_run else "")
        ends_at = None if ends_after is None else running.clock.now() + ends_after
        view = View(title, running.engine, sampler, ends_at)
        running.heartbeat.listen(view.update)
        with Live(view, console=console.out, refresh_per_second=4):
            yield LiveRun(running, sampler, view.add)


class Lines:
    """Prints a run line by line: what changes, what was noted, and alerts and advice when they are new."""

    def __init__(self) -> None:
        self._advised = self._alerted = ""

    def show(self, turn: Turn) -> None:
        """Print what is new in a turn; advice says more than the alert beside it."""
        plan, at = turn.plan, turn.plan.decided_at
        for event in notes(turn):
            self._print(event.at, event.text)
        advice = plan.advice or ""
        alert = "" if advice else plan.alert or ""
        if plan.changes or alert not in ("", self._alerted):
            self._print(at, describe_turn(turn))
        if advice not in ("", self._advised):
            self._print(at, f"advice: {advice}")
        self._alerted, self._advised = alert, advice

    @staticmethod
    def _print(at: float, text: str) -> None:
        console.out.print(f"{at:7.0f} s  {prose.plain(text)}", soft_wrap=True, markup=False)


@contextmanager
def _advice_at_the_end() -> Iterator[Callable[[Running], None]]:
    """Print what would have helped the run, once it has ended."""
    runs: list[Running] = []
    try:
        yield runs.append
    finally:
        for running in runs:
            if running.loop.advice:
                console.out.print(f"advice: {prose.plain(running.loop.advice)}", soft_wrap=True, markup=False)


class _Warnings(logging.Handler):
    """Prints a line for each warning: a journal that cannot be written, missing quotas."""

    def emit(self, record: logging.LogRecord) -> None:
        console.fail(record.getMessage())


@contextmanager
def _warnings_shown() -> Iterator[None]:
    logger, handler = logging.getLogger("rheostat"), _Warnings()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
