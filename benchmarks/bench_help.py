"""`rheostat --help` takes at most twice the CPU time of importing typer, rich and pydantic."""

import resource
import statistics
import subprocess
import sys

RUNS, BOUND = 9, 2.0
LIBRARIES = ("-c", "import typer, rich, pydantic")
HELP = ("-m", "rheostat", "--help")


def main() -> int:
    libraries, shown = [], []
    for _ in range(RUNS):  # in turns, so that a busy machine slows both
        libraries.append(cpu_seconds(LIBRARIES))
        shown.append(cpu_seconds(HELP))
    ratio = statistics.median(shown) / statistics.median(libraries)
    good = ratio <= BOUND
    print(
        f"rheostat --help: {statistics.median(shown):.2f} s of CPU, x{ratio:.2f} of importing typer, rich "
        f"and pydantic ({statistics.median(libraries):.2f} s; bound x{BOUND:g})  {'ok' if good else 'FAILED'}"
    )
    return 0 if good else 1


def cpu_seconds(arguments: tuple[str, ...]) -> float:
    before = _children()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
