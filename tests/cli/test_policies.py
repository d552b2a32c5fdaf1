import json

import pytest

from rheostat.policies.registry import available
from tests.cli.commands import call, refused


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_list_names_every_policy_once_and_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("policies") == 0
    lines = capsys.readouterr().out.splitlines()
    first = [line.split(" ")[0] for line in lines]
    assert [name for name in first if name in available()] == list(available())
    assert lines[1].split() == ["name", "scales", "kind", "from"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", available())
def test_one_policy_is_shown_with_its_paper_and_parameters(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("policies", name) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{name}: ")
    assert "period_seconds" in shown
    assert ">>>" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_paragraphs_are_as_wide_as_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert call("policies", "multilevel") == 0
    about = capsys.readouterr().out.split("\n\n")[2]
    assert about.startswith("Load levels map to configurations")
    assert len(about.splitlines()) == 1


def test_json_lists_every_policy_with_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("policies", "--json") == 0
    listed = {policy["name"]: policy for policy in json.loads(capsys.readouterr().out)}
    assert list(listed) == list(available())
    assert listed["static"]["parameters"]["provision"] == "peak"
    assert call("policies", "ds2", "--json") == 0
    assert [policy["name"] for policy in json.loads(capsys.readouterr().out)] == ["ds2"]


@pytest.mark.parametrize("name", ["elysum", "", "ds2(restart_time=1)", "[/]"])
def test_an_unknown_policy_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"unknown policy {name!r}" in refused(capsys, "policies", name)
