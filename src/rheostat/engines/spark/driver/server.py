"""Answers the controller from inside the driver process, on a Unix socket that only its owner can open."""

import os
import socketserver
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

from rheostat.engines.spark import protocol, wire
from rheostat.engines.spark.driver.error_text import plain
from rheostat.engines.spark.driver.rescale import refusal, rescale
from rheostat.engines.spark.driver.runner import Runner
from rheostat.engines.spark.protocol import Done
from rheostat.model.errors import RheostatError, UserError


def _ping(_runner: Runner, _request: protocol.Ping) -> Done:
    return Done()


def _describe(runner: Runner, _request: protocol.Describe) -> protocol.Description:
    return runner.describe()


def _begin(runner: Runner, request: protocol.Begin) -> Done:
    runner.begin(request.parallelism)
    return Done()


def _report(runner: Runner, _request: protocol.TakeReport) -> protocol.Report:
    return runner.report()


def _request_executors(runner: Runner, request: protocol.RequestExecutors) -> Done:
    if not runner.session.request(request.total):
        raise RheostatError("the cluster manager did not accept the request for executors")
    return Done()


def _decommission(runner: Runner, request: protocol.Decommission) -> Done:
    runner.session.decommission(request.executors)
    return Done()


def _kill(runner: Runner, request: protocol.KillExecutors) -> Done:
    runner.session.kill(request.executors)
    return Done()


def _set_parallelism(runner: Runner, request: protocol.SetParallelism) -> Done:
    runner.set_parallelism(request.targets)
    return Done()


def _check_rescale(runner: Runner, request: protocol.CheckRescale) -> protocol.Refusal:
    return protocol.Refusal(refusal(runner, request.operator))


def _rescale(runner: Runner, request: protocol.Rescale) -> protocol.Rescaled:
    return rescale(runner, request.operator, request.count)


def _stop(runner: Runner, _request: protocol.Stop) -> Done:
    runner.stop()
    return Done()


HANDLERS: dict[type[protocol.AnyRequest], Callable[[Runner, Any], protocol.Answer]] = {
    protocol.Ping: _ping,
    protocol.Describe: _describe,
    protocol.Begin: _begin,
    protocol.TakeReport: _report,
    protocol.RequestExecutors: _request_executors,
    protocol.Decommission: _decommission,
    protocol.KillExecutors: _kill,
    protocol.SetParallelism: _set_parallelism,
    protocol.CheckRescale: _check_rescale,
    protocol.Rescale: _rescale,
    protocol.Stop: _stop,
}


class RequestServer:
    """A server thread; one request and one answer per line."""

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
        """Stop answering."""
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
            sent = answer(server.runner, line)
            if server.runner.is_over():
                return  # a failure would only be due to the end of the session
            self.wfile.write(sent)


def answer(runner: Runner, line: bytes) -> bytes:
    """Execute the request in a line; a failure is an answer too, as the application continues."""
    try:
        request = wire.read_request(line)
        return wire.write_answer(HANDLERS[type(request)](runner, request))
    except UserError as error:
        return wire.write_answer(wire.failed(str(error), refused=True))
    except Exception as error:  # the controller decides what to do about it
        return wire.write_answer(wire.failed(f"{type(error).__name__}: {plain(error)}"))
