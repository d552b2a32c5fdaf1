"""`rheostat cluster`: the embedded cluster by itself, to point any Spark application at."""

from __future__ import annotations

import signal
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import console, options
from rheostat.model.errors import UserError

if TYPE_CHECKING:
    from rheostat.services.local_cluster import LocalCluster

MOST_NODES = 32


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "cluster", epilog="Example: rheostat cluster --nodes 2 --node cores=0.5,slots=2,memory_mb=1024"
    )(_cluster)


def _cluster(
    nodes: Annotated[int, typer.Option("--nodes", help="How many Workers to start.")] = 1,
    node: options.NodeOption = "cores=1,slots=2,memory_mb=1024",
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="End after so long; else when interrupted.")
    ] = None,
    conf: options.ConfOption = None,
    conf_file: options.ConfFileOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Start a Spark Master and Workers on this machine. Each stays within its CPU quota; Ctrl-C ends them."""
    from rheostat.cli import settings, values
    from rheostat.services.local_cluster import LocalCluster

    if not 1 <= nodes <= MOST_NODES:
        raise UserError(f"--nodes must be between 1 and {MOST_NODES}, not {nodes}")
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UserError("--seconds must be greater than 0")
    kind = values.node_kind(node)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    with LocalCluster(warn=console.fail, settings=settings.read(conf, conf_file)) as provider:
        for name in [provider.add(kind).name for _ in range(nodes)]:
            provider.wait(name)
            provider.limit(name)
        _tell(provider, as_json)
        try:
            Event().wait(seconds)
        except KeyboardInterrupt:
            console.fail("interrupted: ending the cluster")


def _tell(provider: LocalCluster, as_json: bool) -> None:
    started = provider.workers()
    if as_json:
        workers = [{"name": n.name, "slots": n.kind.slots, "cores": n.kind.cores} for n in started]
        console.print_json({"master": provider.url, "quotas": provider.has_quotas, "nodes": workers})
    else:
        kind = started[0].kind
        limit = f"CPU quota {kind.cores:g}" if provider.has_quotas else "no CPU quota"
        console.out.print(
            f"{provider.url}: nodes {len(started)}, each with {kind.slots} slots and {limit}", markup=False
        )
        console.out.print("try: spark-submit --master URL app.py; Ctrl-C ends it all", markup=False)
    console.out.file.flush()
