"""A simple molecular dynamics: a crystal of atoms, each bound to its place by a spring (an Einstein solid).

Its motion at any time does not depend on earlier steps, so any iteration can be computed anywhere,
in parallel and repeatedly. The crystal is cubic and face-centred, 4 atoms per cell, like CoMD's: 20 cells per
side hold 32,000.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rheostat.apps.draws import draw

CORNERS = ((0.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (0.5, 0.5, 0.0))  # of a cell's four atoms
AMPLITUDE = 0.08  # of a cell's side: what thermal motion there is
STEPS_PER_SWING = 40.0  # iterations in a period of the slowest atom; the fastest swings twice as fast
BLOCK = 1_000  # atoms in a row


@dataclass(frozen=True)
class Crystal:
    """A cube of cells."""

    cells: int = 20  # a side
    seed: int = 0

    @property
    def atoms(self) -> int:
        return 4 * self.cells**3

    def blocks(self, iterations: DataFrame) -> DataFrame:
        """Rows `iteration`, `block`, and the `x`, `y`, `z` of the block's atoms, of rows `value`."""
        blocks = F.explode(F.sequence(F.lit(0), F.lit((self.atoms - 1) // BLOCK))).alias("block")
        rows = iterations.select(F.col("value").alias("iteration"), blocks)
        last = F.least(F.col("block") * BLOCK + BLOCK, F.lit(self.atoms)) - 1
        atoms = F.sequence(F.col("block") * BLOCK, last)
        places = [F.transform(atoms, self._along(axis)).alias(name) for axis, name in enumerate("xyz")]
        return rows.select("iteration", "block", *places)

    def _along(self, axis: int) -> Callable[[Column], Column]:
        def place(atom: Column) -> Column:
            cell = F.floor(atom / 4 / self.cells ** (2 - axis)) % self.cells
            corner = F.get(F.array(*(F.lit(corner[axis]) for corner in CORNERS)), atom % 4)
            swing = 2 * math.pi / STEPS_PER_SWING * (1 + self._draw(atom, 3 * axis))
            phase = 2 * math.pi * self._draw(atom, 3 * axis + 1)
            far = AMPLITUDE * self._draw(atom, 3 * axis + 2)
            return (cell + corner + far * F.cos(F.col("iteration") * swing + phase)).cast("float")

        return place

    def _draw(self, atom: Column, number: int) -> Column:
        """Return a number in [0, 1) that is always the same for the same atom."""
        return draw(atom, number, self.seed)
