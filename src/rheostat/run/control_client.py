"""Asks a run that is under way, through its control API; whatever goes wrong is one line."""

import getpass
import http.client
import os
import socket
from http import HTTPStatus
from pathlib import Path

from rheostat.model.errors import RheostatError, UserError
from rheostat.run.control_messages import (
    CONTROL,
    PLANS,
    ControlFile,
    PlanAnswer,
    PlanRequest,
    Problem,
    read,
    write,
)

ANSWER_SECONDS = 1800.0  # nodes may have to start, and state to be rewritten
START = "start it with `rheostat run` (--resume continues it)"


def propose(folder: Path, request: PlanRequest, *, preview: bool = False) -> PlanAnswer:
    """Hand a plan to the run in a folder and wait for what becomes of it."""
    control = _control(folder)
    path = f"{PLANS}?dry" if preview else PLANS
    status, body = _post(folder, control, path, write(request))
    if status == HTTPStatus.OK:
        return read(PlanAnswer, body, "the run's answer")
    if status == HTTPStatus.UNAUTHORIZED:
        raise UserError(f"{folder}: another run or program answers at {control.host}:{control.port}; {START}")
    try:
        why = read(Problem, body, "the run's answer").error
    except UserError:
        raise UserError(f"{folder}: no run answers at {control.host}:{control.port}; {START}") from None
    if status == HTTPStatus.UNPROCESSABLE_ENTITY:
        raise UserError(why)
    raise RheostatError(f"the run refused the plan: {why}")


def who() -> str:
    """The user of this process, as USER@HOST."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"[:100]


def _control(folder: Path) -> ControlFile:
    path = folder / CONTROL
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{folder}: no run is under way here; {START}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    control = read(ControlFile, text, path)
    try:
        os.kill(control.pid, 0)
    except (ProcessLookupError, OverflowError):
        raise UserError(f"{folder}: its controller, process {control.pid}, is gone; {START}") from None
    except PermissionError:  # another user's process, or another machine's number
        pass
    return control


def _post(folder: Path, control: ControlFile, path: str, body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(control.host, control.port, timeout=ANSWER_SECONDS)
    headers = {"Authorization": f"Bearer {control.token}", "Content-Type": "application/json"}
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(10 * 1024 * 1024)
    except ConnectionRefusedError:
        raise UserError(f"{folder}: nobody answers at {control.host}:{control.port}; {START}") from None
    except TimeoutError:
        raise RheostatError(
            f"the run did not answer within {ANSWER_SECONDS:g} s; see `rheostat status`"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise RheostatError(
            f"the run hung up before it answered ({error or type(error).__name__}); see `rheostat status`"
        ) from None
    finally:
        connection.close()
