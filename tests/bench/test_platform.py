"""What the benchmark of a node concludes, and what of it a policy reads; no Spark."""

from pathlib import Path

import pytest
import yaml

from rheostat.analyze.levels import PlatformDocument
from rheostat.bench.platform import Setup, conclude, questions
from rheostat.model.documents import parse, read_document, write_document
from rheostat.model.errors import FileError
from rheostat.policies.registry import build


def test_the_measurements_decide_the_order_of_containers(tmp_path: Path) -> None:
    asked = questions(2)
    setups = {setup for question in asked for setup in question.setups}
    alike = dict.fromkeys(setups, 100.0)
    assert conclude(asked, alike, 2.0).containers == "node"
    helps = {**alike, Setup(2, 1, 1): 190.0, Setup(4, 1, 1): 195.0, Setup(4, 4, 1): 120.0}
    result = conclude(asked, helps, 2.0)
    assert (result.containers, result.node) == ("slot+node", "cores=2,slots=4,executors=1")
    assert asked[1].answer(helps) == "more slots per executor help (2: +90%, 4: +95% against 1)"
    assert asked[2].answer(helps) == "more executors per node harm (2: -49%, 4: -38% against 1)"
    assert asked[0].answer(alike) == "more partitions per slot change nothing (2: +0%, 4: +0% against 1)"
    path = tmp_path / "platform.yaml"
    write_document(path, result)
    assert parse(PlatformDocument, read_document(path), path) == result
    build(f"multilevel(platform={path})")


def test_a_platform_file_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "platform.yaml"
    path.write_text(yaml.safe_dump({"containers": "cloud"}))
    with pytest.raises(FileError, match="'containers': input should be 'slot\\+node' or 'node'"):
        build(f"multilevel(platform={path})")
    path.write_text(yaml.safe_dump({"container": "node"}))
    with pytest.raises(FileError, match="containers"):
        build(f"multilevel(platform={path})")
