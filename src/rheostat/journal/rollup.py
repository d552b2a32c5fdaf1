"""How a journal stays within its bound: the least informative goes first, summaries of applied changes last.

Every step gives up the older half of something in one transaction, so a crash leaves all of it or nothing.
Later turns use the freed pages. A step runs only when the bound is reached and frees a good part of the
file, so that many turns share its cost.
"""

import sqlite3
from collections.abc import Callable

from rheostat.journal.rows import RolledUp, Worth, columns

SPAN_SECONDS = 600.0  # of the windows that quiet turns are rolled up into first
RECENT = 16  # turns that stay as they are while anything else can go
ENOUGH = 0.75  # of the bound: how far a roll-up goes once it runs
SLACK = 1.1  # of the bound: how large the file may be, as one turn can carry it beyond
SHARE = 1 / 8  # of the bound: for windows, notable turns and events each, before changes lose their details
WINDOW_BYTES, SUMMARY_BYTES = 128, 512  # in the file, roughly

_MEANS = """
    MIN(start), MAX(end), {turns}, SUM({seconds}),
    {load}, {throughput}, {lag_mean}, MAX({lag_max}), MAX({backlog_max}),
    {nodes_mean}, MAX({nodes_max}), {instances_mean}, SUM(node_seconds), SUM(money)
"""


def make_room(db: sqlite3.Connection, most_bytes: float) -> None:
    """Roll up until the data is well within the bound; does nothing while it is."""
    if _used(db) <= most_bytes:
        return
    share = most_bytes * SHARE
    steps: tuple[Callable[[], bool], ...] = (
        lambda: _roll_up(db, Worth.QUIET, RECENT, 0),
        lambda: _merge(db, share / WINDOW_BYTES),
        lambda: _drop_details(db, Worth.NOTABLE, RECENT),
        lambda: _roll_up(db, Worth.NOTABLE, RECENT, share / SUMMARY_BYTES),
        lambda: _drop_events(db, share / SUMMARY_BYTES),
        lambda: _drop_details(db, Worth.APPLIED, _since_change(db)),
        lambda: _roll_up(db, Worth.NOTABLE, 1, 0),
        lambda: _drop_events(db, 0),
        lambda: _merge(db, 1),
        lambda: _roll_up(db, Worth.APPLIED, 1, 0),
    )
    for step in steps:
        while _used(db) > ENOUGH * most_bytes:
            with db:
                if not step():
                    break
    _shrink(db, most_bytes)


def _used(db: sqlite3.Connection) -> int:
    """Bytes of the pages that hold something."""
    return (_pragma(db, "page_count") - _pragma(db, "freelist_count")) * _pragma(db, "page_size")


def _shrink(db: sqlite3.Connection, most_bytes: float) -> None:
    """Give free pages back after a smaller bound was chosen; few at a time, as each one moved is logged."""
    page = _pragma(db, "page_size")
    few = max(16, int(most_bytes * SHARE / 2 / page))
    while _pragma(db, "page_count") * page > SLACK * most_bytes and _pragma(db, "freelist_count"):
        db.executescript(f"PRAGMA incremental_vacuum({few})")  # execute would stop after the first page


def _roll_up(db: sqlite3.Connection, worth: Worth, recent: int, least: float) -> bool:
    """Replace the older half of the turns up to a worth by windows; those that show an effect keep theirs."""
    some = "FROM turns WHERE worth <= ? AND number <= ?"
    until = _last(db) - recent
    count = db.execute(f"SELECT COUNT(*) {some}", (worth, until)).fetchone()[0]
    if count <= least:
        return False
    middle = f"SELECT number {some} ORDER BY number LIMIT 1 OFFSET {(count - 1) // 2}"
    until = db.execute(middle, (worth, until)).fetchone()[0]
    spans = f"SELECT {_TURNS} {some} GROUP BY CAST(start / {SPAN_SECONDS} AS INT)"
    rows = db.execute(spans, (worth, until)).fetchall()
    db.execute(
        f"DELETE FROM details WHERE number IN (SELECT number {some})", (max(worth, Worth.EFFECT), until)
    )
    db.execute(f"DELETE {some}", (worth, until))
    _insert(db, rows)
    return True


