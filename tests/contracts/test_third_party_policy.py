"""A policy from another package is found by its entry point and is held to the same suite."""

import shutil
import sys
from pathlib import Path

import pytest

from rheostat.policies.conformance import check
from rheostat.policies.registry import available, build

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_policy"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay the example out as an installer would."""
    shutil.copy(EXAMPLE / "own_policy.py", tmp_path)
    meta = tmp_path / "own_policy-0.1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: own-policy\nVersion: 0.1.0\n")
    (meta / "entry_points.txt").write_text("[rheostat.policies]\nproportional = own_policy:Proportional\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_policy", raising=False)


@pytest.mark.usefixtures("installed")
def test_an_installed_package_adds_its_policy() -> None:
    assert "proportional" in available()
    policy = build("proportional(target=0.5)")
    assert policy.info.source == "examples/own_policy"
    check(policy)


def test_without_the_package_it_is_unknown() -> None:
    assert "proportional" not in available()
