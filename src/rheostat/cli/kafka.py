"""`rheostat kafka`: a real broker on this machine, for streams that read and write Kafka."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import console
from rheostat.engines.spark.spec import SPEC, Spec
from rheostat.infrastructure import kafka, maven
from rheostat.model.errors import UserError

SERVERS = "127.0.0.1:9092"
OURS = ("data", "server.properties", kafka.NOTE, kafka.LOG)

commands = typer.Typer(help="A Kafka broker on this machine, and what it holds.")

Folder = Annotated[Path, typer.Option(help="Where the broker keeps its data and its log.")]
Servers = Annotated[str, typer.Option("--servers", help="HOST:PORT of the broker.")]
Json = Annotated[bool, typer.Option("--json", help="For programs.")]
FOLDER = Path(".rheostat/kafka")


def register(app: typer.Typer) -> None:
    """Add the `kafka` commands."""
    app.add_typer(commands, name="kafka")


@commands.callback(invoke_without_command=True, epilog="Example: rheostat kafka up")
def _kafka(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@commands.command(epilog="Example: rheostat kafka up --port 19092")
def up(
    folder: Folder = FOLDER,
    port: Annotated[int, typer.Option(min=1024, max=65535, help="The port on loopback.")] = 9092,
) -> None:
    """Start a broker in the background; it runs until `rheostat kafka down`."""
    found = kafka.attach(folder)
    if found is not None and found.servers != f"{kafka.LOOPBACK}:{port}":
        raise UserError(
            f"a broker runs on {folder} at {found.servers}; end it first, or give another --folder"
        )
    broker = found or kafka.start(folder, port, say=_say)
    print(broker.servers)
    print(f"{'runs already' if found else 'runs'}; its log is {folder / kafka.LOG}")
    print(
        f"try: rheostat load run sine --kafka events{_servers(broker.servers)}; "
        f"rheostat kafka down{_folder(folder)} ends it"
    )


@commands.command(epilog="Example: rheostat kafka down --delete")
def down(
    folder: Folder = FOLDER,
    delete: Annotated[bool, typer.Option("--delete", help="Delete its topics and its log, too.")] = False,
) -> None:
    """End the broker."""
    broker = kafka.attach(folder)
    if broker is not None:
        broker.stop()
    print(f"no broker runs on {folder}" if broker is None else f"{broker.servers} ended")
    if delete and folder.exists():
        _delete(folder)
        print(f"deleted what it held in {folder}")


@commands.command(epilog="Example: rheostat kafka status --json")
def status(folder: Folder = FOLDER, as_json: Json = False) -> None:
    """Say whether the broker runs; exit code 1 if it does not."""
    broker = kafka.attach(folder)
    if as_json:
        known = {"servers": broker.servers, "pid": broker.pid} if broker else {}
        console.print_json({"running": broker is not None, "folder": str(folder), **known})
    elif broker is None:
        print(f"no broker runs on {folder}; `rheostat kafka up{_folder(folder)}` starts one")
    else:
        print(f"{broker.servers} runs as process {broker.pid} on {folder}")
    if broker is None:
        raise typer.Exit(1)


@commands.command(epilog="Example: rheostat kafka topics --servers 127.0.0.1:9092")
def topics(servers: Servers = SERVERS, as_json: Json = False) -> None:
    """List the topics with their partitions and rows."""
    must_answer(servers)
    found = [
        {"topic": name, "partitions": partitions, "rows": _rows(servers, name)}
        for name, partitions in kafka.topics(servers).items()
    ]
    if as_json:
        console.print_json(found)
        return
    if not found:
        print(f"{servers} has no topics")
        return
    table = console.table("", "topic", "partitions", "rows")
    for topic in found:
        table.add_row(str(topic["topic"]), f"{topic['partitions']:,}", f"{topic['rows']:,}")
    console.out.print(table)


@commands.command(epilog="Example: rheostat kafka clean .rheostat/diamond")
def clean(
    run: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a run that has ended.")],
) -> None:
    """Delete the topics that linked the queries of a run."""
    found = delete_links(run)
    print(f"deleted {console.count(found, 'topic')}; its checkpoint counts their rows: begin a new one")


def delete_links(run: Path) -> int:
    """Delete the topics that linked the queries of a run; says how many there were."""
    try:
        spec = Spec.read(run / SPEC)
    except (OSError, ValueError):
        raise UserError(f"{run} is no run's folder: give the one that `rheostat run` used") from None
    if spec.kafka is None:
        raise UserError(f"the run in {run} used no Kafka: there is nothing to delete")
    must_answer(spec.kafka)
    found = [name for name in kafka.topics(spec.kafka) if name.startswith(spec.topic_prefix)]
    kafka.delete_topics(spec.kafka, found)
    return len(found)


@commands.command(epilog="Example: rheostat kafka fetch")
def fetch() -> None:
    """Fetch broker and connector from Maven Central, if they are not here yet."""
    for bundle in (kafka.BROKER, kafka.CONNECTOR):
        jars = maven.resolve(bundle, _say)
        print(f"{bundle.name}: {console.count(len(jars), 'archive')} in {bundle.folder}")


def must_answer(servers: str) -> None:
    """Refuse a broker that is not there."""
    if not kafka.answers(servers, seconds=5.0):
        raise UserError(
            f"no Kafka broker answers at {servers}; start one with `rheostat kafka up`, or give --servers"
        )


def _rows(servers: str, topic: str) -> int:
    return sum(kafka.ends(servers, topic).values()) - sum(kafka.starts(servers, topic).values())


def _delete(folder: Path) -> None:
    """Delete what a broker made and nothing else: the folder may be anybody's."""
    for name in OURS:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _say(line: str) -> None:
    console.err.print(line)


def _servers(servers: str) -> str:
    return "" if servers == SERVERS else f" --servers {servers}"


def _folder(folder: Path) -> str:
    return "" if folder == FOLDER else f" --folder {folder}"
