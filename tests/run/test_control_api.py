"""The control API of a run: who may ask, what is refused, and what its file holds."""

import http.client
import json
import os
import socket
import stat
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rheostat.control.requests import Answer, Inbox
from rheostat.model.configuration import Configuration
from rheostat.model.decision import Outcome, Plan, Status
from rheostat.model.errors import RheostatError, UserError
from rheostat.run.control_api import serving
from rheostat.run.control_client import propose, who
from rheostat.run.control_messages import CONTROL, MAX_BYTES, PLANS, ControlFile, PlanRequest, write

WISH = {"parallelism": {"split": 2}, "reason": "more", "by": "ann@desk"}
BEFORE, AFTER = (Configuration({"split": count}, 1, 1) for count in (1, 2))
PLAN = Plan(7, 60.0, BEFORE, AFTER, "more", vetoes=("nodes raised to 2",))
OUTCOME = Outcome(Status.APPLIED, AFTER, 60.0, 61.0, "split 1 -> 2 in 1.0 s", steps=("parallelism",))


@dataclass
class Api:
    """A control API that is served, and the loop's side of it."""

    folder: Path
    inbox: Inbox
    about: ControlFile

    def answer_next(self, answer: Answer | RheostatError) -> threading.Thread:
        """Answer the next request, as the loop would, in a thread of its own."""

        def serve() -> None:
            while (ticket := self.inbox.take()) is None:
                pass
            ticket.answer(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        return thread

    def send(
        self,
        body: bytes | None = None,
        path: str = PLANS,
        method: str = "POST",
        headers: Mapping[str, str | None] = {},
    ) -> tuple[int, dict[str, Any]]:
        """Send a request that is right but for what is given; a header that is None is left out."""
        given = {
            "Host": f"127.0.0.1:{self.about.port}",
            "Authorization": f"Bearer {self.about.token}",
            "Content-Type": "application/json",
            **headers,
        }
        body = json.dumps(WISH).encode() if body is None else body
        connection = http.client.HTTPConnection("127.0.0.1", self.about.port, timeout=10)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Content-Length": str(len(body)), **given}.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            assert not [name for name, _ in answer.getheaders() if name.lower().startswith("access-control")]
            return answer.status, json.loads(answer.read() or b"{}")
        finally:
            connection.close()


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    inbox = Inbox()
    with serving(tmp_path, inbox) as about:
        yield Api(tmp_path, inbox, about)


def test_the_file_is_its_owners_alone_and_goes_with_the_run(tmp_path: Path) -> None:
    path = tmp_path / CONTROL
    path.write_text("{}")
    path.chmod(0o644)  # as a controller that was killed, or anybody, may have left it
    old = os.umask(0)
    try:
        with serving(tmp_path, Inbox()) as about:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            told = json.loads(path.read_text())
            assert told == {
                "version": 1,
                "host": "127.0.0.1",
                "port": about.port,
                "pid": os.getpid(),
                "token": about.token,
            }
            assert [file.name for file in tmp_path.iterdir()] == [CONTROL]
    finally:
        os.umask(old)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", about.port), 5).close()


def test_each_run_has_a_token_of_its_own_and_listens_on_loopback_only(api: Api, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with serving(tmp_path / "other", Inbox()) as other:
        assert other.token != api.about.token
        assert other.port != api.about.port
    assert len(api.about.token) >= 43  # 256 bits


def test_a_plan_is_answered_with_what_became_of_it(api: Api) -> None:
    api.answer_next(Answer(PLAN, OUTCOME))
    answer = propose(api.folder, PlanRequest(**WISH))  # type: ignore[arg-type]
    assert (answer.status, answer.number, answer.change) == ("applied", 7, "split 1 -> 2")
    assert (answer.vetoes, answer.outcome) == (["nodes raised to 2"], "split 1 -> 2 in 1.0 s")
    assert (answer.steps, answer.parallelism) == (["parallelism"], {"split": 2})


def test_a_preview_has_no_number_because_it_is_no_turn(api: Api) -> None:
    api.answer_next(Answer(PLAN))
    answer = propose(api.folder, PlanRequest(**WISH), preview=True)  # type: ignore[arg-type]
    assert (answer.status, answer.number, answer.vetoes) == ("preview", None, ["nodes raised to 2"])
    assert answer.parallelism == {"split": 2}


@pytest.mark.parametrize(
    ("headers", "status", "words"),
    [
        ({"Authorization": None}, 401, "the token of control.json is missing or wrong"),
        ({"Authorization": "Bearer guess"}, 401, "missing or wrong"),
        ({"Authorization": "Basic Z3Vlc3M6"}, 401, "missing or wrong"),
        ({"Host": None}, 403, "Host header"),
        ({"Host": "evil.example"}, 403, "Host header"),
        ({"Host": "127.0.0.1"}, 403, "Host header"),
        ({"Content-Type": "text/plain"}, 415, "application/json"),
        ({"Content-Type": None}, 415, "application/json"),
        ({"Content-Length": None}, 411, "Content-Length"),
        ({"Content-Length": "-1"}, 411, "Content-Length"),
        ({"Content-Length": str(MAX_BYTES + 1)}, 413, "at most 65536 bytes"),
        ({"Content-Length": "9" * 30}, 413, "at most 65536 bytes"),
    ],
)
def test_whoever_does_not_show_what_is_needed_is_refused(
    api: Api, headers: dict[str, str | None], status: int, words: str
) -> None:
    answered, told = api.send(b"" if "Content-Length" in headers else None, headers=headers)
    assert (answered, words in told["error"]) == (status, True), told
    assert api.inbox.look() is None
    assert api.about.token not in str(told)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"paralelism": {}}, "unknown key 'paralelism'; did you mean 'parallelism'?"),
        ({"parallelism": {"split": "2"}}, "parallelism.split: Input should be a valid integer"),
        ({"parallelism": {"split": 2.5}}, "parallelism.split: Input should be a valid integer"),
        ({"parallelism": {"split": True}}, "parallelism.split: Input should be a valid integer"),
        ({"parallelism": {"split": 0}}, "parallelism.split: Input should be greater than or equal to 1"),
        ({"parallelism": {"split": 10**9}}, "parallelism.split: Input should be less than or equal to"),
        ({"parallelism": {}}, "parallelism: Dictionary should have at least 1 item"),
        ({"parallelism": [2]}, "parallelism: Input should be an object"),
        ({"reason": ""}, "reason: String should have at least 1 character"),
        ({"by": "x" * 101}, "by: String should have at most 100 characters"),
        ({"expected": {"lag (s)": "low"}}, "expected.lag (s): Input should be a valid number"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_in_one_line(
    api: Api, changed: dict[str, Any], words: str
) -> None:
    status, told = api.send(json.dumps({**WISH, **changed}).encode())
    assert status == 422
    assert words in told["error"]
    assert "\n" not in told["error"]
    assert api.inbox.look() is None


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 60_000, b'{"expected": {"a": NaN}}']
)
def test_what_is_no_json_object_is_refused(api: Api, body: bytes) -> None:
    assert api.send(body)[0] == 422
    assert api.inbox.look() is None


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", PLANS, 405),
        ("OPTIONS", PLANS, 405),
        ("POST", "/v2/plans", 404),
        ("POST", "/", 404),
        ("POST", f"{PLANS}?dyr", 400),
        ("TRACE", PLANS, 501),
    ],
)
def test_other_paths_and_methods_are_refused(api: Api, method: str, path: str, status: int) -> None:
    answered, told = api.send(path=path, method=method)
    assert answered == status
    assert told["error"]


