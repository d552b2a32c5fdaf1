"""The driver process: `python -m rheostat.engines.spark.driver FILE` runs a script in a session of ours."""

import json
import os
import runpy
import signal
import sys
from pathlib import Path
from threading import Thread
from types import FrameType

from rheostat.engines.spark import host as hosting
from rheostat.engines.spark.agent import Agent
from rheostat.engines.spark.host import Host
from rheostat.engines.spark.session import Session
from rheostat.engines.spark.spec import FAILURE, Spec
from rheostat.model.errors import RheostatError, UserError


def main(path: str) -> int:
    """Run the script until it ends; what went wrong is left in a file for the controller."""
    spec = Spec.read(Path(path))
    folder = Path(spec.folder)
    try:
        _run(spec)
    except (UserError, RheostatError) as error:
        return _leave(folder, str(error), isinstance(error, UserError))
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return _leave(folder, f"{type(error).__name__}: {hosting.plain(error)}", False)
    return 0


def _run(spec: Spec) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = Session(spec)
    host = hosting.current = Host(session, spec)
    agent = Agent(host, Path(spec.socket))

    def stop(_number: int, _frame: FrameType | None) -> None:
        Thread(target=host.stop, daemon=True).start()  # a handler must not wait for a batch

    signal.signal(signal.SIGTERM, stop)
    try:
        sys.argv = [spec.script, *spec.arguments]
        sys.path.insert(0, str(Path(spec.script).parent))
        runpy.run_path(spec.script, run_name="__main__")
        while (query := host.find_query()) is not None and query.isActive:  # a script that only starts them
            query.awaitTermination()
    finally:
        host.closing = True
        agent.close()
        session.spark.stop()


def _leave(folder: Path, message: str, refused: bool) -> int:
    (folder / FAILURE).write_text(json.dumps({"message": message, "refused": refused}))
    print(f"rheostat: {message}", file=sys.stderr)
    return 2 if refused else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
