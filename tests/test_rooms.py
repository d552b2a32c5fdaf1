"""Who may import the command line. import-linter sees the package alone, so this looks at what is around it.

If a test or a benchmark needs something of `rheostat.cli`, logic is in the wrong room: move it below.
Only tests that run commands as a user would may import `rheostat.cli.main`.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORT = re.compile(r"^\s*(?:from|import) (rheostat\.cli[\w.]*)", re.MULTILINE)
RUN_COMMANDS = ("tests/chaos/", "tests/spark/")


def imports_of_the_command_line(folder: str) -> dict[str, set[str]]:
    files = {path: set(IMPORT.findall(path.read_text())) for path in (ROOT / folder).rglob("*.py")}
    return {path.relative_to(ROOT).as_posix(): modules for path, modules in files.items() if modules}


def test_benchmarks_import_nothing_from_the_command_line() -> None:
    assert imports_of_the_command_line("benchmarks") == {}


def test_tests_of_logic_import_nothing_from_the_command_line() -> None:
    elsewhere = {
        path: modules
        for path, modules in imports_of_the_command_line("tests").items()
        if not path.startswith("tests/cli/")
        and not (path.startswith(RUN_COMMANDS) and modules == {"rheostat.cli.main"})
    }
    assert elsewhere == {}


def test_every_room_has_its_tests_in_a_folder_of_the_same_name() -> None:
    rooms = {path.parent.name for path in (ROOT / "src/rheostat").glob("*/__init__.py")}
    assert rooms <= {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
