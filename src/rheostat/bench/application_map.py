"""Which configuration serves which load (P0, Algorithms 1 and 2)."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rheostat.analyze.levels import LevelDocument, MapDocument, read_map
from rheostat.control.turn import Turn
from rheostat.engines.spark import rate_source
from rheostat.engines.spark.spec import SPEC
from rheostat.model.decision import Status
from rheostat.model.documents import write_document
from rheostat.model.errors import RheostatError, UserError
from rheostat.model.files import make_folder
from rheostat.policies.discovery import Discovery
from rheostat.run.composition import Running
from rheostat.run.folder import delete_query_topics
from rheostat.run.order import Order

MAX_LEVELS = 1000
MIN_WINDOWS = 3  # observed at each level


def levels(first: float, last: float, step: float) -> list[float]:
    """Return the loads to try.

    >>> levels(1000, 3000, 1000)
    [1000.0, 2000.0, 3000.0]
    """
    if not (0 < first <= last <= 1e9 and 0 < step <= 1e9):
        values = f"{first:g}, {last:g}, {step:g}"
        raise UserError(f"--from must be above 0, --to at least --from, --step above 0, not {values}")
    count = math.floor((last - first) / step + 1e-9) + 1
    if count > MAX_LEVELS:
        raise UserError(f"{count:,} levels are more than {MAX_LEVELS:,}: give a larger --step")
    return [float(first + step * number) for number in range(count)]


@dataclass
class DiscoveredMap:
    """A map while it grows; every level is written to its file before the next one starts."""

    path: Path
    application: str
    options: dict[str, str]
    levels: list[LevelDocument]

    @classmethod
    def open(cls, path: Path, application: str, options: dict[str, str]) -> "DiscoveredMap":
        """Start a new map, or continue one that was started with the same options."""
        if not path.exists():
            make_folder(path.parent)
            return cls(path, application, options, [])
        stated = read_map(path)
        if (stated.application, stated.made) != (application, options):
            raise UserError(f"{path} was made with other options: give another --out, or delete it")
        return cls(path, application, options, list(stated.levels))

    @property
    def offered(self) -> float:
        """The highest offered rate that was served."""
        return (self.levels[-1].offered or self.levels[-1].load) if self.levels else 0.0

    def add(self, level: LevelDocument) -> None:
        """Add a level; if it needs no more than the level before, it only raises that level's limit."""
        last = self.levels[-1] if self.levels else None
        if last and (last.parallelism, last.nodes) == (level.parallelism, level.nodes):
            self.levels.pop()
            level = level.model_copy(update={"load": max(last.load, level.load)})
        elif last and level.load <= last.load:
            raise RheostatError(
                f"{level.offered or level.load:,.0f} rows/s: only {level.load:,.1f} arrived, after "
                f"{last.load:,.1f} at the level below; give a larger --step"
            )
        self.levels.append(level)
        document = MapDocument(application=self.application, made=self.options, levels=self.levels)
        write_document(self.path, document)


@dataclass(frozen=True)
class MapPlan:
    """What is left to do for a map: the loads that it does not cover yet, and the run that tries them."""

    discovered: DiscoveredMap
    loads: Sequence[float]
    hold_seconds: float
    order: Order


Show = Callable[[Turn], None]
Watch = Callable[[Order, float], AbstractContextManager[tuple[Running, Show]]]


def climb(plan: MapPlan, watch: Watch, on_level: Callable[[float, LevelDocument], None]) -> None:
    """Run the application under the rising load; the first level is held twice, to warm up.

    `watch` starts a run that lasts a given number of seconds, and shows its turns.
    """
    if not plan.loads:
        return
    discovered, hold = plan.discovered, plan.hold_seconds
    with TemporaryDirectory(prefix="rheostat-bench-") as scratch:
        order = _climbing_order(plan, Path(scratch))
        duration = hold * (len(plan.loads) + 1)
        with _without_leftover_topics(order), watch(order, duration) as (running, show):
            turns = list[Turn]()

            def control(until: float) -> None:
                for turn in running.turns(until):
                    turns.append(turn)
                    show(turn)

            start = running.clock.now()
            control(start + hold)
            source_start = rate_source.began(order.folder / "checkpoint")  # seconds after the controller
            start = start if source_start is None else source_start - running.began_at
            for number, load in enumerate(plan.loads, 1):
                control(start + hold * (number + 1))
                discovered.add(judge_level(load, turns, order))
                turns.clear()
                on_level(load, discovered.levels[-1])


def _climbing_order(plan: MapPlan, scratch: Path) -> Order:
    """The order with the rising load, which begins where the map ends."""
    trace = scratch / "load.csv"
    trace.write_text(rising([plan.loads[0], *plan.loads], plan.hold_seconds))
    policy, levels = plan.order.policy, plan.discovered.levels
    if levels and isinstance(policy, Discovery):
        policy = replace(policy, parallelism=dict(levels[-1].parallelism), nodes=levels[-1].nodes)
    arguments = (f"trace:path={trace}", *plan.order.arguments)
    return replace(plan.order, policy=policy, folder=scratch / "run", arguments=arguments)


@contextmanager
def _without_leftover_topics(order: Order) -> Iterator[None]:
    """Delete the topics between the queries of a graph after the run: its folder is not kept."""
    try:
        yield
    finally:
        if order.kafka and (order.folder / SPEC).exists():
            delete_query_topics(order.folder)


def rising(loads: Sequence[float], hold_seconds: float) -> str:
    """Return a trace that holds each load equally long.

    >>> rising([100.0, 200.0], 60.0).splitlines()
    ['time,rate', '0,100', '59.999,100', '60,200', '119.999,200']
    """
    lines = ["time,rate"]
    for number, load in enumerate(loads):
        start = hold_seconds * number
        lines += [f"{start:.12g},{load:.12g}", f"{start + hold_seconds - 0.001:.12g},{load:.12g}"]
    return "\n".join(lines) + "\n"


def judge_level(load: float, turns: Sequence[Turn], order: Order) -> LevelDocument:
    """Return the configuration that served a level; RheostatError if none did."""
    measured = [turn for turn in turns if not turn.evaluation.missing]
    if not measured:
        raise RheostatError(f"{load:,.0f} rows/s: nothing was measured; give a longer --hold")
    last, min_health = measured[-1], getattr(order.policy, "minHealth", 0.9)
    operators = last.evaluation.operators
    congested = [name for name, evaluation in operators.items() if evaluation.health < min_health]
    if last.outcome.status is Status.FAILED:
        raise RheostatError(f"{load:,.0f} rows/s: {last.outcome.reason}")
    if last.plan.changes:
        raise RheostatError(
            f"{load:,.0f} rows/s: still being scaled when the level ended; give a longer --hold"
        )
    if congested:
        health = min(operators[name].health for name in congested)
        raise RheostatError(
            f"{load:,.0f} rows/s: {congested[0]} is congested (health {health:.2f}) on "
            f"{last.plan.current.nodes} nodes: {'; '.join(last.plan.vetoes) or last.plan.reason}"
        )
    current = last.plan.current
    arrived = median(turn.observation.total_load or load for turn in measured)
    return LevelDocument(
        load=round(arrived, 1), parallelism=dict(current.parallelism), nodes=current.nodes, offered=load
    )
