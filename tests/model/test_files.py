"""Result files are whole or not there."""

from pathlib import Path

import pytest

from rheostat.model.errors import FileError
from rheostat.model.files import replacing, write_whole


def test_a_file_is_replaced_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    write_whole(path, b"old")
    with replacing(path) as fresh:
        fresh.write_text("new")
        assert path.read_text() == "old"
        assert fresh.suffix == ".csv"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("trouble", [OSError(28, "No space left on device"), ValueError("no number")])
def test_a_file_that_cannot_be_completed_leaves_the_old_one_and_nothing_else(
    tmp_path: Path, trouble: Exception
) -> None:
    path = tmp_path / "series.csv"
    path.write_text("old")
    said = FileError if isinstance(trouble, OSError) else type(trouble)
    with pytest.raises(said) as raised, replacing(path) as fresh:
        fresh.write_text("half of")
        raise trouble
    assert trouble.args[-1] in str(raised.value)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_device_is_written_and_never_replaced(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"full: cannot be written: No space left on device"):
        write_whole(Path("/dev/full"), b"much")
    assert Path("/dev/full").is_char_device()


def test_a_link_keeps_pointing_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_whole(tmp_path / "link.csv", b"new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"
