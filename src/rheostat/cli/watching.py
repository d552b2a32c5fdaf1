"""A run that is under way, as a command shows it: live in a terminal, until it ends or Ctrl-C."""

import logging
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType

from rich.live import Live

from rheostat.cli import console
from rheostat.cli.running import Order, Running, started
from rheostat.cli.view import View, words
from rheostat.control.loop import Turn
from rheostat.engines.spark.modes import check_mode
from rheostat.model.errors import UserError
from rheostat.policies.base import Policy

RESCALE_ABOVE = 0.9  # utilisation that justifies to stop a stream and rewrite its state

TRIGGERS = {"microbatch": 3.0, "realtime": 5.0}  # seconds, of the commands that choose one


def paced(policy: Policy, period: float) -> Policy:
    """The policy, asked as often as the user wants."""
    return replace(policy, period_seconds=positive("--period", period, least=0.5))


def trigger_of(mode: str, given: float | None, spark: Mapping[str, str]) -> float:
    """The trigger interval of a command that chooses one, with these settings of Spark."""
    check_mode(mode, None)
    seconds = TRIGGERS[mode] if given is None else positive("--trigger", given)
    check_mode(mode, seconds, spark)
    return seconds


def positive(option: str, value: float, least: float = 0.001) -> float:
    """A number of seconds that makes sense."""
    if not least <= value <= 1e9:
        raise UserError(f"{option} must be at least {least:g}, not {value:g}")
    return value


@dataclass
class Ending:
    """How a command ends; as for any other, a signal's code is 128 and its number."""

    code: int = 0


@contextmanager
def interruptible() -> Iterator[Ending]:
    """Ctrl-C, SIGTERM and a closed terminal end a run in order; a second one does not cut that short."""
    ending = Ending()

    def end(number: int, _frame: FrameType | None) -> None:
        if not ending.code:
            ending.code = 128 + number
            raise KeyboardInterrupt

    numbers = [
        n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield ending
    except KeyboardInterrupt:
        console.fail("interrupted: the run was ended in order")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Warnings(logging.Handler):
    """What the parts of a run warn of, a line each: a journal that cannot be written, missing quotas."""

    def emit(self, record: logging.LogRecord) -> None:
        console.fail(record.getMessage())


@contextmanager
def _warned() -> Iterator[None]:
    logger, handler = logging.getLogger("rheostat"), _Warnings()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@dataclass(frozen=True)
class Watching:
    """A run that is under way, and what shows it."""

    running: Running
    view: View
    show: Callable[[Turn], None]


@contextmanager
def watched(order: Order, ends_after: float | None) -> Iterator[Watching]:
    """Start a run and show it: live in a terminal, else a line per change."""
    views: list[View] = []

    def tick() -> None:
        for view in views:
            view.tick(view.engine.now())

    def tell(turn: Turn) -> None:
        views[0].add(turn)
        if turn.plan.changes or turn.plan.alert:
            console.out.print(f"{turn.plan.decided_at:7.0f} s  {words(turn)}", soft_wrap=True)

    with (
        _warned(),
        console.err.status("starting") as status,
        started(order, status.update, tick) as running,
    ):
        status.stop()
        title = f"{order.name}: {order.policy_text}, {order.mode}" + (" (dry run)" if order.dry_run else "")
        view = View(title, running.engine, None if ends_after is None else running.clock.now() + ends_after)
        views.append(view)
        if console.out.is_terminal:
            with Live(view, console=console.out, refresh_per_second=4):
                yield Watching(running, view, view.add)
        else:
            yield Watching(running, view, tell)
