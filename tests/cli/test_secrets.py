"""Settings that nobody should read: files that are open to others, and mistakes that would show a secret."""

from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.policies.registry import build
from rheostat.run.order import Order, with_secret

from .commands import refused

MARK = "Hush-4"  # all secrets begin with it


@pytest.mark.parametrize(
    ("mode", "content", "said"),
    [
        (0o644, "spark.a b", "chmod 600"),
        (0o660, "spark.a b", "chmod 600"),
        (0o600, f"spark.a b\n{MARK}2", "line 2: write it as spark.some.key VALUE"),
        (0o600, "a=b", "line 1: write it as"),
    ],
)
def test_a_settings_file_that_is_open_to_others_or_wrong_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: int, content: str, said: str
) -> None:
    path = tmp_path / "spark.conf"
    path.write_text(content)
    path.chmod(mode)
    for command in (["run", "app.py"], ["cluster"]):
        told = refused(capsys, *command, "--conf-file", str(path))
        assert said in told
        assert MARK not in told


@pytest.mark.parametrize("pair", [f"{MARK}2", f"authenticate.secret={MARK}2"])
def test_a_mistake_in_a_setting_is_told_without_its_value(
    capsys: pytest.CaptureFixture[str], pair: str
) -> None:
    assert MARK not in refused(capsys, "run", "app.py", "--conf", pair)


def test_a_run_on_the_embedded_cluster_gets_a_secret_unless_the_user_says_otherwise() -> None:
    order = Order("app", Path("app.py"), build("static"), "static", Path("run"))
    drawn = [with_secret(order).settings for _ in range(2)]
    assert [settings["spark.authenticate"] for settings in drawn] == ["true", "true"]
    assert len({settings["spark.authenticate.secret"] for settings in drawn}) == 2
    mine = replace(order, settings={"spark.authenticate.secret": MARK})
    assert with_secret(mine).settings["spark.authenticate.secret"] == MARK
    for other in (
        replace(order, master="spark://a:1"),
        replace(order, settings={"spark.authenticate": "false"}),
    ):
        assert with_secret(other) == other
