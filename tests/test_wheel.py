"""What a plain `pip install rheostat` gives: it declares all that it imports, and works without Spark."""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions, packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rheostat.services.java import HOW_TO_SPARK

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in requirements}


# -- what the source imports ------------------------------------------------------------------------------


def imported(path: Path) -> Iterator[str]:
    """The packages that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_every_import_is_declared_and_everything_declared_is_imported() -> None:
    found = {name for path in (ROOT / "src").rglob("*.py") for name in imported(path)}
    foreign = found - set(sys.stdlib_module_names) - {"rheostat"}
    brings = packages_distributions()
    needed = {canonicalize_name(brings[name][0]) if name in brings else name for name in foreign}
    optional = names(PROJECT["optional-dependencies"]["spark"])

    assert needed - optional == names(PROJECT["dependencies"])
    assert needed & optional == optional
    assert "pip install 'rheostat[spark]'" in HOW_TO_SPARK


# -- the wheel, installed without extras ------------------------------------------------------------------


def required(wheel: Distribution) -> set[str]:
    """The distributions that installing this one without extras brings along, itself left out."""
    found: set[str] = set()
    waiting = [wheel]
    while waiting:
        for line in waiting.pop().requires or []:
            need = Requirement(line)
            if need.name not in found and (need.marker is None or need.marker.evaluate({"extra": ""})):
                assert not need.extras, f"{need} has extras, which this test does not follow"
                found.add(need.name)
                waiting.append(distribution(need.name))
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what the wheel itself declares, and nothing else.

    Pip would take a minute to fetch and unpack that: it is linked from this environment instead.
    """
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "venv")], check=True)
    (wheel,) = place.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(place / "venv" / "bin" / "python")]
    options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *options, str(wheel)], check=True)
    (packages,) = (place / "venv" / "lib").glob("python*/site-packages")
    (itself,) = distributions(name="rheostat", path=[str(packages)])
    for name in required(itself):
        _link(distribution(name), packages)
    return place / "venv" / "bin" / "rheostat"


def _link(needed: Distribution, packages: Path) -> None:
    tops = {file.parts[0] for file in needed.files or () if file.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        (packages / top).symlink_to(Path(str(needed.locate_file(top))))


def run(program: Path, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    hidden = ("PYTHONPATH", "SPARK_HOME")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    return subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_wheel_alone_explains_itself_lists_its_policies_and_compares_them(
    installed: Path, tmp_path: Path
) -> None:
    for arguments, told in (
        (["--help"], "Usage: rheostat"),
        (["policies"], "multilevel"),
        (["compare", "-t", "wordcount", "-c", "constant:duration=2m", "-p", "static,ds2"], "ds2"),
    ):
        done = run(installed, tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
        assert told in done.stdout


def test_the_wheel_alone_says_how_to_get_spark(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("pass")
    examined = run(installed, tmp_path, "doctor")
    assert examined.returncode == 1
    assert f"FAIL Spark: Spark is not installed: {HOW_TO_SPARK}" in " ".join(examined.stdout.split())
    refused = run(installed, tmp_path, "run", "app.py")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"rheostat: Spark is not installed: {HOW_TO_SPARK}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["app.py"]
