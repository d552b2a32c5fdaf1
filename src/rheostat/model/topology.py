"""A topology: operators as the nodes of an acyclic graph, streams of rows as its edges."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rheostat.model.errors import UserError
from rheostat.model.graph import check_name, check_names, check_shares, downstream_order

DEFAULT_MAX_PARALLELISM = 64


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows from one operator to another.

    `selectivity` is rows out per row in at the upstream operator; `share` is the fraction of those that takes
    this stream. Their product is what the papers call the stream's selectivity.
    """

    upstream: str
    downstream: str
    selectivity: float = 1.0
    share: float = 1.0

    @property
    def rows_per_row(self) -> float:
        """Rows on this stream per row that the upstream operator processes (σ in the design)."""
        return self.selectivity * self.share


@dataclass(frozen=True, slots=True)
class Operator:
    """A source, an operator or a sink; its streams determine which."""

    name: str
    cost_seconds: float = 0.0  # CPU seconds per processed row, on one core
    min_parallelism: int = 1
    max_parallelism: int = DEFAULT_MAX_PARALLELISM
    stateful: bool = False
    state_bytes: float = 0.0
    load: float | None = None  # nominal rows/s, on a source


@dataclass(frozen=True)
class Topology:
    """An acyclic graph with one or more sources and sinks, checked on construction.

    >>> words = Topology("words", (Operator("lines"), Operator("count")), (Stream("lines", "count", 8.0),))
    >>> words.sources, words.sinks, words.order
    (('lines',), ('count',), ('lines', 'count'))
    """

    name: str
    operators: tuple[Operator, ...]
    streams: tuple[Stream, ...] = ()
    _by_name: Mapping[str, Operator] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [operator.name for operator in self.operators]
        check_name(self.name, "topology")
        check_names(names)
        object.__setattr__(self, "_by_name", {operator.name: operator for operator in self.operators})
        children: dict[str, dict[str, float]] = {name: {} for name in names}
        for stream in self.streams:
            if stream.upstream not in children:
                raise UserError(f"a stream comes from {stream.upstream!r}, which does not exist")
            if stream.downstream in children[stream.upstream]:
                raise UserError(f"operator {stream.upstream!r} has two streams to {stream.downstream!r}")
            children[stream.upstream][stream.downstream] = stream.share
        check_shares(children)
        downstream_order(children)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The operators' names, in the order stated."""
        return tuple(operator.name for operator in self.operators)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The names in order from the sources to the sinks."""
        return downstream_order({n: {s.downstream: s.share for s in self.outputs[n]} for n in self.names})

    @cached_property
    def outputs(self) -> Mapping[str, tuple[Stream, ...]]:
        """Each operator's outgoing streams."""
        return self._grouped("upstream")

    @cached_property
    def inputs(self) -> Mapping[str, tuple[Stream, ...]]:
        """Each operator's incoming streams."""
        return self._grouped("downstream")

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The operators without inputs."""
        return tuple(name for name in self.names if not self.inputs[name])

    @cached_property
    def sinks(self) -> tuple[str, ...]:
        """The operators without outputs."""
        return tuple(name for name in self.names if not self.outputs[name])

    @cached_property
    def pinned(self) -> Mapping[str, int]:
        """The operators whose bounds allow only one parallelism, with that parallelism."""
        return {o.name: o.min_parallelism for o in self.operators if o.min_parallelism == o.max_parallelism}

    def operator(self, name: str) -> Operator:
        """The operator with this name."""
        return self._by_name[name]

    def role(self, name: str) -> str:
        """An operator's role in the graph: source, operator or sink."""
        return "source" if not self.inputs[name] else "sink" if not self.outputs[name] else "operator"

    @cached_property
    def depth(self) -> Mapping[str, int]:
        """The number of streams between an operator and its farthest source."""
        depths: dict[str, int] = {}
        for name in self.order:
            depths[name] = max((depths[s.upstream] + 1 for s in self.inputs[name]), default=0)
        return depths

    def _grouped(self, end: str) -> dict[str, tuple[Stream, ...]]:
        groups: dict[str, list[Stream]] = {name: [] for name in self.names}
        for stream in self.streams:
            groups[getattr(stream, end)].append(stream)
        return {name: tuple(streams) for name, streams in groups.items()}
