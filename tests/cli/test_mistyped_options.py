"""What a user types, mistyped in every way: policies, curves, nodes, settings; and topology files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rheostat.analyze.execution import Pipelined
from rheostat.cli import values
from rheostat.model.errors import UserError
from rheostat.model.secrets import read_properties, write_private
from rheostat.model.topology_file import known_topologies, load_topology
from rheostat.policies.base import Start
from rheostat.policies.registry import build
from rheostat.workloads import parse_curve
from tests.cli.commands import call
from tests.fuzz.absurd import FUZZ, spoiled

CATALOGUE = known_topologies()
POLICIES = ("ds2", "elysium(cpu_max_thr=0.7)", "joint(target=0.7,period_seconds=5)", "static(nodes=3)")
CURVES = ("sine:low=100:high=900:period=10m", "step:start=5m:end=10m", "constant:rate=5:noise=negbin")
NODES = ("1:4", "7", "1:100000")
KINDS = ("cores=1,slots=2,memory_mb=1024", "cores=0.5,slots=1,executors=1,startup_seconds=3")
SETTINGS = ("spark.authenticate=true", "spark.hadoop.fs.s3a.secret.key=abc=def")
JUNK = st.sampled_from(
    [
        "=",
        ":",
        ",",
        "(",
        ")",
        "-",
        "nan",
        "inf",
        "1e400",
        "9" * 400,
        "\x00",
        "\ud800",
        "\n",
        " ",
        "٣",
        "e",
        "0x1",
    ]
)


@st.composite
def mistyped(draw: st.DrawFn, sound: tuple[str, ...]) -> str:
    """One of the texts with parts cut out, doubled or replaced by junk; or any text at all."""
    text = draw(st.sampled_from(sound) | st.text(max_size=30))
    for _ in range(draw(st.integers(0, 3))):
        begin = draw(st.integers(0, len(text)))
        end = draw(st.integers(begin, min(len(text), begin + 8)))
        text = text[:begin] + draw(JUNK | st.just("") | st.just(text[begin:end] * 2)) + text[end:]
    return text


def told_or_done(read: Callable[[str], Any], text: str) -> Any:
    """What was read; None: it was refused in one line."""
    try:
        return read(text)
    except UserError as error:
        assert len(str(error).splitlines()) == 1
        assert len(str(error)) < 1500
        return None


@FUZZ
@given(text=mistyped(POLICIES))
def test_a_policy_is_built_or_refused(text: str) -> None:
    policy = told_or_done(build, text)
    if policy is not None:
        assert policy.period_seconds > 0
        topology = load_topology(CATALOGUE["linear"])
        kinds, bounds = (values.node_kind(KINDS[0]),), values.bounds("1:4")
        start = told_or_done(
            lambda _: policy.initial(Start(topology, Pipelined(), kinds, bounds, 100.0, 500.0)), ""
        )
        assert start is None or 1 <= start.nodes <= 4


@FUZZ
@given(text=mistyped(CURVES))
def test_a_curve_is_read_or_refused(text: str) -> None:
    curve = told_or_done(parse_curve, text)
    assert curve is None or 0 <= curve.at(curve.duration_seconds / 2) < float("inf")


@FUZZ
@given(text=mistyped(NODES))
def test_bounds_are_read_or_refused(text: str) -> None:
    bounds = told_or_done(values.bounds, text)
    assert bounds is None or 1 <= bounds.min_nodes <= bounds.max_nodes <= 100_000


@FUZZ
@given(text=mistyped(KINDS))
def test_a_node_is_read_or_refused(text: str) -> None:
    kind = told_or_done(values.node_kind, text)
    assert kind is None or (0 < kind.slot_cores < float("inf") and kind.executors >= 1)


@FUZZ
@given(text=mistyped(("# secrets\nspark.a b\nspark.c = d e", "spark.hadoop.fs.s3a.secret.key=hush")))
def test_a_file_of_settings_is_read_or_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "spark.conf"
    write_private(path, text.encode("utf-8", "surrogatepass"))
    result = told_or_done(lambda _: read_properties(path), "")
    assert result is None or all(key.startswith("spark.") for key in result)


@settings(FUZZ, max_examples=80)
@given(
    policy=mistyped(POLICIES),
    nodes=mistyped(NODES),
    node=mistyped(KINDS),
    conf=mistyped(SETTINGS),
    number=st.sampled_from(["nan", "inf", "-1", "0", "1e400", "x", "", "5"]),
    option=st.sampled_from(
        ["--trigger", "--period", "--cooldown", "--seconds", "--seed", "--changes-per-hour"]
    ),
)
def test_a_run_with_mistyped_options_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str],
    policy: str,
    nodes: str,
    node: str,
    conf: str,
    number: str,
    option: str,
) -> None:
    options = [f"--policy={policy}", f"--nodes={nodes}", f"--node={node}", f"--conf={conf}"]
    assert call("run", *options, f"{option}={number}", "/nowhere/script.py") == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1


@settings(FUZZ, max_examples=120)
@given(data=st.data(), name=st.sampled_from(sorted(CATALOGUE)), suffix=st.sampled_from(["yaml", "json"]))
def test_a_spoiled_topology_is_shown_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject, name: str, suffix: str
) -> None:
    content = data.draw(spoiled(yaml.safe_load(CATALOGUE[name].read_text())))
    path = tmp_path / f"t.{suffix}"
    text = json.dumps(content) if suffix == "json" else yaml.safe_dump(content, allow_unicode=True)
    path.write_bytes(text.encode("utf-8", "replace"))
    _shown_or_refused(path, capsys)


@settings(FUZZ, max_examples=120)
@given(data=st.data(), name=st.sampled_from(sorted(CATALOGUE)))
@example(data=None, name="").via("an empty file")
def test_a_damaged_topology_file_is_shown_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: Any, name: str
) -> None:
    content = bytearray(CATALOGUE[name].read_bytes() if name else b"")
    for _ in range(data.draw(st.integers(1, 4)) if content else 0):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "t.yaml"
    path.write_bytes(content)
    _shown_or_refused(path, capsys)


def _shown_or_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = call("topology", "show", str(path))
    output = capsys.readouterr()
    assert code in (0, 2)
    assert len(output.err.splitlines()) == (1 if code else 0), output.err
    assert "nan" not in output.out.lower().split()
