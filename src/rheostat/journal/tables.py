"""The journal's tables; docs/journal.md explains them."""

VERSION = 3
UPGRADABLE = 2  # lacks the table of pending decisions and the columns of money
PENDING = "CREATE TABLE pending (number INTEGER PRIMARY KEY, decision TEXT NOT NULL)"
MONEY = (
    "ALTER TABLE turns ADD COLUMN money REAL NOT NULL DEFAULT 0",
    "ALTER TABLE windows ADD COLUMN money REAL NOT NULL DEFAULT 0",
)
SCHEMA = f"""
BEGIN;
PRAGMA user_version = {VERSION};
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE turns (
    number INTEGER PRIMARY KEY,
    at REAL NOT NULL,           -- decided, seconds since the run began
    finished_at REAL NOT NULL,
    worth INTEGER NOT NULL,     -- 0 quiet, 1 shows a change's effect, 2 notable, 3 applied
    status TEXT NOT NULL,       -- applied, unchanged, failed, dry-run, interrupted
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
    node_seconds REAL NOT NULL,
    money REAL NOT NULL         -- what these cost; 0 where nodes have no price
);
CREATE INDEX worth ON turns (worth, number);
CREATE TABLE details (number INTEGER PRIMARY KEY, turn TEXT NOT NULL);  -- everything, as JSON
{PENDING};  -- the change that is under way, as JSON; with its outcome it becomes a turn
CREATE TABLE windows (
    start REAL NOT NULL, end REAL NOT NULL, turns INTEGER NOT NULL, seconds REAL NOT NULL,
    load REAL, throughput REAL, lag_mean REAL, lag_max REAL, backlog_max REAL,
    nodes_mean REAL, nodes_max INTEGER, instances_mean REAL, node_seconds REAL NOT NULL, money REAL NOT NULL
);
CREATE TABLE events (at REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
COMMIT;
"""
