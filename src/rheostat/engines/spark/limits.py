"""How long the end of a run may take. Each side waits at least as long as the other may take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """In seconds."""

    batch_seconds: float = 120.0  # how long we wait for the running batch
    spark_seconds: float = 30.0  # how long Spark may take to end its queries and itself
    silent_seconds: float = 20.0  # a driver that has answered nothing for this long hangs
    patience_seconds: float = 5.0  # after this long we say what we are waiting for

    @property
    def stop_seconds(self) -> float:
        """From the request to stop until its answer."""
        return self.batch_seconds + self.spark_seconds


LIMITS = Limits()
