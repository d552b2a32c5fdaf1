"""Reads topology files (JSON or YAML) as a checked Topology. docs/topology-file.md explains the format."""

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from rheostat.model.documents import Document, not_a_truth_value, parse, read_document
from rheostat.model.errors import FileError, UserError, nearest
from rheostat.model.topology import DEFAULT_MAX_PARALLELISM, Operator, Stream, Topology

MAX_PARALLELISM = 1_000_000
Number = Annotated[float, BeforeValidator(not_a_truth_value)]
Amount = Annotated[Number, Field(ge=0)]


class ParallelismDocument(Document):
    """Bounds on an operator's instances."""

    min: int = Field(1, ge=1, le=MAX_PARALLELISM)
    max: int = Field(DEFAULT_MAX_PARALLELISM, ge=1, le=MAX_PARALLELISM)


class OperatorDocument(Document):
    """One operator, as stated in the file."""

    name: str
    load: Amount | None = None
    cost: Amount = 0.0
    selectivity: Amount = 1.0
    parallelism: ParallelismDocument = ParallelismDocument(min=1, max=DEFAULT_MAX_PARALLELISM)
    stateful: bool = False
    state_bytes: Amount = 0.0
    children: dict[str, Number] = Field(default_factory=dict)


class TopologyDocument(Document):
    """A whole file."""

    name: str
    operators: list[OperatorDocument]


def load_topology(path: Path) -> Topology:
    """Read a topology; FileError names the file, the operator and what to do."""
    document = parse(TopologyDocument, read_document(path), path)
    for stated in document.operators:
        low, high = stated.parallelism.min, stated.parallelism.max
        if low > high:
            raise FileError(
                f"{path}: operator {stated.name!r}: parallelism min {low} is greater than max {high}"
            )
    try:
        topology = build(document)
    except UserError as error:
        raise FileError(f"{path}: {error}") from None
    for operator in topology.operators:
        if operator.load is not None and topology.inputs[operator.name]:
            raise FileError(
                f"{path}: operator {operator.name!r} has a load but is fed by others; only sources have one"
            )
    return topology


def build(document: TopologyDocument) -> Topology:
    """Build the topology from the content of a file."""
    operators = tuple(
        Operator(
            name=stated.name,
            cost_seconds=stated.cost,
            min_parallelism=stated.parallelism.min,
            max_parallelism=stated.parallelism.max,
            stateful=stated.stateful,
            state_bytes=stated.state_bytes,
            load=stated.load,
        )
        for stated in document.operators
    )
    streams = tuple(
        Stream(stated.name, child, stated.selectivity, share)
        for stated in document.operators
        for child, share in stated.children.items()
    )
    return Topology(document.name, operators, streams)


def known_topologies() -> dict[str, Path]:
    """The topologies that come with Rheostat, by name."""
    folder = Path(__file__).parent / "catalogue"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def find_topology(word: str) -> Topology:
    """Load a topology that comes with Rheostat by its name, or any other from its file."""
    files = known_topologies()
    if word in files:
        return load_topology(files[word])
    if Path(word).suffix.lower() not in (".json", ".yaml", ".yml") and not _exists(Path(word)):
        raise UserError(f"there is no file and no topology {word!r}{nearest(word, files)}")
    return load_topology(Path(word))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # not a valid file name, or a folder without access
        return False
