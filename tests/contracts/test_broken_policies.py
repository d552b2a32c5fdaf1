"""A broken policy of another package costs its own line, never a traceback or the other policies."""

import json
import sys
from pathlib import Path

import pytest

from rheostat.model.errors import UserError
from rheostat.policies.registry import build, installed
from tests.cli.commands import call, refused

BEGIN = """
import sys
from dataclasses import dataclass
from rheostat.policies import Info, Policy, hold
INFO = Info("foreign", "all", "reactive", "elsewhere")
"""
HOLDS = """
    info = INFO
    def propose(self, situation, memory):
        return hold(situation, "it is fine"), memory
"""
USELESS = {  # what is wrong: the module, and what is said
    "import": ("import no_such_module_at_all", "cannot be imported: ModuleNotFoundError"),
    "exit": ("import sys; sys.exit(0)", "cannot be imported: SystemExit: 0"),
    "absent": ("", "cannot be imported: AttributeError"),
    "no class": ("Foreign = 3", "is not a subclass of Policy"),
    "another class": ("class Foreign: pass", "is not a subclass of Policy"),
    "abstract": (f"{BEGIN}class Foreign(Policy):\n    info = INFO", "it has no method `propose`"),
    "no info": (
        f"{BEGIN}class Foreign(Policy):\n    def propose(self, situation, memory): pass",
        "it has no `info` of strings",
    ),
    "TypeError": (
        f"{BEGIN}@dataclass(frozen=True)\nclass Foreign(Policy):{HOLDS}"
        "    def __post_init__(self): raise TypeError('two\\nlines')",
        "cannot be built: TypeError: two lines",
    ),
    "exit when built": (
        f"{BEGIN}@dataclass(frozen=True)\nclass Foreign(Policy):{HOLDS}    def __post_init__(self): "
        "sys.exit()",
        "cannot be built: SystemExit",
    ),
    "a default that fails": (
        f"{BEGIN}from dataclasses import field\n@dataclass(frozen=True)\nclass Foreign(Policy):\n"
        f"    sizes: tuple = field(default_factory=lambda: 1 / 0){HOLDS}",
        "cannot be built: ZeroDivisionError",
    ),
    "a default that exits": (
        f"{BEGIN}from dataclasses import field\n@dataclass(frozen=True)\nclass Foreign(Policy):\n"
        f"    sizes: tuple = field(default_factory=sys.exit){HOLDS}",
        "cannot be built: SystemExit",
    ),
    "NaN": (
        f"{BEGIN}@dataclass(frozen=True)\nclass Foreign(Policy):\n"
        f"    period_seconds: float = float('nan'){HOLDS}",
        "period_seconds must be positive and finite, not nan",
    ),
}
SIMULATE = ("simulate", "-t", "wordcount", "-c", "constant:rate=900:duration=10m", "-p", "foreign")


