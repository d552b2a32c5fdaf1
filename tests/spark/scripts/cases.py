"""The plain scripts, their input, and what they wrote."""

import json
import os
import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet

APPS = Path(__file__).parent / "apps"
FILES, ROWS, USERS = 6, 40, 12
PAGES = ("/", "/cart", "/search", "/help", "/orders/last", "/orders/all")
BEGAN = datetime(2026, 11, 1, 10, tzinfo=UTC)
WORDS = ("ohm", "volt", "ampere", "watt")
LINES = 300


@dataclass(frozen=True)
class Case:
    """A script, and what Rheostat should find in it: each query's operators, by the name it goes by."""

    script: str
    queries: dict[str, tuple[str, ...]]
    rows: int = FILES * ROWS + 1  # that its sources read
    ends: bool = False  # by itself
    outputs: tuple[str, ...] = ("out",)

    @property
    def path(self) -> Path:
        return APPS / f"{self.script}.py"

    @property
    def operators(self) -> set[str]:
        first = next(iter(self.queries))
        return {
            name if query == first else f"{query}.{name}"
            for query, names in self.queries.items()
            for name in names
        }


CASES = (
    Case("sliding_window", {"query-1": ("1-scan", "2-aggregate")}),
    Case("sessions", {"sessions": ("1-scan", "2-session")}),
    Case("join_streams", {"query-1": ("1-scan", "2-scan", "3-join")}, rows=2 * (FILES * ROWS + 1)),
    Case("join_static", {"known pages": ("1-scan",)}),
    Case("drop_duplicates", {"query-1": ("1-scan", "2-deduplicate")}, ends=True),
    Case("state_of_users", {"visits": ("1-scan", "2-stateful")}),
    Case(
        "two_queries",
        {"long_pages": ("1-python",), "totals": ("1-scan", "2-aggregate")},
        rows=2 * (FILES * ROWS + 1),
        outputs=("out", "totals"),
    ),
    Case("kafka_source", {"query-1": ("1-explode", "2-aggregate")}, rows=LINES),
)


def write_input(folder: Path) -> Path:
    """Write the files that scripts read, one per batch; the last one closes all windows and sessions."""
    for number, name in enumerate(("clicks", "payments")):
        (folder / name).mkdir(parents=True)
        random_numbers = random.Random(number)
        for file in range(FILES):
            moments = [BEGAN + timedelta(seconds=5 * file + 5 * random_numbers.random()) for _ in range(ROWS)]
            moments[0] -= timedelta(seconds=30)  # too late, but for the first batch
            _write(folder / name / f"{file}.json", moments, random_numbers, file)
        _write(folder / name / "last.json", [BEGAN + timedelta(hours=1)], random_numbers, FILES)
    titles = [f"{page},The page {page}" for page in PAGES[:4]]
    (folder / "pages.csv").write_text("\n".join(["page,title", *titles]))
    return folder


def _write(file: Path, moments: Iterable[datetime], random_numbers: random.Random, number: int) -> None:
    rows = [
        {"user": random_numbers.randrange(USERS), "page": random_numbers.choice(PAGES), "at": at.isoformat()}
        for at in moments
    ]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))  # Spark reads the oldest first


def lines() -> list[str]:
    """What the topic holds."""
    random_numbers = random.Random(2)
    return [" ".join(random_numbers.choices(WORDS, k=3)) for _ in range(LINES)]


def results(case: Case, folder: Path) -> list[str]:
    """All rows that it wrote, of each output, in an order of ours; only what Spark committed counts."""
    rows = []
    for output in case.outputs:
        for file in _committed(folder / output):
            rows += [f"{output} {row}" for row in _rows(file)]
    return sorted(rows)


def _committed(folder: Path) -> list[Path]:
    """The files of a sink whose log has them, or of a batch that was written to its end."""
    log = folder / "_spark_metadata"
    if not log.is_dir():
        return [file for done in folder.glob("*/_SUCCESS") for file in done.parent.glob("part-*")]
    logged = [line for file in log.iterdir() if file.name.isdigit() for line in file.read_text().splitlines()]
    return [folder / Path(json.loads(line)["path"]).name for line in logged if line.startswith("{")]


def _rows(file: Path) -> list[str]:
    if file.suffix == ".json":
        return [json.dumps(json.loads(line), sort_keys=True) for line in file.read_text().splitlines()]
    rows = pyarrow.parquet.read_table(file).to_pylist()
    return [json.dumps(row, sort_keys=True, default=str) for row in rows]
