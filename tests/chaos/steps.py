"""Holds a controller or a driver before one of its steps until a fault is done; by files, as either may die.

`python -m tests.chaos.steps FOLDER ARGUMENTS...` runs `rheostat ARGUMENTS...` and reports steps in FOLDER.
"""

import sys
import time
from functools import partial
from pathlib import Path
from unittest.mock import patch

from rheostat.cli.main import run
from rheostat.engines.spark.actuate.actuator import Actuator

HELD_SECONDS = 30.0  # at most: whoever waits for the step may be gone


class Steps:
    """A step that is waited for; inside it is called with each step's name, outside it arms and releases."""

    def __init__(self, folder: Path) -> None:
        self._armed, self._reached = folder / "armed", folder / "reached"

    def __call__(self, step: str) -> None:
        """Wait before a step that is armed."""
        if self._wanted() != step:
            return
        self._reached.touch()
        until = time.monotonic() + HELD_SECONDS
        while self._wanted() == step and time.monotonic() < until:
            time.sleep(0.02)

    def arm(self, step: str) -> None:
        """Hold whoever reaches this step."""
        self.release()
        new = self._armed.with_suffix(".new")
        new.write_text(step)
        new.replace(self._armed)

    def reached(self) -> bool:
        """Return whether a process is held."""
        return self._reached.exists()

    def release(self) -> None:
        """Release whoever is held, and disarm."""
        for file in (self._armed, self._reached):
            file.unlink(missing_ok=True)

    def _wanted(self) -> str:
        try:
            return self._armed.read_text()
        except FileNotFoundError:
            return ""


def main() -> None:
    """Run the command line with a hook at every step of a change, and no guard against rewriting state."""
    stepping = partial(Actuator, before_step=Steps(Path(sys.argv[1])))
    with (
        patch("rheostat.engines.spark.engine.Actuator", stepping),
        patch("rheostat.run.order.RESCALE_ABOVE", 0.0),
    ):
        run(sys.argv[2:])


if __name__ == "__main__":
    main()
