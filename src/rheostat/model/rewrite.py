"""A rewrite of state as a value: from how many partitions into how many, and what it would bring."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite of state that is worth its pause."""

    operators: tuple[str, ...]  # whose state it is
    before: int  # state partitions of each
    after: int
    batch_seconds: float
    predicted_seconds: float
    pause_seconds: float

    @property
    def change(self) -> str:
        """What it changes, in words.

        >>> Rewrite(("count",), 200, 4, 12.04, 0.93, 17.2).change
        'state of count 200 -> 4 partitions'
        """
        return f"state of {', '.join(self.operators)} {self.before} -> {self.after} partitions"

    def describe(self) -> str:
        """Say in words what it would bring.

        >>> Rewrite(("count",), 200, 4, 12.04, 0.93, 17.2).describe()
        '4 state partitions instead of 200 (count): batches of 0.9 s instead of 12.0 s, for a pause of 17 s'
        """
        return (
            f"{self.after} state partitions instead of {self.before} ({', '.join(self.operators)}): "
            f"batches of {self.predicted_seconds:.1f} s instead of {self.batch_seconds:.1f} s, "
            f"for a pause of {self.pause_seconds:.0f} s"
        )
