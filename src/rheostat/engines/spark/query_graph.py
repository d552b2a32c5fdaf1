"""Cuts an application's graph into chains: each becomes a streaming query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_RECEIVED = ":in"  # marks the rows that a chain took from its topics


@dataclass(frozen=True)
class QueryChain:
    """A chain of steps, named after its first."""

    steps: tuple[str, ...]
    reads: tuple[str, ...] = ()  # the steps whose topics it reads; empty: it begins with a source
    writes: bool = False  # whether its rows go to a topic instead of a sink

    @property
    def name(self) -> str:
        """The name of the query."""
        return self.steps[0]

    @property
    def markers(self) -> tuple[str, ...]:
        """The names of its observe()s, upstream first; after a topic, the received rows are counted too."""
        return (received(self.name), *self.steps) if self.reads else self.steps


def received(operator: str) -> str:
    """The marker below an operator that takes its rows from a topic.

    >>> received("count")
    'count:in'
    """
    return operator + _RECEIVED


def operator_of(marker: str) -> str:
    """The operator that a marker belongs to."""
    return marker.removesuffix(_RECEIVED)


def cut(inputs: Mapping[str, Sequence[str]]) -> tuple[QueryChain, ...]:
    """The chains of a graph, upstream first; `inputs` lists steps after those that they read.

    >>> [chain.steps for chain in cut({"in": [], "a": ["in"], "b": ["a"], "c": ["a"], "d": ["b", "c"]})]
    [('in', 'a'), ('b',), ('c',), ('d',)]
    """
    readers: dict[str, list[str]] = {name: [] for name in inputs}
    for name, upstream in inputs.items():
        for other in upstream:
            readers[other].append(name)
    chains = []
    for first, upstream in inputs.items():
        if len(upstream) == 1 and len(readers[upstream[0]]) == 1:
            continue  # it belongs to the chain of the step before it
        steps = [first]
        while len(readers[steps[-1]]) == 1 and len(inputs[readers[steps[-1]][0]]) == 1:
            steps.append(readers[steps[-1]][0])
        chains.append(QueryChain(tuple(steps), tuple(upstream), bool(readers[steps[-1]])))
    return tuple(chains)
