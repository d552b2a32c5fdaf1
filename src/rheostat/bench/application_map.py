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

MOST_LEVELS = 1000
LOOKS = 3  # at least, at a level


def levels(first: float, last: float, step: float) -> list[float]:
    """The loads to try.

    >>> levels(1000, 3000, 1000)
    [1000.0, 2000.0, 3000.0]
    """
    if not (0 < first <= last <= 1e9 and 0 < step <= 1e9):
        asked = f"{first:g}, {last:g}, {step:g}"
        raise UserError(f"--from must be above 0, --to not below it, --step above 0, not {asked}")
    count = math.floor((last - first) / step + 1e-9) + 1
    if count > MOST_LEVELS:
        raise UserError(f"these are {count:,} levels, more than {MOST_LEVELS:,}: give a larger --step")
    return [float(first + step * number) for number in range(count)]


@dataclass
class DiscoveredMap:
    """The map while it grows; every level is in its file before the next begins."""

    path: Path
    application: str
    made: dict[str, str]
    levels: list[LevelDocument]

    @classmethod
    def open(cls, path: Path, application: str, made: dict[str, str]) -> "DiscoveredMap":
        """A new map, or one that was begun with the same options."""
        if not path.exists():
            make_folder(path.parent)
            return cls(path, application, made, [])
        stated = read_map(path)
        if (stated.application, stated.made) != (application, made):
            raise UserError(f"{path} was made with other options: give another --out, or delete it")
        return cls(path, application, made, list(stated.levels))

    @property
    def offered(self) -> float:
        """The highest rate of a curve that is known to be served."""
        return (self.levels[-1].offered or self.levels[-1].load) if self.levels else 0.0

    def add(self, level: LevelDocument) -> None:
        """Keep a level; one that needs no more than the level before it raises that one's limit."""
        last = self.levels[-1] if self.levels else None
        if last and (last.parallelism, last.nodes) == (level.parallelism, level.nodes):
            self.levels.pop()
            level = level.model_copy(update={"load": max(last.load, level.load)})
        elif last and level.load <= last.load:
            asked, came = level.offered or level.load, f"{level.load:,.1f} came, after {last.load:,.1f}"
            raise RheostatError(f"{asked:,.0f} rows/s: {came} at the level below; give a larger --step")
        self.levels.append(level)
        made = MapDocument(application=self.application, made=self.made, levels=self.levels)
        write_document(self.path, made)


Show = Callable[[Turn], None]
Watch = Callable[[Order, float], AbstractContextManager[tuple[Running, Show]]]


def climb(
    found: DiscoveredMap,
    loads: Sequence[float],
    held: float,
    order: Order,
    watch: Watch,
    on_level: Callable[[float, LevelDocument], None],
) -> None:
    """Run the application under the rising load; the first level is held twice, to warm up.

    `watch` starts a run of so many seconds and shows its turns.
    """
    with TemporaryDirectory(prefix="rheostat-bench-") as folder:
        trace = Path(folder) / "load.csv"
        trace.write_text(rising([loads[0], *loads], held))
        begun = found.levels[-1] if found.levels else None
        policy = order.policy
        if begun and isinstance(policy, Discovery):
            policy = replace(policy, parallelism=dict(begun.parallelism), nodes=begun.nodes)
        arguments = (f"trace:path={trace}", *order.arguments)
        order = replace(order, policy=policy, folder=Path(folder) / "run", arguments=arguments)
        with _without_leftover_topics(order), watch(order, held * (len(loads) + 1)) as (running, show):
            turns = list[Turn]()

            def look(until: float) -> None:
                for turn in running.turns(until):
                    turns.append(turn)
                    show(turn)

            began = running.clock.now()
            look(began + held)
            source_began = rate_source.began(order.folder / "checkpoint")  # seconds after the controller
            began = began if source_began is None else source_began - running.began_at
            for number, load in enumerate(loads, 1):
                look(began + held * (number + 1))
                found.add(judge_level(load, turns, order))
                turns.clear()
                on_level(load, found.levels[-1])


@contextmanager
def _without_leftover_topics(order: Order) -> Iterator[None]:
    """Delete the topics between the queries of a graph with the run, whose folder is not kept."""
    try:
        yield
    finally:
        if order.kafka and (order.folder / SPEC).exists():
            delete_query_topics(order.folder)


def rising(loads: Sequence[float], held: float) -> str:
    """A trace that holds each load equally long.

    >>> rising([100.0, 200.0], 60.0).splitlines()
    ['time,rate', '0,100', '59.999,100', '60,200', '119.999,200']
    """
    lines = ["time,rate"]
    for number, load in enumerate(loads):
        begin = held * number
        lines += [f"{begin:.12g},{load:.12g}", f"{begin + held - 0.001:.12g},{load:.12g}"]
    return "\n".join(lines) + "\n"


def judge_level(load: float, turns: Sequence[Turn], order: Order) -> LevelDocument:
    """The configuration that served a level, or why none did."""
    looks = [turn for turn in turns if not turn.evaluation.missing]
    if not looks:
        raise RheostatError(f"{load:,.0f} rows/s: nothing was measured; give a longer --hold")
    last, least = looks[-1], getattr(order.policy, "minHealth", 0.9)
    slow = [name for name, judged in last.evaluation.operators.items() if judged.health < least]
    if last.outcome.status is Status.FAILED:
        raise RheostatError(f"{load:,.0f} rows/s: {last.outcome.reason}")
    if last.plan.changes:
        raise RheostatError(
            f"{load:,.0f} rows/s: it was still being scaled when its time was over; give a longer --hold"
        )
    if slow:
        health = min(last.evaluation.operators[name].health for name in slow)
        raise RheostatError(
            f"{load:,.0f} rows/s: {slow[0]} is congested (health {health:.2f}) on {last.plan.current.nodes} "
            f"nodes: {'; '.join(last.plan.vetoes) or last.plan.reason}"
        )
    current = last.plan.current
    offered = median(turn.observation.total_load or load for turn in looks)
    return LevelDocument(
        load=round(offered, 1), parallelism=dict(current.parallelism), nodes=current.nodes, offered=load
    )
