"""Reads what a query wrote into files, as the sink's own log lists them."""

import json
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlparse

from tests.spark.apps.plain_state import KEYS

MERGED = ".compact"


def last_merged(folder: Path) -> int:
    """The newest batch at which Spark merged the sink's log; -1: none."""
    return max((int(file.stem) for file in (folder / "_spark_metadata").glob(f"*{MERGED}")), default=-1)


def listed(folder: Path) -> list[Path]:
    """The files that belong to the result."""
    log, merged = folder / "_spark_metadata", last_merged(folder)
    later = sorted(
        int(file.name) for file in log.iterdir() if file.name.isdigit() and int(file.name) > merged
    )
    entries = [log / f"{merged}{MERGED}"] if merged >= 0 else []
    lines = [
        line
        for entry in (*entries, *(log / str(batch) for batch in later))
        for line in entry.read_text().splitlines()[1:]  # the first is a version
    ]
    return [Path(unquote(urlparse(json.loads(line)["path"]).path)) for line in lines]


def check_totals_in_files(folder: Path) -> int:
    """Check that the totals are those of rows 0..n-1, so none is lost or doubled; return n."""
    counts, sums, most = Counter[int](), Counter[int](), -1
    for file in listed(folder):
        for row in map(json.loads, file.read_text().splitlines()):
            counts[row["key"]] += row["n"]
            sums[row["key"]] += row["sum"]
            most = max(most, row["most"])
    rows = counts.total()
    assert rows == most + 1
    for key in counts:
        expected = range(key, rows, KEYS)
        assert (counts[key], sums[key]) == (len(expected), sum(expected)), key
    return rows
