"""The control API of a run: a small HTTP server on loopback, whose threads only fill the loop's inbox.

Every user and every web page of this machine can reach a port of 127.0.0.1. So a request needs the token of
the run's folder, which only its owner can read, and a Host header that no other site's name can be in (DNS
rebinding); there is no CORS header, and a body must say that it is JSON, which no form of a web page can.
"""

import hmac
import json
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rheostat.control.requests import Inbox, RefusedError
from rheostat.model.errors import FileError, RheostatError, UserError
from rheostat.run.control_messages import (
    CONTROL,
    MAX_BYTES,
    PLANS,
    VERSION,
    ControlFile,
    PlanAnswer,
    PlanRequest,
    Problem,
    read,
    write,
)

HOST = "127.0.0.1"
SOCKET_SECONDS = 5.0  # a client that sends nothing for so long is cut off
ENDING_SECONDS = 5.0  # for the answers that are being sent when the run ends
MOST_CONNECTIONS = 32


class _RefusedHTTPError(Exception):
    """A request that is not carried out."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


@contextmanager
def serving(folder: Path, inbox: Inbox) -> Iterator[ControlFile]:
    """Serve the control API of the run in a folder until the block ends; then answer whoever still waits."""
    server = _Server(inbox)
    about = ControlFile(VERSION, HOST, server.server_port, os.getpid(), server.token)
    path = folder / CONTROL
    try:
        _write_secret(path, write(about))
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="control API", daemon=True)
        thread.start()
        try:
            yield about
        finally:
            inbox.close()
            server.finish()
            thread.join()
    finally:
        path.unlink(missing_ok=True)
        server.server_close()


def _write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    fresh = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(content)
        fresh.replace(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from None


class _Server(ThreadingHTTPServer):
    """Takes few connections at a time: whoever has no token must not fill the controller with threads."""

    daemon_threads = True

    def __init__(self, inbox: Inbox) -> None:
        super().__init__((HOST, 0), _Handler)
        self.inbox, self.token = inbox, secrets.token_urlsafe(32)
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._answering, self._done = 0, threading.Condition()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Mark a request that has shown the token, so that the run's end waits for its answer to be sent."""
        with self._done:
            self._answering += 1
        try:
            yield
        finally:
            with self._done:
                self._answering -= 1
                self._done.notify_all()

    def finish(self) -> None:
        """Take no more requests; wait until answers are sent."""
        with self._done:
            self._done.wait_for(lambda: not self._answering, ENDING_SECONDS)
        self.shutdown()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that hangs up is no trouble of the run's."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = SOCKET_SECONDS
    server_version, sys_version = "rheostat", ""

    def do_POST(self) -> None:
        self._answer()

    do_GET = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_POST  # noqa: N815 - http.server's names

    def _answer(self) -> None:
        try:
            self._check_sender()
            with self.server.answering():
                self._send(HTTPStatus.OK, self._plan())
        except _RefusedHTTPError as refused:
            self._send(refused.status, Problem(str(refused)))
        except RefusedError as error:
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, Problem(str(error)))
        except UserError as error:
            self._send(HTTPStatus.UNPROCESSABLE_ENTITY, Problem(str(error)))
        except RheostatError as error:
            self._send(HTTPStatus.CONFLICT, Problem(str(error)))

    def _check_sender(self) -> None:
        places = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        if self.headers.get("Host") not in places:
            raise _RefusedHTTPError(HTTPStatus.FORBIDDEN, "the Host header must name this machine's loopback")
        given = (self.headers.get("Authorization") or "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            raise _RefusedHTTPError(HTTPStatus.UNAUTHORIZED, f"the token of {CONTROL} is missing or wrong")

    def _plan(self) -> PlanAnswer:
        """Put a plan into the inbox and wait for what becomes of it."""
        where = urlsplit(self.path)
        if where.path != PLANS:
            raise _RefusedHTTPError(
                HTTPStatus.NOT_FOUND, f"there is no such path; this is version {VERSION}: {PLANS}"
            )
        if self.command != "POST":
            raise _RefusedHTTPError(HTTPStatus.METHOD_NOT_ALLOWED, f"{PLANS} takes POST only")
        asked = parse_qs(where.query, keep_blank_values=True)
        if unknown := asked.keys() - {"dry"}:
            raise _RefusedHTTPError(
                HTTPStatus.BAD_REQUEST, f"unknown parameter {min(unknown)!r}; did you mean 'dry'?"
            )
        request = read(PlanRequest, self._body(), "the request")
        ticket = self.server.inbox.put(request.as_request(preview="dry" in asked))
        return PlanAnswer.of(ticket.wait())

    def _body(self) -> bytes:
        kind = (self.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise _RefusedHTTPError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must be application/json")
        length = self.headers.get("Content-Length") or ""
        if not length.isascii() or not length.isdigit():
            raise _RefusedHTTPError(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing")
        if int(length[:12]) > MAX_BYTES:
            raise _RefusedHTTPError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {MAX_BYTES} bytes"
            )
        return self.rfile.read(int(length))

    def _send(self, status: HTTPStatus, message: Problem | PlanAnswer) -> None:
        body = write(message)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what the parser refuses in JSON as well."""
        body = json.dumps({"error": message or "bad request"}).encode()
        self.send_response_only(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: neither secrets nor noise."""
