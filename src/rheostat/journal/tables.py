"""The journal's tables; docs/journal.md explains them."""

VERSION = 2
SCHEMA = f"""
BEGIN;
PRAGMA user_version = {VERSION};
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE turns (
    number INTEGER PRIMARY KEY,
    at REAL NOT NULL,           -- decided, seconds since the run began
    finished_at REAL NOT NULL,
    worth INTEGER NOT NULL,     -- 0 quiet, 1 shows what a change brought, 2 told, 3 applied
    status TEXT NOT NULL,       -- applied, unchanged, failed, dry-run
    change TEXT NOT NULL,       -- what changed or was to change, in words
    reason TEXT NOT NULL,
    outcome TEXT NOT NULL,
    veto TEXT,
    alert TEXT,
    pause_seconds REAL NOT NULL,
    start REAL NOT NULL,        -- of the window
    end REAL NOT NULL,
    load REAL,                  -- rows/s
    throughput REAL,
    lag_seconds REAL,
    backlog REAL,               -- rows
    utilisation REAL,           -- of the busiest operator
    nodes INTEGER NOT NULL,
    instances INTEGER NOT NULL,
    node_seconds REAL NOT NULL
);
CREATE INDEX worth ON turns (worth, number);
CREATE TABLE details (number INTEGER PRIMARY KEY, turn TEXT NOT NULL);  -- everything, as JSON
CREATE TABLE windows (
    start REAL NOT NULL, end REAL NOT NULL, turns INTEGER NOT NULL, seconds REAL NOT NULL,
    load REAL, throughput REAL, lag_mean REAL, lag_max REAL, backlog_max REAL,
    nodes_mean REAL, nodes_max INTEGER, instances_mean REAL, node_seconds REAL NOT NULL
);
CREATE TABLE events (at REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
COMMIT;
"""