HELPERS = """from dataclasses import replace
from rheostat.model.configuration import Configuration
from rheostat.model.decision import Placement

class Mute(Exception):
    def __str__(self): sys.exit(3)

def asks(situation, nodes=2, **parallelism):
    wanted = Configuration({**situation.configuration.parallelism, **parallelism}, 2, nodes)
    return replace(hold(situation, 'x'), target=wanted)

def all_of(start, count):
    return Configuration(dict.fromkeys(start.topology.names, count), 1, 1)

def nested(levels):
    return {'a': nested(levels - 1)} if levels else {}

"""


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module of a policy `foreign`, laid out as an installer would; the test writes its text."""
    meta = tmp_path / "foreign_policy-0.1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-policy\nVersion: 0.1.0\n")
    (meta / "entry_points.txt").write_text("[rheostat.policies]\nforeign = foreign_policy:Foreign\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "foreign_policy", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "foreign_policy.py"


@pytest.mark.parametrize("wrong", USELESS)
def test_a_useless_policy_is_skipped_in_the_list_and_refused_by_name(
    wrong: str, foreign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, why = USELESS[wrong]
    foreign.write_text(text)
    usable, broken = installed()
    assert "ds2" in usable and list(broken) == ["foreign"]
    assert call("policies", "--json") == 0
    told = capsys.readouterr()
    assert "foreign" not in [policy["name"] for policy in json.loads(told.out)]
    assert told.err.startswith("rheostat: skipped: policy 'foreign'") and why in told.err
    assert len(told.err.splitlines()) == 1
    assert why in refused(capsys, *SIMULATE)


def test_a_policy_that_needs_a_parameter_is_listed_and_built_with_it(
    foreign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign.write_text(
        f"{BEGIN}@dataclass(frozen=True, kw_only=True)\nclass Foreign(Policy):\n    most: int{HOLDS}"
    )
    assert call("policies", "foreign", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["parameters"]["most"] is None
    assert "foreign" in installed()[0]
    with pytest.raises(UserError, match="cannot be built: TypeError"):
        build("foreign")
    assert build("foreign(most=3)").info.name == "foreign"


def test_numbers_of_numpy_are_numbers(foreign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign.write_text(
        f"{BEGIN}{HELPERS}import numpy as np\nclass Foreign(Policy):\n    info = INFO\n"
        "    def propose(self, situation, memory):\n"
        "        return asks(situation, split=np.int64(2), nodes=np.int64(2)), {}\n"
    )
    assert call(*SIMULATE, "--json") == 0
    decisions = json.loads(capsys.readouterr().out)["decisions"]
    assert "applied" in {one["status"] for one in decisions}


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ("all_of(start, 1.5)", "Expected `int`"),
        ("all_of(start, -1)", "at least one node, executor and instance"),
        ("Configuration({}, 1, 1)", "it must name the parallelism of "),
        ("7", "must return a Configuration"),
    ],
)
def test_a_first_configuration_that_makes_no_sense_is_refused(
    first: str, why: str, foreign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign.write_text(
        f"{BEGIN}{HELPERS}class Foreign(Policy):{HOLDS}    def initial(self, start): return {first}"
    )
    told = refused(capsys, *SIMULATE)
    assert "policy 'foreign' cannot begin: " in told and why in told


def test_a_policy_that_cannot_begin_is_refused(foreign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign.write_text(f"{BEGIN}class Foreign(Policy):{HOLDS}    def initial(self, start): sys.exit(5)")
    assert "policy 'foreign' cannot begin: SystemExit: 5" in refused(capsys, *SIMULATE)


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("sys.exit(1)", "SystemExit: 1"),
        ("return hold(situation, 'x'), {'seen': object()}", "its memory must be plain JSON data"),
        ("return hold(situation, 'x'), {'seen': {1, 2}}", "its memory must be plain JSON data"),
        ("return hold(situation, 'x'), 7", "its memory must be a dictionary, not int"),
        ("return None", "TypeError"),
        ("raise Mute()", "Mute: its message cannot be shown"),
        ("return asks(situation, split=2.5), {}", "its proposal is wrong: Expected `int`"),
        ("return asks(situation, nodes=2.5), {}", "its proposal is wrong: Expected `int`"),
        ("return asks(situation, elsewhere=2), {}", "it must name the parallelism of "),
        ("return asks(situation, split=0), {}", "there must be at least one node, executor and instance"),
        ("return replace(hold(situation, 'x'), alert=5), {}", "its proposal is wrong: Expected `str`"),
        ("return replace(hold(situation, 'x'), causes='abc'), {}", "Expected `tuple[Cause, ...]`"),
        ("return replace(hold(situation, 'x'), rejected=(object(),)), {}", "its proposal is wrong"),
        (
            "return replace(hold(situation, 'x'), placement=Placement(add=('x',))), {}",
            "Expected `tuple[str, str]`",
        ),
        (
            "return hold(situation, None), {}",
            "its proposal is wrong at reason: Input should be a valid string",
        ),
        ("return hold(situation, 'x'), nested(400)", "its memory must be plain JSON data"),
    ],
)
def test_a_policy_that_fails_to_decide_holds_and_the_run_goes_on(
    does: str, why: str, foreign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign.write_text(
        f"{BEGIN}{HELPERS}class Foreign(Policy):\n    info = INFO\n"
        f"    def decide(self, situation, memory):\n        {does}\n"
        "    propose = None"
    )
    assert call(*SIMULATE, "--json") == 0
    decisions = json.loads(capsys.readouterr().out)["decisions"]
    assert decisions and all(why in one["alert"] and one["status"] == "unchanged" for one in decisions)


def test_a_policys_words_do_not_reach_the_terminal_as_commands(
    foreign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign.write_text(
        f"{BEGIN}from dataclasses import replace\n"
        "class Foreign(Policy):\n"
        "    'It is \\x1b[31mred.'\n"
        "    info = Info('foreign', 'all\\x1b[31m', 'kind\\x9b', 'source\\x1b]0;x\\x07')\n"
        "    def propose(self, situation, memory):\n"
        "        held = hold(situation, 'why \\x1b[31m')\n"
        "        return replace(held, alert='beware \\x1b[31m'), memory\n"
    )
    for command in (SIMULATE, ("policies",), ("policies", "foreign")):
        assert call(*command) == 0
        told = capsys.readouterr()
        assert told.err == ""
        assert "?" in told.out and not {"\x1b", "\x07", "\x9b"} & set(told.out)
