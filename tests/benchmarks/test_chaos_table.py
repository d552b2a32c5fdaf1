from pathlib import Path

import pytest

from chaos import TABLE, Line, check_destination, write
from tests.chaos.attacks import Attack

LINES = [Line(Attack("driver"), failure="it was gone")]


def test_a_table_goes_into_a_new_file(tmp_path: Path) -> None:
    made = tmp_path / "new.md"
    check_destination(made)
    write(made, "1 fault", LINES)
    assert made.read_text().startswith(f"{TABLE}\n\n1 fault.\n\n| fault |")
    assert f"| 1 | driver | {LINES[0].attack.moment} |  |  | FAILED: it was gone |" in made.read_text()


def test_a_table_replaces_the_one_before_and_nothing_else(tmp_path: Path) -> None:
    made = tmp_path / "chaos.md"
    made.write_text("# Chaos\n\nWords.\n\n")
    write(made, "1 fault", LINES)
    write(made, "2 faults", LINES)
    assert made.read_text().startswith(f"# Chaos\n\nWords.\n\n{TABLE}\n\n2 faults.")
    assert made.read_text().count(TABLE) == 1


def test_a_file_that_cannot_be_written_is_refused_before_the_minutes_are_spent(tmp_path: Path) -> None:
    picture = tmp_path / "picture"
    picture.write_bytes(b"\xff\xd8\xff")
    for path in (tmp_path, tmp_path / "none" / "new.md", picture):
        with pytest.raises(SystemExit) as ended:
            check_destination(path)
        assert str(path) in str(ended.value) and "\n" not in str(ended.value)
