"""What crosses the socket between controller and driver process: every message is checked when it is read."""

import json
from dataclasses import fields
from typing import Any, cast, get_args, get_type_hints

import pytest

from rheostat.engines.spark import protocol, wire
from rheostat.engines.spark.driver.runner import Runner
from rheostat.engines.spark.driver.server import HANDLERS, answer
from rheostat.engines.spark.events import Event, Unreadable, parse_events, read_events
from rheostat.engines.spark.protocol import PROTOCOL_VERSION, Answer, AnyRequest
from rheostat.engines.spark.wire import OtherVersionError, ProtocolError
from rheostat.model.errors import RheostatError, UserError
from tests.engines.spark.test_measures import progress, stage
from tests.engines.spark.test_silence import idle

HEARD = [
    stage(3, 10, [9]),
    progress(3, 10, 40, stateOperators=[{"numRowsTotal": 7, "memoryUsedBytes": 70}]),
    idle(15),
    {"event": "executor added", "id": "0", "host": "h", "slots": 2, "page": None, "at": 1000},
    {"event": "executor removed", "id": "0", "at": 1000, "reason": "lost"},
    {"event": "query started", "query": "q", "run": "r", "name": None, "at": 1000},
    {"event": "query ended", "query": "q", "run": "r", "reason": None, "at": 1000},
    {"event": "note", "kind": "state", "text": "moved", "at": 1000},
]  # fmt: skip
STATUS = protocol.QueryStatus(
    "in",
    "q",
    None,
    True,
    (protocol.QueryStage("in", tasks=2), protocol.QueryStage("key", (0,), shuffle=1)),
    ((1000.0, 7.0),),
)
ANSWERS: list[Answer | protocol.Failed] = [
    protocol.Done(),
    protocol.Description(
        (protocol.Step("in", (), "in", False, 1, 4),), 5.0, True, {"in": 1}, {"total": 2}, 0, (STATUS,)
    ),
    protocol.Description(None, None, False, {}, {}, 0, ()),
    protocol.Report(
        read_events([*HEARD, 7]),
        (protocol.Executor("0", "h", 2, "http://w", False),),
        (STATUS,),
        (protocol.ServiceTime(7, 0, 1.5),),
    ),
    protocol.Refusal(None),
    protocol.Refusal("only RocksDB"),
    protocol.Rescaled(2.5, 1.0),
    protocol.Failed("no", refused=True),
]
REQUESTS: list[AnyRequest] = [
    protocol.Ping(),
    protocol.Describe(),
    protocol.Begin({"in": 1}),
    protocol.TakeReport(),
    protocol.RequestExecutors(3),
    protocol.Decommission(("0", "1")),
    protocol.KillExecutors(("0",)),
    protocol.SetParallelism({"key": 4}),
    protocol.CheckRescale("total"),
    protocol.Rescale("total", 3),
    protocol.Stop(),
]


def line(**content: Any) -> bytes:
    return json.dumps({"version": PROTOCOL_VERSION, **content}).encode() + b"\n"


def plain(message: AnyRequest | Answer | protocol.Failed) -> dict[str, Any]:
    """A message as the JSON of its line."""
    if isinstance(message, AnyRequest):
        return cast(dict[str, Any], json.loads(wire.write_request(message))["request"])
    return cast(dict[str, Any], json.loads(wire.write_answer(message))["answer"])


def one_line(error: BaseException) -> str:
    assert "\n" not in str(error)
    return str(error)


class Driver:
    """Stands in for a runner; carries out only what needs no Spark."""

    def __init__(self) -> None:
        self.parallelism: dict[str, int] = {}

    def set_parallelism(self, targets: dict[str, int]) -> None:
        self.parallelism |= targets

    def begin(self, _parallelism: dict[str, int]) -> None:
        raise UserError("the script has no query")

    def stop(self) -> None:
        raise KeyError("a bug")


def ask(driver: Driver, sent: bytes, request: protocol.Request[Any]) -> Any:
    return wire.read_answer(request, answer(cast(Runner, driver), sent))


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.do)
def test_every_request_arrives_as_it_was_sent(request_: AnyRequest) -> None:
    sent = wire.write_request(request_)
    assert sent.count(b"\n") == 1 and sent.endswith(b"\n")
    assert wire.read_request(sent) == request_


@pytest.mark.parametrize("sent", ANSWERS[:-1], ids=lambda sent: sent.kind)
def test_every_answer_arrives_as_it_was_sent(sent: Answer) -> None:
    [request, *_] = [request for request in REQUESTS if request.answer_type() is type(sent)]
    written = wire.write_answer(sent)
    assert written.count(b"\n") == 1 and written.endswith(b"\n")
    assert wire.read_answer(cast(Any, request), written) == sent


def test_all_requests_and_answers_are_tried_here() -> None:
    assert {type(request) for request in REQUESTS} == set(get_args(AnyRequest))
    assert {type(sent) for sent in ANSWERS} == {*get_args(Answer), protocol.Failed}


def test_every_request_has_one_handler_which_returns_its_answer() -> None:
    assert HANDLERS.keys() == set(get_args(AnyRequest))
    for kind, handler in HANDLERS.items():
        hints = get_type_hints(handler)
        assert (hints["return"], hints.get("request", hints.get("_request"))) == (kind.answer_type(), kind)


