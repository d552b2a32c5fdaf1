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

MAX_NODES = 32


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "cluster", epilog="Example: rheostat cluster --nodes 2 --node cores=0.5,slots=2,memory_mb=1024"
    )(_cluster)


def _cluster(
    nodes: Annotated[int, typer.Option("--nodes", help="Number of Workers to start.")] = 1,
    node: options.NodeOption = "cores=1,slots=2,memory_mb=1024",
    seconds: options.SecondsOption = None,
    conf: options.ConfOption = None,
    conf_file: options.ConfFileOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Start a Spark Master and Workers on this machine. Each keeps to its CPU quota; Ctrl-C stops all."""
    from rheostat.cli import spark_settings, values
    from rheostat.run.cluster import embedded_cluster

    if not 1 <= nodes <= MAX_NODES:
        raise UserError(f"--nodes must be between 1 and {MAX_NODES}, not {nodes}")
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UserError("--seconds must be greater than 0")
    kind, spark = values.node_kind(node), spark_settings.read(conf, conf_file)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops the cluster as Ctrl-C does
    with embedded_cluster(kind, nodes, spark, console.fail) as cluster:
        _show(cluster, as_json)
        try:
            Event().wait(seconds)
        except KeyboardInterrupt:
            console.fail("interrupted: stopping the cluster")


def _show(cluster: LocalCluster, as_json: bool) -> None:
    nodes = cluster.workers()
    if as_json:
        workers = [{"name": n.name, "slots": n.kind.slots, "cores": n.kind.cores} for n in nodes]
        console.print_json({"master": cluster.url, "quotas": cluster.has_quotas, "nodes": workers})
    else:
        kind = nodes[0].kind
        limit = f"CPU quota {kind.cores:g}" if cluster.has_quotas else "no CPU quota"
        console.out.print(
            f"{cluster.url}: nodes {len(nodes)}, each with {kind.slots} slots and {limit}", markup=False
        )
        console.out.print("try: spark-submit --master URL app.py; Ctrl-C stops the cluster", markup=False)
    console.out.file.flush()
