"""Options shared by several commands. Imports nothing slow, because every --help needs it."""

from pathlib import Path
from typing import Annotated

import typer

TopologyOption = Annotated[
    str,
    typer.Option("--topology", "-t", help="A topology file, or the name of a built-in one."),
]
CurveOption = Annotated[str, typer.Option("--curve", "-c", help="A load curve; see `rheostat load list`.")]
SimulatedModeOption = Annotated[str, typer.Option("--mode", "-m", help="pipelined, staged or storm.")]
SparkModeOption = Annotated[str, typer.Option("--mode", "-m", help="microbatch or realtime.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]
NodeOption = Annotated[
    str,
    typer.Option(
        "--node",
        help="Size of a node, such as cores=4,slots=4; also executors, memory_mb, startup_seconds.",
    ),
]
NodeKindsOption = Annotated[
    list[str],
    typer.Option(
        "--node",
        help="Size of a node, such as cores=4,slots=4; also executors, memory_mb, startup_seconds, "
        "price_per_hour. Repeat it with name=... for more kinds; the first is the default.",
    ),
]
NodesOption = Annotated[str, typer.Option("--nodes", help="Minimum and maximum number of nodes, MIN:MAX.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the simulation, such as noise=0.1.")
]
TriggerOption = Annotated[
    float | None,
    typer.Option("--trigger", help="Seconds between batches (default: 3; in Real-Time Mode 5)."),
]
KafkaOption = Annotated[
    str | None,
    typer.Option("--kafka", help="HOST:PORT of a Kafka broker, for Spark's connector and for graphs."),
]
ServersOption = Annotated[str, typer.Option("--servers", help="HOST:PORT of the broker.")]
ConfOption = Annotated[list[str] | None, typer.Option("--conf", help="A Spark setting, KEY=VALUE.")]
ConfFileOption = Annotated[
    Path | None,
    typer.Option("--conf-file", help="File of Spark settings that only you can read; secrets belong here."),
]
JournalOption = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        "-j",
        help="A journal or a run's folder (default: the newest .rheostat/*/journal.sqlite).",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

CooldownOption = Annotated[float, typer.Option("--cooldown", help="Minimum seconds between changes.")]
SecondsOption = Annotated[
    float | None,
    typer.Option("--seconds", help="Stop after this many seconds (default: run until interrupted)."),
]

SERVERS = "127.0.0.1:9092"  # the broker that `rheostat kafka up` starts
