"""What a network learned, as a versioned JSON file: plain numbers, never executed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from rheostat.analyze.perceptron import Perceptron
from rheostat.model.documents import Document, parse, read_document
from rheostat.model.errors import FileError
from rheostat.model.files import write_whole
from rheostat.workloads.curve import FloatArray


@dataclass(frozen=True)
class Learned:
    """A network, and how the loads were scaled for it."""

    network: Perceptron
    low: float
    spread: float
    day: float
    step_seconds: float


class NetworkDocument(Document):
    """A network in a file."""

    rheostat_network: Literal[1]  # the version of this format
    low: float = Field(ge=0)
    spread: float = Field(gt=0)
    day: float = Field(gt=0)
    step_seconds: float = Field(gt=0)
    hidden: list[list[float]]
    output: list[list[float]]


def save_learned(path: Path, learned: Learned) -> None:
    """Write what a network learned."""
    content = {
        "rheostat_network": 1,
        "low": learned.low,
        "spread": learned.spread,
        "day": learned.day,
        "step_seconds": learned.step_seconds,
        "hidden": learned.network.hidden.tolist(),
        "output": learned.network.output.tolist(),
    }
    write_whole(path, (json.dumps(content) + "\n").encode())


def load_learned(path: Path, inputs: int, hidden: int, outputs: int) -> Learned:
    """Read what a network learned; FileError if it is not such a file."""
    stated = parse(NetworkDocument, read_document(path), path)
    network = Perceptron(
        _matrix(path, "hidden", stated.hidden, (inputs + 1, hidden)),
        _matrix(path, "output", stated.output, (hidden + 1, outputs)),
    )
    return Learned(network, stated.low, stated.spread, stated.day, stated.step_seconds)


def _matrix(path: Path, name: str, rows: list[list[float]], shape: tuple[int, int]) -> FloatArray:
    if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows):
        raise FileError(f"{path}: key {name!r}: expected {shape[0]} rows of {shape[1]} weights")
    return np.array(rows, dtype=np.float64)
