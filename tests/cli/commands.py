"""Runs commands as a user would: in this process, or as a real one where pipes and terminals matter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rheostat.cli.main import run

RHEOSTAT = str(Path(sys.executable).with_name("rheostat"))


def call(*arguments: str) -> int:
    """Run a command here; its exit code."""
    with pytest.raises(SystemExit) as ended:
        run(list(arguments))
    return int(ended.value.code or 0)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that must end with exit code 2, one line on stderr and nothing else; the line."""
    assert call(*arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1, output.err
    assert output.err.startswith("rheostat: ")
    return output.err


def refused_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str
) -> str:
    """Run a command that must be refused, in an empty folder, and leave nothing there; what it said."""
    monkeypatch.chdir(folder)
    output = refused(capsys, *arguments)
    assert list(folder.iterdir()) == []
    return output


def process(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell line in which `rheostat` is the real program."""
    path = f"{Path(RHEOSTAT).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "80", **environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
