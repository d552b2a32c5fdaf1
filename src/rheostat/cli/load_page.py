"""The output of `rheostat load run`."""

from rheostat.cli import console
from rheostat.services.kafka_producer import Sent


def report(sent: Sent, topic: str, as_json: bool) -> None:
    """Say how many rows were sent, and how late."""
    if as_json:
        console.print_json(
            {
                "topic": topic,
                "rows": sent.rows,
                "wanted": sent.wanted,
                "failed": sent.failed,
                "seconds": sent.seconds,
                "rows_per_second": sent.rows_per_second,
                "behind_rows": sent.behind_rows,
                "behind_at_seconds": sent.behind_at_seconds,
            }
        )
        return
    rate, took = console.number(sent.rows_per_second), console.number(sent.seconds)
    print(f"{topic}: {sent.rows:,} rows sent in {took} s, {rate} rows/s")
    print(
        f"the curve wanted {sent.wanted:,} rows; at worst, {sent.behind_at_seconds:.1f} s after the start, "
        f"{sent.behind_rows:,} were late"
    )
    if sent.failed:
        console.fail(f"{console.count(sent.failed, 'row')} did not reach the broker: {sent.reason}")