def test_what_the_loop_refuses_is_the_clients_error(api: Api) -> None:
    api.answer_next(UserError("there is no operator 'splitt'; did you mean 'split'?"))
    with pytest.raises(UserError, match=r"^there is no operator 'splitt'"):
        propose(api.folder, PlanRequest(**WISH))  # type: ignore[arg-type]
    api.answer_next(RheostatError("the driver is gone"))
    with pytest.raises(RheostatError, match=r"^the run refused the plan: the driver is gone$"):
        propose(api.folder, PlanRequest(**WISH))  # type: ignore[arg-type]


def test_who_waits_when_the_run_ends_gets_an_answer(tmp_path: Path) -> None:
    refusals: list[str] = []

    def ask() -> None:
        with pytest.raises(RheostatError) as refused:
            propose(tmp_path, PlanRequest(**WISH))  # type: ignore[arg-type]
        refusals.append(str(refused.value))

    inbox = Inbox()
    with serving(tmp_path, inbox):
        client = threading.Thread(target=ask)
        client.start()
        while inbox.look() is None:
            assert client.is_alive()
    client.join(10)
    assert refusals == ["the run refused the plan: the run has ended"]


def left(folder: Path, about: ControlFile) -> None:
    (folder / CONTROL).write_bytes(write(about))


def test_a_run_that_is_not_under_way_is_one_line(tmp_path: Path) -> None:
    wish = PlanRequest(**WISH)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="no run is under way here; start it with `rheostat run`"):
        propose(tmp_path, wish)
    with serving(tmp_path, Inbox()) as about:
        pass
    left(tmp_path, about)
    with pytest.raises(UserError, match=r"nobody answers at 127\.0\.0\.1"):
        propose(tmp_path, wish)
    left(tmp_path, replace(about, pid=2**22 + 1))
    with pytest.raises(UserError, match="its controller, process 4194305, is gone"):
        propose(tmp_path, wish)
    (tmp_path / CONTROL).write_text('{"host": "10.0.0.1"}')
    with pytest.raises(UserError, match=r"control\.json: "):
        propose(tmp_path, wish)


def test_another_run_at_the_same_port_is_recognised(api: Api, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    left(tmp_path / "old", replace(api.about, token="x" * 43))
    with pytest.raises(UserError, match=r"another run or program answers at 127\.0\.0\.1"):
        propose(tmp_path / "old", PlanRequest(**WISH))  # type: ignore[arg-type]
    assert api.inbox.look() is None


def test_clients_that_say_nothing_do_not_keep_others_or_the_runs_end_waiting(tmp_path: Path) -> None:
    inbox = Inbox()
    silent: list[socket.socket] = []
    with serving(tmp_path, inbox) as about:
        silent += [socket.create_connection(("127.0.0.1", about.port), 5) for _ in range(20)]
        Api(tmp_path, inbox, about).answer_next(Answer(PLAN, OUTCOME))
        assert propose(tmp_path, PlanRequest(**WISH)).status == "applied"  # type: ignore[arg-type]
    for connection in silent:
        connection.close()


def test_a_client_says_who_it_is() -> None:
    assert who().count("@") == 1
