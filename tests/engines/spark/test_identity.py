"""Nothing in a run's folder is trusted: what a resumed run ends and removes proves to be its own."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.engines.spark import identity
from rheostat.engines.spark.driver_process import DriverProcess
from rheostat.engines.spark.identity import Identity
from rheostat.engines.spark.protocol import Describe
from rheostat.engines.spark.spec import LOG, PID, SPEC
from rheostat.engines.spark.wire import OtherVersionError

from .scripted import DESCRIBED, driver_process, spec

MODULE = "rheostat.engines.spark.driver"


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of somebody else, whose arguments contain our module's name."""
    waits = ["-c", "import sys; sys.stdin.read()", "-m", MODULE]
    command = [shutil.which("python3") or "python3", *waits]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process
        process.kill()


def made_by_another(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    (folder / "precious").write_text("of somebody else")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("token", ["", "0123456789abcdef0123456789abcdef"])
def test_forged_files_end_no_process_and_remove_no_folder(
    run: Path, tmp_path: Path, stranger: "subprocess.Popen[bytes]", token: str
) -> None:
    other = made_by_another(tmp_path / "rheostat-other")
    spec(run, other / "driver", token).write()
    for written in (f"{stranger.pid} {Identity.of(stranger.pid).started}\n", str(stranger.pid)):
        (run / PID).write_text(written)
        assert DriverProcess.attach(run) is None
        assert stranger.poll() is None
        assert (other / "precious").exists()


def test_a_folder_with_the_token_is_removed_only_if_it_is_like_those_that_drivers_get(tmp_path: Path) -> None:
    token = identity.new_token()
    wrong_name, open_to_all = tmp_path / "home", tmp_path / "rheostat-open"
    linked, right = tmp_path / "rheostat-link", identity.make_folder(tmp_path)
    wrong_name.mkdir(mode=0o700)
    open_to_all.mkdir(mode=0o755)
    linked.symlink_to(right)
    for folder in (wrong_name, open_to_all, right):
        identity.mark_folder(folder, token)
        (folder / "blocks" / "of").mkdir(parents=True)
        identity.remove_folder(folder, identity.new_token())
    for folder in (wrong_name, open_to_all, linked, tmp_path / "rheostat-none"):
        identity.remove_folder(folder, token)
    assert {path.name for path in tmp_path.iterdir()} == {
        "home",
        "rheostat-open",
        "rheostat-link",
        right.name,
    }
    assert (right / "blocks" / "of").exists()
    identity.remove_folder(right, token)
    assert not right.exists()


def test_a_driver_that_an_earlier_controller_left_is_taken_over_and_ended_in_order(run: Path) -> None:
    with driver_process(run) as left:
        attached = DriverProcess.attach(run)
        assert attached is not None and attached.pid == left.pid
        assert attached.ask(Describe()) == DESCRIBED
        attached.stop()
        assert left.process is not None and left.process.wait() == 0
        assert (run / "done").exists() and not left.spec.scratch.exists()


@pytest.mark.parametrize("described", [b'{"ok": {}}\n', b'{"version": 99, "answer": {"new": 1}}\n'])
def test_a_driver_of_another_version_is_left_running_and_the_error_says_what_to_do(
    run: Path, described: bytes
) -> None:
    with driver_process(run, described=described) as left:
        with pytest.raises(OtherVersionError) as raised:
            DriverProcess.attach(run)
        assert left.alive and left.spec.scratch.exists()
    assert f"stop the application with `kill {left.pid}` and resume again" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_driver_that_hangs_is_ended_and_its_folder_removed(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DriverProcess.ask, "__defaults__", (0.3,))  # to wait for an answer
    with driver_process(run) as left:
        os.kill(left.pid, signal.SIGSTOP)
        assert DriverProcess.attach(run) is None
        assert left.process is not None and left.process.wait() == -signal.SIGTERM
        assert not left.spec.scratch.exists()


def test_the_next_controller_removes_the_folder_of_a_driver_that_was_killed(run: Path) -> None:
    with driver_process(run) as left:
        left.crash()
        assert left.process is not None
        left.process.wait()
        assert left.spec.scratch.exists()
        assert DriverProcess.attach(run) is None
        assert not left.spec.scratch.exists()


def test_the_driver_of_another_run_is_left_alone(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with driver_process(run) as other:
        shutil.copytree(run, copy)  # with the token
        assert DriverProcess.attach(copy) is None
        spec(copy, other.spec.socket, identity.new_token()).write()  # in the copy's name, without the token
        assert DriverProcess.attach(copy) is None
        assert other.alive and other.spec.scratch.exists()
        assert other.ask(Describe()) == DESCRIBED


def test_a_process_number_that_was_reused_is_not_the_driver(run: Path) -> None:
    with driver_process(run) as left:
        Identity(left.pid, Identity.of(left.pid).started - 1).write(run / PID)
        assert not Identity.read(run / PID).is_alive(left.spec.token)
        assert Identity.of(left.pid).is_alive(left.spec.token)
        assert not Identity.of(left.pid).is_alive("")


@pytest.mark.parametrize(
    "written", ["", "12", "-1 0", "0 0", "1 x", "9" * 5000 + " 1", "99999999999 1", "\0 1"]
)
def test_a_pid_file_that_makes_no_sense_is_no_driver(run: Path, written: str) -> None:
    spec(run, run / "s", identity.new_token()).write()
    (run / PID).write_text(written)
    assert DriverProcess.attach(run) is None


@pytest.mark.parametrize("key", ["socket", "folder"])
def test_a_path_with_a_nul_is_not_trusted(run: Path, key: str) -> None:
    written = spec(run, run / "s", identity.new_token()).write()
    stated = json.loads(written.read_text())
    written.write_text(json.dumps(stated | {key: f"{run}/rheostat-\0x/driver"}))
    (run / PID).write_text(f"{os.getpid()} 1\n")
    assert DriverProcess.attach(run) is None


def test_a_driver_that_could_not_be_started_leaves_neither_its_folder_nor_a_secret(
    run: Path, tmp_path: Path
) -> None:
    given = replace(
        spec(run, DriverProcess.socket_path(tmp_path), ""), settings={"spark.authenticate.secret": "hunter2"}
    )
    (run / LOG).mkdir()
    with pytest.raises(IsADirectoryError):
        DriverProcess.start(given)
    assert not given.scratch.exists()
    assert "hunter2" not in (run / SPEC).read_text()


@pytest.mark.parametrize(
    "written", ["", "{", "[]", "null", '{"name": 1}', '{"name": "app", "script": "a.py"}']
)
def test_an_incomplete_driver_json_is_no_driver(run: Path, written: str) -> None:
    (run / SPEC).write_text(written)
    (run / PID).write_text(f"{os.getpid()} 1\n")
    assert DriverProcess.attach(run) is None
