"""`rheostat load run` sends at least 100,000 rows/s from one process, its broker on the same two cores."""

import sys
import tempfile
from pathlib import Path

from rheostat.services import kafka_broker
from rheostat.services.kafka_producer import Rows, Schedule, Sender
from rheostat.workloads import parse_curve

BOUND, SECONDS, PARTITIONS = 100_000.0, 10, 4


def main() -> int:
    failed = 0
    print(f"rows/s that reached the broker, over {SECONDS} s (bound {BOUND:,.0f})")
    with tempfile.TemporaryDirectory() as folder, kafka_broker.running(Path(folder)) as broker:
        for name, rate, size in (
            ("at the bound", BOUND, None),
            ("as fast as it goes", 10 * BOUND, None),
            ("as fast as it goes, rows of 200 bytes", 10 * BOUND, 200),
        ):
            topic = name.replace(" ", "-").replace(",", "")
            kafka_broker.create_topic(broker.servers, topic, PARTITIONS)
            schedule = Schedule(parse_curve(f"constant:rate={rate:g}:duration={SECONDS}"))
            sent = Sender(broker.servers, topic, schedule, Rows(size=size)).run()
            # At the bound every row must arrive; the last one is acknowledged only after the end.
            kept = sent.rows == sent.wanted if rate == BOUND else sent.rows_per_second >= BOUND
            good = kept and sent.rows == sum(kafka_broker.ends(broker.servers, topic).values())
            failed += not good
            print(
                f"  {name:38} {sent.rows_per_second:9,.0f}  {sent.rows:10,} of {sent.wanted:10,} wanted  "
                f"{sent.behind_rows:9,} late at worst  {'ok' if good else 'FAILED'}"
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
