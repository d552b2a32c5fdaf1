"""Answers a controller, from inside the driver process, on a Unix socket that only its owner can open."""

import json
import os
import socketserver
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from typing import Any

from rheostat.engines.spark.host import Host
from rheostat.engines.spark.rescale import refusal, rescale
from rheostat.engines.spark.sparks_words import plain
from rheostat.model.errors import RheostatError, UserError

Answer = Callable[[Host, Mapping[str, Any]], Any]


def _executors(host: Host, request: Mapping[str, Any]) -> Any:
    if not host.session.request(int(request["total"])):
        raise RheostatError("the cluster manager did not take the request for executors")
    return None


ANSWERS: dict[str, Answer] = {
    "ping": lambda _host, _: None,
    "describe": lambda host, _: host.describe(),
    "begin": lambda host, request: host.begin(request["parallelism"]),
    "report": lambda host, _: host.report(),
    "executors": _executors,
    "decommission": lambda host, request: host.session.decommission(request["executors"]),
    "kill": lambda host, request: host.session.kill(request["executors"]),
    "parallelism": lambda host, request: host.set_parallelism(request["targets"]),
    "refusal": lambda host, request: refusal(host, request["operator"]),
    "rescale": lambda host, request: asdict(rescale(host, request["operator"], int(request["count"]))),
    "stop": lambda host, _: host.stop(),
}


class Agent:
    """A server thread; one request and one answer per line, as JSON."""

    def __init__(self, host: Host, path: Path) -> None:
        path.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            self._server = _Server(str(path), _Handler)
        finally:
            os.umask(mask)
        self._server.host = host
        Thread(target=self._server.serve_forever, name="rheostat-agent", daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    host: Host


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server = self.server
        assert isinstance(server, _Server)
        for line in self.rfile:
            answer = _answer(server.host, line)
            if server.host.is_over():
                return  # a failure would only be that of the session's end
            self.wfile.write(json.dumps(answer).encode() + b"\n")


def _answer(host: Host, line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
        return {"ok": ANSWERS[request["do"]](host, request)}
    except UserError as error:
        return {"error": str(error), "refused": True}
    except Exception as error:  # the controller decides what to do about it; the application goes on
        return {"error": f"{type(error).__name__}: {plain(error)}", "refused": False}
