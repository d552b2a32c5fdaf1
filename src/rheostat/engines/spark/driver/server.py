"""Answers a controller, from inside the driver process, on a Unix socket that only its owner can open."""

import json
import os
import socketserver
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from typing import Any

from rheostat.engines.spark.driver.error_text import plain
from rheostat.engines.spark.driver.rescale import refusal, rescale
from rheostat.engines.spark.driver.runner import Runner
from rheostat.model.errors import RheostatError, UserError

Answer = Callable[[Runner, Mapping[str, Any]], Any]


def _executors(runner: Runner, request: Mapping[str, Any]) -> Any:
    if not runner.session.request(int(request["total"])):
        raise RheostatError("the cluster manager did not take the request for executors")
    return None


ANSWERS: dict[str, Answer] = {
    "ping": lambda _host, _: None,
    "describe": lambda runner, _: runner.describe(),
    "begin": lambda runner, request: runner.begin(request["parallelism"]),
    "report": lambda runner, _: runner.report(),
    "executors": _executors,
    "decommission": lambda runner, request: runner.session.decommission(request["executors"]),
    "kill": lambda runner, request: runner.session.kill(request["executors"]),
    "parallelism": lambda runner, request: runner.set_parallelism(request["targets"]),
    "refusal": lambda runner, request: refusal(runner, request["operator"]),
    "rescale": lambda runner, request: asdict(rescale(runner, request["operator"], int(request["count"]))),
    "stop": lambda runner, _: runner.stop(),
}


class RequestServer:
    """A server thread; one request and one answer per line, as JSON."""

    def __init__(self, runner: Runner, path: Path) -> None:
        path.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            self._server = _Server(str(path), _Handler)
        finally:
            os.umask(mask)
        self._server.runner = runner
        Thread(target=self._server.serve_forever, name="rheostat-server", daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    runner: Runner


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server = self.server
        assert isinstance(server, _Server)
        for line in self.rfile:
            answer = _answer(server.runner, line)
            if server.runner.is_over():
                return  # a failure would only be that of the session's end
            self.wfile.write(json.dumps(answer).encode() + b"\n")


def _answer(runner: Runner, line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
        return {"ok": ANSWERS[request["do"]](runner, request)}
    except UserError as error:
        return {"error": str(error), "refused": True}
    except Exception as error:  # the controller decides what to do about it; the application goes on
        return {"error": f"{type(error).__name__}: {plain(error)}", "refused": False}
