"""P0's benchmark procedure for ddos, beside the paper's Table 1: `make ddos-map`.

Half an hour, in as many sittings as you like: what the platform's containers are worth, then the load level
by level. Nodes are as large as lets the paper's loads need about the paper's machines.
"""

import argparse
import sys
from pathlib import Path

from rheostat.analyze.levels import LevelDocument, read_map
from trials import SHORT_DAYS, run

STEP, LAST, SLOTS = 2_000, 16_000, 2
TABLE_1 = {4_000: "(1,1)", 12_000: "(1,2)", 14_000: "(1,2) + (1,1)", 16_000: "(1,2) + (1,2)"}  # rows/s up to
LOAD = ["--from", f"{STEP}", "--to", f"{LAST}", "--step", f"{STEP}", "--hold", "120", "--trigger", "5"]
NODES = ["--nodes", "1:2", "--node", f"cores=0.7,slots={SLOTS},memory_mb=1024"]


def rheostat(*arguments: str) -> int:
    return run(list(arguments), until=float("inf"))


def beside(levels: list[LevelDocument]) -> list[str]:
    """Return the rows of a table: loads, the paper's containers for them, and ours."""
    ours = {round(level.offered or level.load): level for level in levels}
    rows, low = [], 0
    for high in sorted({*TABLE_1, *ours}):
        paper = next(text for load, text in TABLE_1.items() if high <= load)
        level = next((ours[load] for load in ours if high <= load), None)
        rows.append(f"| {low:,} to {high:,} | {paper} | {_words(level)} |")
        low = high
    return rows


def _words(level: LevelDocument | None) -> str:
    if level is None:
        return "not served"
    slots = min(level.nodes * SLOTS, max(level.parallelism.values()))
    return f"{level.nodes} node{'s' if level.nodes > 1 else ''}, {slots} slots"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", type=Path, default=Path("platform/platform.yaml"))
    parser.add_argument("--out", type=Path, default=Path("ddos.map.yaml"))
    asked = parser.parse_args()
    if not asked.platform.exists() and (
        code := rheostat("bench", "platform", "--out", str(asked.platform.parent))
    ):
        return code
    files = ["--platform", str(asked.platform), "--out", str(asked.out)]
    code = rheostat("bench", "app", "ddos", *LOAD, *NODES, *SHORT_DAYS, *files)
    if asked.out.exists():
        print("\n| rows/s | P0's Table 1: (machine, threads) | here |\n|---|---|---|")
        print("\n".join(beside(read_map(asked.out).levels)))
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # the run has stopped and printed so
        sys.exit(130)
