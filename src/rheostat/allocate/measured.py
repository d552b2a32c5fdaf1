"""Measurements of a running topology: the file that `rheostat allocate` reads (P4, §5.2.3, §6.2.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rheostat.model.documents import Document, parse, read_document
from rheostat.model.errors import FileError, UserError
from rheostat.model.graph import SHARE_SLACK, check_names, check_shares, downstream_order

MAX_RATE = 1e15  # rows per second; above this, floating-point arithmetic loses whole rows
MAX_COMPONENTS = 3000  # the predictive allocator holds tables of components × components
ROUNDING = 0.005  # error of a measured share: half of its second decimal place
MAX_UNITS = 1_000_000  # a component's units
MAX_CPU_SECONDS, MAX_CORES = 1e6, 1e9

Number = Annotated[float, Field(strict=True)]


@dataclass(frozen=True, slots=True)
class Component:
    """One component; `max_rate` is the total of its units; for a source, the rate it emits."""

    name: str
    max_rate: float
    ratio: float = 1.0  # rows out per row processed
    units: int = 1
    source: bool = False
    children: Mapping[str, float] = field(default_factory=dict)
    input_rate: float | None = None  # as stated; used only to compute the ratio
    given: bool = False  # a source whose load is given: more units would not make it emit more
    cpu_seconds: float = 0.0  # that a row takes; matters only where units share CPU
    held_back: bool = (
        False  # rows that it cannot process are not dropped: its parents process fewer; as above
    )

    @property
    def unit_rate(self) -> float:
        """Rows per second that one unit processes or emits."""
        return self.max_rate / self.units


@dataclass(frozen=True, slots=True)
class MeasuredTopology:
    """The components of one topology, in the order of the file; every graph rule is checked here."""

    name: str
    components: tuple[Component, ...]
    cores: float | None = None  # that all units share; None: as in P4, each has a capacity of its own

    def __post_init__(self) -> None:
        if len(self.components) > MAX_COMPONENTS:
            raise UserError(
                f"there are {len(self.components)} components; at most {MAX_COMPONENTS} are supported"
            )
        check_names([component.name for component in self.components], "component")
        children = {component.name: component.children for component in self.components}
        check_shares(children, "component")
        downstream_order(children, "component")
        fed = {child: name for name, shares in children.items() for child in shares}
        for component in self.components:
            if component.source and component.name in fed:
                raise UserError(
                    f"component {component.name!r} has no max_rate, so it is a source, "
                    f"but {fed[component.name]!r} feeds it; state its max_rate"
                )
            if not component.source and component.name not in fed and component.input_rate:
                raise UserError(
                    f"component {component.name!r} has an input_rate, but no component feeds it; "
                    "leave out input_rate and max_rate to make it a source"
                )


class _ComponentDocument(Document):
    name: str
    units: Annotated[int, Field(strict=True)] = 1
    input_rate: Number | None = None
    output_rate: Number
    max_rate: Number | None = None
    cpu_seconds: Annotated[Number, Field(ge=0, le=MAX_CPU_SECONDS)] = 0.0
    children: dict[str, Number] = Field(default_factory=dict)


class _TopologyDocument(Document):
    name: str = "topology"
    cores: Annotated[Number, Field(gt=0, le=MAX_CORES)] | None = None
    components: list[_ComponentDocument]


def read_topology(path: Path) -> MeasuredTopology:
    """Read a measured topology from a JSON or YAML file; FileError names the component that is wrong."""
    document = parse(_TopologyDocument, read_document(path), path)
    try:
        components = tuple(_component(stated) for stated in document.components)
        return MeasuredTopology(document.name, components, document.cores)
    except UserError as error:
        raise FileError(f"{path}: {error}") from None


def _component(stated: _ComponentDocument) -> Component:
    where = f"component {stated.name!r}"
    if not 1 <= stated.units <= MAX_UNITS:
        raise UserError(f"{where}: units is {stated.units}; it must be between 1 and {MAX_UNITS}")
    for key in ("input_rate", "output_rate", "max_rate"):
        rate = getattr(stated, key)
        if rate is not None and not 0 <= rate <= MAX_RATE:
            raise UserError(f"{where}: {key} is {rate:g}; it must be between 0 and {MAX_RATE:g}")
    children = _without_rounding(stated.children)
    if stated.max_rate is None:
        if stated.input_rate is not None:
            raise UserError(
                f"{where} has an input_rate but no max_rate; a source has neither, an operator both"
            )
        source_rate = stated.output_rate
        cpu = stated.cpu_seconds
        return Component(stated.name, source_rate, 1.0, stated.units, True, children, cpu_seconds=cpu)
    if stated.input_rate is None:
        raise UserError(f"{where} has a max_rate but no input_rate; a source has neither, an operator both")
    ratio = _ratio(where, stated.output_rate, min(stated.input_rate, stated.max_rate))
    return Component(
        stated.name,
        stated.max_rate,
        ratio,
        stated.units,
        False,
        children,
        stated.input_rate,
        cpu_seconds=stated.cpu_seconds,
    )


def _without_rounding(shares: Mapping[str, float]) -> Mapping[str, float]:
    """Scale down shares whose sum exceeds 1 only because they were rounded.

    >>> _without_rounding({"a": 0.505, "b": 0.505}), _without_rounding({"a": 0.5, "b": 0.4})
    ({'a': 0.5, 'b': 0.5}, {'a': 0.5, 'b': 0.4})
    """
    total = sum(shares.values())
    if min(shares.values(), default=0.0) < 0 or not 1 < total <= 1 + ROUNDING * len(shares) + SHARE_SLACK:
        return shares
    return {child: share / total for child, share in shares.items()}


def _ratio(where: str, output: float, processed: float) -> float:
    """Rows out per row processed; an idle component shows none and is assumed to pass on every row.

    >>> _ratio("component 'a'", 900.0, 300.0), _ratio("component 'a'", 0.0, 0.0)
    (3.0, 1.0)
    """
    if processed > 0:
        ratio = output / processed
        if ratio > MAX_RATE:
            raise UserError(f"{where} emits {ratio:g} rows for each it processes; check its rates")
        return ratio
    if output > 0:
        raise UserError(
            f"{where} emits {output:g} rows/s but processes none; check its input_rate and max_rate"
        )
    return 1.0
