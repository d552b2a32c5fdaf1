"""The `rheostat` command: its subcommands, and the one place where errors become exit codes."""

import io
import os
import sys
from contextlib import suppress
from importlib import import_module

import typer
from typer.exceptions import TyperException

from rheostat import __version__
from rheostat.cli import console
from rheostat.model.errors import RheostatError, UserError

COMMANDS = (  # each is a module in this package
    "topology",
    "allocate",
    "policies",
    "load",
    "simulate",
    "compare",
    "forecast",
    "cluster",
    "kafka",
    "demo",
    "apps",
    "run",
    "trial",
    "bench",
    "doctor",
    "status",
    "explain",
    "profile",
    "tune",
)


def _main(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        typer.echo(__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def application() -> typer.Typer:
    """The command line. No command imports anything slow before it runs, so --help is quick."""
    app = typer.Typer(
        name="rheostat",
        help="Keeps Apache Spark streaming applications just large enough for their load.",
        add_completion=False,
        rich_markup_mode=None,  # plain help, as boxes take longer than everything else (decision 0025)
        pretty_exceptions_enable=False,
    )
    app.callback(
        invoke_without_command=True,
        epilog="Example: rheostat compare -t wordcount -c day -p static,elysium; "
        "`rheostat COMMAND --help` explains a command.",
    )(_main)
    for name in COMMANDS:
        import_module(f"rheostat.cli.{name}").register(app)
    return app


def run(arguments: list[str] | None = None) -> None:
    """Run the command line: a user's mistake is one line on stderr and exit code 2, never a traceback."""
    if sys.stdout is None:  # else the next opened file would get its number, and the output
        console.fail("cannot write the output: standard output is closed")
        sys.exit(1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an old terminal gets question marks
    try:
        given = sys.argv[1:] if arguments is None else arguments
        status = application()(args=given, standalone_mode=False)
        sys.stdout.flush()
    except TyperException as error:
        console.fail(f"{error.format_message().rstrip('.')}. See --help.")
        sys.exit(2)
    except (typer.Abort, KeyboardInterrupt):
        console.fail("interrupted")
        sys.exit(130)
    except (BrokenPipeError, SystemExit):  # `head` reads no further; typer exits if it notices first
        _drop_output()
        sys.exit(0)
    except OSError as error:  # a full disk, mostly
        _drop_output()
        where = error.filename or "cannot write the output"  # only standard output has no name
        console.fail(f"{where}: {error.strerror or error}")
        sys.exit(1)
    except UserError as error:
        console.fail(str(error))
        sys.exit(2)
    except RheostatError as error:
        console.fail(str(error))
        sys.exit(1)
    sys.exit(status if isinstance(status, int) else 0)


def _drop_output() -> None:
    """Discard the buffered output, so that Python does not fail on it again when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