def _merge(db: sqlite3.Connection, least: float) -> bool:
    """Merge the older half of the narrower windows in pairs, so that old ones become coarse, not endless."""
    count, mean = db.execute("SELECT COUNT(*), AVG(end - start) FROM windows").fetchone()
    if count <= least:
        return False
    order = f"ORDER BY (end - start > {1.01 * mean}), start"
    older = f"SELECT rowid, * FROM windows {order} LIMIT {max(2, count // 2)}"
    placed = f"SELECT *, ROW_NUMBER() OVER ({order}) - 1 AS place FROM ({older})"
    rows = db.execute(f"SELECT {_WINDOWS} FROM ({placed}) GROUP BY place / 2").fetchall()
    db.execute(f"DELETE FROM windows WHERE rowid IN (SELECT rowid FROM ({older}))")
    _insert(db, rows)
    return True


def _drop_details(db: sqlite3.Connection, worth: Worth, recent: int) -> bool:
    """Keep only summaries of the older half of the turns; the last stays, as a controller resumes from it."""
    turns = "SELECT number FROM turns WHERE worth <= ? AND number <= ?"
    some, what = f"FROM details WHERE number IN ({turns})", (worth, _last(db) - recent)
    count = db.execute(f"SELECT COUNT(*) {some}", what).fetchone()[0]
    oldest = f"SELECT number {some} ORDER BY number LIMIT {(count + 1) // 2}"
    db.execute(f"DELETE FROM details WHERE number IN ({oldest})", what)
    return bool(count)


def _drop_events(db: sqlite3.Connection, least: float) -> bool:
    count = db.execute("SELECT COUNT(*) FROM events").fetchone()[0]
    if count <= least:
        return False
    oldest = f"SELECT rowid FROM events ORDER BY rowid LIMIT {(count + 1) // 2}"
    db.execute(f"DELETE FROM events WHERE rowid IN ({oldest})")
    return True


def _since_change(db: sqlite3.Connection) -> int:
    """The turns since the newest change, with it: it is what people ask about, so it keeps its details."""
    newest = db.execute("SELECT MAX(number) FROM turns WHERE worth = ?", (Worth.APPLIED,)).fetchone()[0]
    return 1 if newest is None else _last(db) - int(newest) + 1


def _last(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT MAX(number) FROM turns").fetchone()[0] or 0)


def _insert(db: sqlite3.Connection, rows: list[tuple[float, ...]]) -> None:
    marks = ", ".join("?" * len(columns(RolledUp).split(",")))
    db.executemany(f"INSERT INTO windows ({columns(RolledUp)}) VALUES ({marks})", rows)


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def _mean(column: str, seconds: str) -> str:
    """A mean over the time in which it was measured: missing is not zero."""
    return f"SUM({column} * {seconds}) / SUM(CASE WHEN {column} IS NOT NULL THEN {seconds} END)"


def _means(seconds: str, turns: str, **names: str) -> str:
    means = {name: _mean(names.get(name, name), seconds) for name in ("load", "throughput", "lag_mean")}
    means |= {name: _mean(names.get(name, name), seconds) for name in ("nodes_mean", "instances_mean")}
    most = {name: names.get(name, name) for name in ("lag_max", "backlog_max", "nodes_max")}
    return _MEANS.format(seconds=seconds, turns=turns, **means, **most)


_TURNS = _means(
    "(end - start)",
    "COUNT(*)",
    lag_mean="lag_seconds",
    lag_max="lag_seconds",
    backlog_max="backlog",
    nodes_mean="nodes",
    nodes_max="nodes",
    instances_mean="instances",
)
_WINDOWS = _means("seconds", "SUM(turns)")
