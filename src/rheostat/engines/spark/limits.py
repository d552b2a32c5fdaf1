"""How long the end of a run may take. Who waits for another waits at least as long as the other may take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """In seconds."""

    batch_seconds: float = 120.0  # the boundary waits so long for the running batch
    spark_seconds: float = 30.0  # Spark takes so long to end its queries and itself
    silent_seconds: float = 20.0  # a driver that answers nothing for so long hangs
    patience_seconds: float = 5.0  # after so long the user is told what we wait for

    @property
    def stop_seconds(self) -> float:
        """From the request to stop until its answer."""
        return self.batch_seconds + self.spark_seconds


LIMITS = Limits()
