"""`rheostat bench`: P0's benchmark procedure, first of the platform, then of an application on it."""

import typer

from rheostat.cli import bench_app, bench_platform

bench = typer.Typer(help="Measure what a node's containers are worth, and what an application needs (P0).")
bench_platform.register(bench)
bench_app.register(bench)


def register(app: typer.Typer) -> None:
    """Add the `bench` commands."""
    app.add_typer(bench, name="bench")


@bench.callback(invoke_without_command=True, epilog="Example: rheostat bench platform")
def _bench(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
