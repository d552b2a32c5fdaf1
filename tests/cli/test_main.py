import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from rheostat import __version__
from rheostat.cli.main import COMMANDS, application
from tests.cli.commands import call, process, refused


def every_command() -> list[list[str]]:
    """The words of each command, `load show` as well as `load` and the program itself."""
    result, left = [], [(list[str](), get_command(application()))]
    while left:
        words, command = left.pop()
        result.append(words)
        left += [([*words, name], inner) for name, inner in getattr(command, "commands", {}).items()]
    return result


@pytest.mark.parametrize("command", [" ".join(words) for words in every_command()])
def test_every_help_has_an_example_and_fits_80_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert call(*command.split(), "--help") == 0
    output = capsys.readouterr()
    assert "Example: rheostat" in output.out
    assert output.err == ""
    assert max(map(len, output.out.splitlines())) <= 80
    assert "…" not in output.out


def test_rheostat_alone_prints_its_help_and_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert call() == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {command} " in shown for command in COMMANDS)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--version") == 0
    assert capsys.readouterr().out.strip() == __version__


def test_no_help_imports_libraries_that_only_commands_need(tmp_path: Path) -> None:
    """In one process, so that what any of them imports is seen."""
    helps = [[*words, "--help"] for words in every_command()]
    assert ["bench", "app", "--help"] in helps
    script = tmp_path / "helps.py"
    script.write_text(
        "import contextlib, sys\n"
        "from rheostat.cli.main import run\n"
        f"for words in {helps!r}:\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        run(words)\n"
        "slow = {'scipy', 'matplotlib', 'confluent_kafka', 'pyspark', 'numpy', 'yaml', 'psutil', 'sqlite3'}\n"
        "print(slow & sys.modules.keys())\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.count("Usage: ") == len(helps)
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    "command",
    [
        "run nosuch.py",
        "cluster --nodes 99",
        "topology wordcount",
        "bench app nosuch --from 1 --to 2 --step 1",
        "trial -a nosuch -c sine -p ds2",
        "policies",
        "load list",
    ],
)
def test_no_command_imports_what_it_does_not_need(command: str, tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text(
        "import contextlib, sys\n"
        "from rheostat.cli.main import run\n"
        "with contextlib.suppress(SystemExit):\n"
        f"    run({command.split()!r})\n"
        "print({'scipy', 'matplotlib', 'confluent_kafka', 'pyspark'} & sys.modules.keys())\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("command", ["", "load", "forecast", "kafka", "bench"])
def test_no_summary_in_a_list_of_commands_is_cut_short(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert call(*command.split(), "--help") == 0
    listed = capsys.readouterr().out.partition("Commands:")[2].splitlines()
    assert listed and not [line for line in listed if line.endswith("...")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bogus"], "No such command 'bogus'. See --help."),
        (["--bogus"], "No such option: --bogus. See --help."),
        (["topology"], "Missing argument 'file'. See --help."),
        (["topology", "a", "b"], "unexpected extra argument"),
        (["simulate"], "Missing option"),
        (["compare", "-t"], "requires an argument"),
        (["topology", "linear", "--load", "much"], "--load"),
        (["topology", "\x1b[31m\x07.json"], "?[31m?.json: cannot be read"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, *arguments)


@pytest.mark.parametrize("command", ["policies", "policies --json", "load list", "topology wordcount"])
def test_a_reader_that_closes_the_pipe_is_not_an_error(command: str, tmp_path: Path) -> None:
    done = process(f"set -o pipefail; rheostat {command} | head -c 1", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    gone = process(f"set -o pipefail; rheostat {command} | true", tmp_path)
    assert (gone.returncode, gone.stderr) == (0, "")


def test_a_full_disk_is_a_one_line_error_with_exit_code_1(tmp_path: Path) -> None:
    done = process("rheostat policies > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr == "rheostat: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("command", ["load list", "policies", "--help", "policies --json"])
def test_a_closed_output_is_one_line_and_exit_code_1(command: str, tmp_path: Path) -> None:
    done = process(f"rheostat {command} >&-", tmp_path)
    assert done.returncode == 1
    assert done.stderr == "rheostat: cannot write the output: standard output is closed\n"


def test_a_disk_that_fills_up_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    write = "rheostat load write sine:duration=2h --out sine.csv"
    assert process(write, tmp_path).returncode == 0
    before = (tmp_path / "sine.csv").read_bytes()
    done = process(f"trap '' XFSZ; ulimit -f 8; {write} --step 0.5", tmp_path)
    assert done.returncode == 2
    assert done.stderr == "rheostat: sine.csv: cannot be written: File too large\n"
    assert [path.name for path in tmp_path.iterdir()] == ["sine.csv"]
    assert (tmp_path / "sine.csv").read_bytes() == before


def test_an_invalid_matplotlib_backend_is_ignored(tmp_path: Path) -> None:
    for command in (
        "load show sine --out sine.png",
        "compare -t wordcount -c constant:rate=9:duration=5m -p static",
    ):
        done = process(f"rheostat {command}", tmp_path, MPLBACKEND="nonsense")
        assert (done.returncode, done.stderr) == (0, "")


def test_an_ascii_terminal_gets_question_marks(tmp_path: Path) -> None:
    done = process("rheostat topology wordcount", tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "1,000 rows/s ? split" in done.stdout


def test_colours_are_used_on_request_and_never_with_no_color(tmp_path: Path) -> None:
    assert "\x1b[1m" in process("rheostat policies", tmp_path, FORCE_COLOR="1").stdout
    for setting in ({}, {"NO_COLOR": "1"}):
        assert "\x1b" not in process("rheostat policies", tmp_path, **setting).stdout
    coloured = process("rheostat policies --json", tmp_path, FORCE_COLOR="1")
    assert "\x1b" not in coloured.stdout
    assert json.loads(coloured.stdout)
