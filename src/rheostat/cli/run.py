"""`rheostat run`: a user's own streaming application, kept as large as its load needs."""

import logging
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.live import Live

from rheostat.cli import apps, console, settings, world
from rheostat.cli.running import JOURNAL, Order, Running, started
from rheostat.cli.view import View, words
from rheostat.control.guards import Guards
from rheostat.control.loop import Turn
from rheostat.engines.spark.modes import check_mode
from rheostat.model.errors import UserError
from rheostat.policies.base import Policy
from rheostat.policies.registry import build

DEFAULT_PERIOD_SECONDS = 10.0
DEFAULT_COOLDOWN_SECONDS = 30.0
DEFAULT_CHANGES_PER_HOUR = 60
RESCALE_ABOVE = 0.9  # utilisation that justifies to stop a stream and rewrite its state

TRIGGERS = {"microbatch": 3.0, "realtime": 5.0}  # seconds, of the commands that choose one

TriggerOption = Annotated[
    float | None, typer.Option("--trigger", help="Seconds between batches; else 3, in Real-Time Mode 5.")
]
ModeOption = Annotated[str, typer.Option("--mode", "-m", help="microbatch or realtime.")]
KafkaOption = Annotated[
    str | None,
    typer.Option("--kafka", help="HOST:PORT of a broker, for Spark's connector and for graphs."),
]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "run",
        epilog="Example: rheostat run app.py --policy ds2 --nodes 1:4 -- --its-own option",
    )(_run)


def _run(
    app: Annotated[
        str, typer.Argument(metavar="APP", help="A Python script, or one of `rheostat apps` by its name.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="The script's own arguments; put -- before its options.")
    ] = None,
    policy: Annotated[
        str, typer.Option("--policy", "-p", help="A name, or name(parameter=value,...).")
    ] = "ds2",
    master: Annotated[
        str | None, typer.Option("--master", help="spark://HOST:PORT of a cluster; else one on this machine.")
    ] = None,
    nodes: world.NodesOption = "1:4",
    node: world.NodeOption = "cores=1,slots=2,memory_mb=1024",
    mode: ModeOption = "microbatch",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and record, change nothing.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an earlier run of the same folder.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where the run keeps its journal; else .rheostat/APP.")
    ] = None,
    checkpoint: Annotated[str | None, typer.Option("--checkpoint", help="Where Spark keeps its own.")] = None,
    trigger: Annotated[float | None, typer.Option("--trigger", help="Seconds between batches.")] = None,
    period: Annotated[
        float, typer.Option("--period", help="Seconds between decisions.")
    ] = DEFAULT_PERIOD_SECONDS,
    cooldown: Annotated[
        float, typer.Option("--cooldown", help="Least seconds between two changes.")
    ] = DEFAULT_COOLDOWN_SECONDS,
    changes: Annotated[
        int, typer.Option("--changes-per-hour", help="Most changes in an hour; 0: no limit.")
    ] = DEFAULT_CHANGES_PER_HOUR,
    kafka: KafkaOption = None,
    conf: settings.ConfOption = None,
    conf_file: settings.ConfFileOption = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="End after so long; else when interrupted.")
    ] = None,
    seed: world.SeedOption = 0,
) -> None:
    """Run a streaming application and keep it as large as its load needs, until it ends or Ctrl-C."""
    name = Path(app).stem
    order = Order(
        name=name,
        script=apps.find(app),
        policy=paced(build(policy), period),
        policy_text=policy,
        folder=folder or Path(".rheostat") / name,
        arguments=tuple(arguments or ()),
        mode=mode,
        master=_master(master),
        kind=world.node_kind(node),
        bounds=world.bounds(nodes),
        guards=Guards(
            cooldown_seconds=positive("--cooldown", cooldown, least=0.0),
            changes_per_hour=max(0, changes),
            rescale_above=RESCALE_ABOVE,
        ),
        checkpoint=checkpoint,
        trigger_seconds=None if trigger is None else positive("--trigger", trigger),
        kafka=kafka,
        dry_run=dry_run,
        resume=resume,
        seed=seed,
        settings=settings.read(conf, conf_file),
    )
    check_mode(mode, order.trigger_seconds, order.settings)
    until = float("inf") if seconds is None else positive("--seconds", seconds)
    with interruptible() as ending, watched(order, seconds) as watching:
        for turn in watching.running.turns(watching.running.clock.now() + until):
            watching.show(turn)
    if (journal := order.folder / JOURNAL).exists():
        console.out.print(f"journal: {journal}; try: rheostat status, rheostat explain", soft_wrap=True)
    raise typer.Exit(ending.code)


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
    """Ctrl-C and SIGTERM end a run in order; a second one does not cut that short."""
    ending = Ending()

    def end(number: int, _frame: FrameType | None) -> None:
        if not ending.code:
            ending.code = 128 + number
            raise KeyboardInterrupt

    numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is not signal.SIG_IGN]
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


def _master(url: str | None) -> str | None:
    if url is not None and not url.startswith("spark://"):
        raise UserError(
            f"--master must be spark://HOST:PORT, not {url!r}; leave it out for a cluster on this machine"
        )
    return url
