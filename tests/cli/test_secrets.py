"""Settings that nobody should read: files that are open to others, and mistakes that would show a secret."""

from pathlib import Path

import pytest

from tests.cli.commands import refused

MARK = "Hush-4"  # every secret here starts with it


@pytest.mark.parametrize(
    ("mode", "content", "message"),
    [
        (0o644, "spark.a b", "chmod 600"),
        (0o660, "spark.a b", "chmod 600"),
        (0o600, f"spark.a b\n{MARK}2", "line 2: write it as spark.some.key VALUE"),
        (0o600, "a=b", "line 1: write it as"),
    ],
)
def test_a_settings_file_that_others_can_read_or_that_is_wrong_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: int, content: str, message: str
) -> None:
    path = tmp_path / "spark.conf"
    path.write_text(content)
    path.chmod(mode)
    for command in (["run", "app.py"], ["cluster"]):
        error = refused(capsys, *command, "--conf-file", str(path))
        assert message in error
        assert MARK not in error


@pytest.mark.parametrize("pair", [f"{MARK}2", f"authenticate.secret={MARK}2"])
def test_an_error_about_a_setting_does_not_show_its_value(
    capsys: pytest.CaptureFixture[str], pair: str
) -> None:
    assert MARK not in refused(capsys, "run", "app.py", "--conf", pair)
