"""Options that several commands share. This file imports nothing slow, as every --help needs it."""

from pathlib import Path
from typing import Annotated

import typer

TopologyOption = Annotated[
    str,
    typer.Option("--topology", "-t", help="A topology file, or the name of one that comes with Rheostat."),
]
CurveOption = Annotated[str, typer.Option("--curve", "-c", help="A load curve, see `rheostat load list`.")]
SimulatedModeOption = Annotated[str, typer.Option("--mode", "-m", help="pipelined, staged or storm.")]
SparkModeOption = Annotated[str, typer.Option("--mode", "-m", help="microbatch or realtime.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of all noise and chance.")]
NodeOption = Annotated[
    str,
    typer.Option(
        "--node",
        help="What a node is, such as cores=4,slots=4; also executors, memory_mb, startup_seconds.",
    ),
]
NodeKindsOption = Annotated[
    list[str],
    typer.Option(
        "--node",
        help="A kind of node, such as cores=4,slots=4; also executors, memory_mb, startup_seconds, "
        "price_per_hour. Repeat it with name=... for more kinds; the first is the default.",
    ),
]
NodesOption = Annotated[str, typer.Option("--nodes", help="MIN:MAX nodes.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Another setting of the simulated world, such as noise=0.1.")
]
TriggerOption = Annotated[
    float | None, typer.Option("--trigger", help="Seconds between batches; else 3, in Real-Time Mode 5.")
]
KafkaOption = Annotated[
    str | None,
    typer.Option("--kafka", help="HOST:PORT of a broker, for Spark's connector and for graphs."),
]
ServersOption = Annotated[str, typer.Option("--servers", help="HOST:PORT of the broker.")]
ConfOption = Annotated[list[str] | None, typer.Option("--conf", help="A setting of Spark's, KEY=VALUE.")]
ConfFileOption = Annotated[
    Path | None,
    typer.Option("--conf-file", help="Settings of Spark's in a file of yours alone: secrets belong there."),
]
JournalOption = Annotated[
    Path | None,
    typer.Option("--journal", "-j", help="A journal; else the newest .rheostat/*/journal.sqlite."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

SERVERS = "127.0.0.1:9092"  # of the broker that `rheostat kafka up` starts
