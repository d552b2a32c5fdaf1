"""The `rheostat` command: its parts, and the one place where errors become exit codes."""

import sys
from importlib import import_module

import typer
from typer.exceptions import TyperException

from rheostat import __version__
from rheostat.cli import console
from rheostat.model.errors import RheostatError, UserError

app = typer.Typer(
    name="rheostat",
    help="Keeps Apache Spark streaming applications exactly as large as their load needs.",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        typer.echo(__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _part in ("topology", "allocate", "policies", "load", "simulate", "compare"):
    import_module(f"rheostat.cli.{_part}").register(app)


def run(arguments: list[str] | None = None) -> None:
    """Run the command line: a user's mistake is one line on stderr and exit code 2, never a traceback."""
    try:
        status = app(args=arguments, standalone_mode=False)
    except TyperException as error:
        console.fail(f"{error.format_message()} See --help.")
        sys.exit(2)
    except (typer.Abort, KeyboardInterrupt):
        console.fail("interrupted")
        sys.exit(130)
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        sys.stderr.close()
        sys.exit(0)
    except UserError as error:
        console.fail(str(error))
        sys.exit(2)
    except RheostatError as error:
        console.fail(str(error))
        sys.exit(1)
    sys.exit(status if isinstance(status, int) else 0)