@pytest.mark.parametrize("sent", ANSWERS, ids=lambda sent: sent.kind)
def test_a_malformed_answer_of_each_kind_is_refused_in_one_line(sent: Answer) -> None:
    whole = plain(sent)
    spoiled = [{**whole, "more": 1}, {**whole, "kind": "else"}, {**whole, "kind": 1}]
    for field in fields(sent):
        another_type = [1] if isinstance(whole[field.name], str | None) else "x"
        spoiled.append({**whole, field.name: another_type})
    if not isinstance(sent, protocol.Done):
        spoiled.append({"kind": whole["kind"]})
    for content in spoiled:
        with pytest.raises(ProtocolError) as raised:
            wire.read_answer(protocol.Ping(), line(answer=content))
        assert one_line(raised.value).startswith("not an answer: answer")


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.do)
def test_a_malformed_request_of_each_kind_is_refused_in_one_line(request_: AnyRequest) -> None:
    whole = plain(request_)
    spoiled = [{**whole, "more": 1}]
    spoiled += [{**whole, field.name: None} for field in fields(request_)]
    for content in spoiled:
        with pytest.raises(ProtocolError) as raised:
            wire.read_request(line(request=content))
        assert one_line(raised.value).startswith("not a request: request")


@pytest.mark.parametrize("value", ["2", 2.5, True, None, [2], -(10**400), 10**400])
def test_a_number_must_be_a_plausible_number(value: Any) -> None:
    report = plain(ANSWERS[3])
    report["executors"][0]["slots"] = value
    with pytest.raises(ProtocolError, match=r"executors\.0\.slots"):
        wire.read_answer(protocol.TakeReport(), line(answer=report))


def test_a_nested_unknown_field_is_named() -> None:
    described = plain(ANSWERS[1])
    described["steps"][0]["speed"] = 3
    with pytest.raises(ProtocolError, match=r"steps\.0\.speed: unexpected keyword argument$"):
        wire.read_answer(protocol.Describe(), line(answer=described))


def test_the_answer_to_another_request_is_refused() -> None:
    with pytest.raises(ProtocolError, match="a Report was expected, not a Refusal"):
        wire.read_answer(protocol.TakeReport(), wire.write_answer(protocol.Refusal(None)))


@pytest.mark.parametrize(
    "sent",
    [
        b'{"ok": {}}\n',
        b'{"error": "no such request", "refused": false}\n',
        b'{"version": 99, "answer": {"kind": "done"}}\n',
        b'{"version": 99, "reply": 1}\n',
    ],
)
def test_an_answer_of_another_version_says_so_whatever_it_looks_like(sent: bytes) -> None:
    match = rf"speaks version \d+ of the driver's protocol, this side {PROTOCOL_VERSION}"
    with pytest.raises(OtherVersionError, match=match):
        wire.read_answer(protocol.Ping(), sent)


@pytest.mark.parametrize("sent", [b'{"do": "ping"}\n', b'{"version": 99, "request": {"do": "sing"}}\n'])
def test_a_request_of_another_version_gets_an_answer_that_says_so(sent: bytes) -> None:
    with pytest.raises(UserError, match="speaks version"):
        ask(Driver(), sent, protocol.Ping())


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (line(request={"do": "dance"}), "'dance' .* does not match any of the expected tags: 'ping'"),
        (
            line(request={"do": "rescale", "operator": "total", "count": "3"}),
            "count: input should be a valid",
        ),
        (b"half a li", "invalid JSON"),
        (b"[" * 100_000 + b"\n", "recursion limit"),
        (b"\xff\n", "invalid JSON"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_what_is_no_request_gets_a_typed_failure(sent: bytes, why: str) -> None:
    with pytest.raises(RheostatError, match=why) as raised:
        ask(Driver(), sent, protocol.Ping())
    assert type(raised.value) is RheostatError and one_line(raised.value)


def test_a_request_reaches_its_handler_and_a_failure_comes_back_by_kind() -> None:
    driver = Driver()
    change = protocol.SetParallelism({"key": 4})
    assert ask(driver, wire.write_request(change), change) == protocol.Done()
    assert driver.parallelism == {"key": 4}
    begin = protocol.Begin({"key": 4})
    with pytest.raises(UserError, match="the script has no query"):
        ask(driver, wire.write_request(begin), begin)
    with pytest.raises(RheostatError, match="KeyError: 'a bug'") as raised:
        ask(driver, wire.write_request(protocol.Stop()), protocol.Stop())
    assert type(raised.value) is RheostatError


def test_a_failure_with_half_a_character_can_be_sent() -> None:
    with pytest.raises(RheostatError, match=r"the file \?"):
        wire.read_answer(protocol.Ping(), wire.write_answer(wire.failed("the file \ud800")))


def test_events_are_read_from_spark_as_from_the_wire() -> None:
    events = parse_events(json.dumps([*HEARD, 7, {"event": "stage", "query": "q", "tasks": -1}]))
    assert {type(event) for event in events} == set(get_args(Event))
    report = protocol.Report(events, (), ())
    assert wire.read_answer(protocol.TakeReport(), wire.write_answer(report)) == report


def test_an_absurd_event_costs_only_itself_and_says_whose_it_was() -> None:
    absurd = progress(4, 20, 40, timestamp="yesterday")
    before, unreadable, after = read_events([HEARD[0], absurd, HEARD[2]])
    assert (before, after) == read_events([HEARD[0], HEARD[2]])
    assert unreadable == Unreadable("timestamp is yesterday", "q", ends_batch=True, batch=4)
