"""The long version of the chaos suite: `python -m benchmarks.chaos [--faults 100] [--seed 1] [--minutes N]`.

Every fault at every step of a scale-out, a scale-in and a stateful rescale, then at rest. The application is
checked row by row after every run of 20 faults. With --out, its table replaces the one in that file.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.arena import AGAIN_SECONDS, Brokers, Survived, arena, brokers
from tests.chaos.attacks import FAULTS, Attack, everything

from rheostat.model.files import write_whole

PER_RUN = 20
TABLE = "## The long version"


@dataclass(frozen=True)
class Line:
    """An attack and its outcome."""

    attack: Attack
    survived: Survived | None = None
    failure: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """Return a row of the table."""
        if self.survived is None:
            return self.attack.fault, self.attack.moment, "", "", f"FAILED: {self.failure}"
        return (
            self.attack.fault,
            self.attack.moment,
            f"{self.survived.seconds:.1f}",
            f"{self.survived.settled:.1f}",
            "ok",
        )


def one_run(attacks: Sequence[Attack], seed: int, broker: Brokers, until: float) -> Iterator[Line]:
    """Attack a run of the application repeatedly, until a failure ends it."""
    attack = attacks[0]
    with tempfile.TemporaryDirectory(prefix="rheostat-chaos-") as place:
        try:
            with arena(Path(place), seed, broker, megabytes=256) as under:
                for attack in attacks:
                    if time.monotonic() > until:
                        break
                    yield Line(attack, under.attack(attack))
                print(f"  {under.end():,} rows, each counted once and in the sink once", flush=True)
        except AssertionError as error:
            print(error, file=sys.stderr)
            yield Line(attack, failure=str(error).splitlines()[0][:150])


def table(lines: Sequence[Line]) -> str:
    """Return Markdown: the recovery time per kind of fault, then every attack."""
    rows = ["| fault | struck | runs again after s: median | longest |", "|---|---|---|---|"]
    for fault in FAULTS:
        seconds = [line.survived.seconds for line in lines if line.survived and line.attack.fault == fault]
        if seconds:
            rows.append(
                f"| {fault} | {len(seconds)} | {statistics.median(seconds):.1f} | {max(seconds):.1f} |"
            )
    rows += [
        "",
        "| | fault | moment | runs again after s | as decided after s | result |",
        "|---|---|---|---|---|---|",
    ]
    rows += [f"| {number} | {' | '.join(line.cells)} |" for number, line in enumerate(lines, 1)]
    return "\n".join(rows) + "\n"


def check_destination(path: Path) -> None:
    """Refuse a file that cannot be written, before the benchmark runs."""
    if not path.parent.is_dir():
        raise SystemExit(f"--out {path}: there is no folder {path.parent}; make it first")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise SystemExit(f"--out {path}: cannot be written; choose another file")
    try:
        kept(path)
    except (OSError, ValueError) as error:
        raise SystemExit(f"--out {path}: is not a text file ({error}); choose another file") from None


def kept(path: Path) -> str:
    """Return the content of a file before its table."""
    return path.read_text().partition(TABLE)[0] if path.exists() else ""


def write(path: Path, verdict: str, lines: Sequence[Line]) -> None:
    """Write the table to the end of a file, in place of an earlier one."""
    write_whole(path, f"{kept(path)}{TABLE}\n\n{verdict}.\n\n{table(lines)}".encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--skip", type=int, default=0, help="faults that an earlier sitting did")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no attack after so long")
    parser.add_argument("--out", type=Path, help="a Markdown file; the table is its last section")
    asked = parser.parse_args()
    if asked.out:
        check_destination(asked.out)
    began, lines = time.monotonic(), list[Line]()
    until = began + 60 * asked.minutes
    with tempfile.TemporaryDirectory(prefix="rheostat-broker-") as folder, brokers(Path(folder)) as broker:
        attacks = everything(asked.seed, asked.faults)[asked.skip :]
        while (these := attacks[len(lines) :][:PER_RUN]) and time.monotonic() < until:
            for line in one_run(these, asked.seed + len(lines), broker, until):
                lines.append(line)
                passed = (time.monotonic() - began) / 60
                print(f"  {len(lines):3} {passed:5.1f} min  " + "  ".join(line.cells), flush=True)
    failed = [line for line in lines if line.survived is None]
    verdict = (
        f"{len(lines)} faults, {len(failed)} not survived (bound {AGAIN_SECONDS:g} s), seed {asked.seed}"
    )
    print(f"  {verdict}  {'FAILED' if failed else 'ok'}")
    if asked.out:
        write(asked.out, verdict, lines)
    else:
        print(table(lines))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
