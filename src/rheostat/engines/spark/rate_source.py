"""What Spark's rate source notes in its checkpoint."""

from pathlib import Path


def began(checkpoint: Path) -> float | None:
    """The unix second from which it counts; None: it has not begun."""
    for path in checkpoint.glob("**/sources/0/0"):
        noted = path.read_text().splitlines()[-1:]
        if noted and noted[0].isdigit():
            return int(noted[0]) / 1000
    return None
