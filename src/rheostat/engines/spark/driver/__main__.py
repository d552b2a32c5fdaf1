"""The driver process: `python -m rheostat.engines.spark.driver FILE` runs a script in our session."""

import contextlib
import json
import os
import runpy
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from threading import Thread
from types import FrameType

from pyspark.errors import StreamingQueryException

from rheostat.engines.spark.driver import runner as runner_module
from rheostat.engines.spark.driver.error_text import plain
from rheostat.engines.spark.driver.runner import Runner
from rheostat.engines.spark.driver.server import RequestServer
from rheostat.engines.spark.driver.session import Session
from rheostat.engines.spark.identity import remove_folder
from rheostat.engines.spark.spec import FAILURE, Spec
from rheostat.model.errors import RheostatError, UserError


def main(path: str) -> int:
    """Run the script until it ends; write the reason to a file for the controller."""
    spec = Spec.read(Path(path))
    try:
        return _run(spec)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # Spark itself failed to start
        return _leave_reason(spec, error)
    finally:
        remove_folder(spec.scratch, spec.token)


def _run(spec: Spec) -> int:
    """Run the script; write the reason why it ended before Spark stops, which may take too long."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    tempfile.tempdir = str(spec.scratch)  # removed afterwards, even if the start is interrupted
    try:
        session = Session(spec)
    except Exception as error:  # a wrong setting, a port in use, no Master
        raise UserError(f"Spark failed to start: {plain(error)}") from None
    finally:
        tempfile.tempdir = None  # the script has its own
    runner = runner_module.current = Runner(session, spec)
    server = RequestServer(runner, Path(spec.socket))

    def stop(_number: int, _frame: FrameType | None) -> None:
        Thread(target=runner.stop, daemon=True).start()  # a handler must not wait for a batch

    signal.signal(signal.SIGTERM, stop)
    try:
        return _leave_reason(spec, _end_of_script(spec, runner))
    finally:
        runner.closing = True
        server.close()
        with contextlib.suppress(Exception):  # the reason why the script ended is already written
            session.spark.stop()


def _end_of_script(spec: Spec, runner: Runner) -> Exception | None:
    try:
        runner.rewrite_state()
        while not _runs_to_its_end(spec, runner):
            pass
    except Exception as error:
        return error
    return None


def _runs_to_its_end(spec: Spec, runner: Runner) -> bool:
    """Run the script; False: its checkpoint had to be mended first, so it has to run again."""
    try:
        _run_script(spec, runner)
        runner.wait()
    except Exception as error:
        if not runner.mend(error):
            raise
        return False
    return True


def _run_script(spec: Spec, runner: Runner) -> None:
    """Run it as Python would; a failure before its query runs is a mistake in the script."""
    sys.argv = [spec.script, *spec.arguments]
    sys.path.insert(0, str(Path(spec.script).parent))
    try:
        runpy.run_path(spec.script, run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            kind = RheostatError if runner.has_run() else UserError
            raise kind(f"{spec.script} exited: {error.code}") from None
    except RheostatError:
        raise
    except Exception as error:
        if isinstance(error, StreamingQueryException) and not runner.is_over():
            runner.script.check_log(error)
        if runner.has_run():
            raise
        message = f"{type(error).__name__}: {plain(error)}"
        raise UserError(f"{spec.script}, line {_line(error, spec.script)}: {message}") from None


def _line(error: Exception, script: str) -> int | None:
    """The line of the script in which an error was raised."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == script]
    return lines[-1] if lines else getattr(error, "lineno", None)


def _leave_reason(spec: Spec, error: Exception | None) -> int:
    """Write the reason why it ended; None: it finished."""
    if error is not None and not isinstance(error, RheostatError):
        error = RheostatError(f"{type(error).__name__}: {plain(error)}")
    reason = {"ended": error is None, "refused": isinstance(error, UserError), "message": str(error or "")}
    with contextlib.suppress(OSError):  # a full disk
        note = Path(spec.folder) / FAILURE
        new = note.with_suffix(".new")  # the controller may read it at any time
        new.write_text(json.dumps(reason))
        new.replace(note)
    if error is None:
        return 0
    print(f"rheostat: {error}", file=sys.stderr)
    return 2 if reason["refused"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
