"""`rheostat kafka`: a real broker on this machine, for streams that read and write Kafka."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import console, options
from rheostat.cli.options import SERVERS
from rheostat.model.errors import UserError

commands = typer.Typer(help="A Kafka broker on this machine, and what it holds.")

Folder = Annotated[Path, typer.Option(help="Where the broker keeps its data and its log.")]
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
    """Start a broker in the background. It runs until `rheostat kafka down`."""
    from rheostat.services import kafka_broker

    found = kafka_broker.attach(folder)
    if found is not None and found.servers != f"{kafka_broker.LOOPBACK}:{port}":
        raise UserError(
            f"a broker runs on {folder} at {found.servers}; end it first, or give another --folder"
        )
    broker = found or kafka_broker.start(folder, port, say=_say)
    print(broker.servers)
    print(f"{'runs already' if found else 'runs'}; its log is {folder / kafka_broker.LOG}")
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
    from rheostat.services import kafka_broker

    found = kafka_broker.attach(folder)
    if found is not None:
        found.stop()
    print(f"no broker runs on {folder}" if found is None else f"{found.servers} ended")
    if delete and folder.exists():
        kafka_broker.delete_data(folder)
        print(f"deleted what it held in {folder}")


@commands.command(epilog="Example: rheostat kafka status --json")
def status(folder: Folder = FOLDER, as_json: Json = False) -> None:
    """Say whether the broker runs; exit code 1 if it does not."""
    from rheostat.services import kafka_broker

    broker = kafka_broker.attach(folder)
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
def topics(servers: options.ServersOption = SERVERS, as_json: Json = False) -> None:
    """List the topics with their partitions and rows."""
    from rheostat.services import kafka_broker, kafka_topics

    kafka_broker.must_answer(servers)
    found = [
        {"topic": name, "partitions": partitions, "rows": kafka_topics.row_count(servers, name)}
        for name, partitions in kafka_broker.topics(servers).items()
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
    from rheostat.run.folder import delete_query_topics

    found = delete_query_topics(run)
    print(f"deleted {console.count(found, 'topic')}; its checkpoint counts their rows: begin a new one")


@commands.command(epilog="Example: rheostat kafka fetch")
def fetch() -> None:
    """Fetch broker and connector from Maven Central, if missing."""
    from rheostat.services import kafka_broker, maven

    for bundle in (kafka_broker.BROKER, kafka_broker.CONNECTOR):
        jars = maven.resolve(bundle, _say)
        print(f"{bundle.name}: {console.count(len(jars), 'archive')} in {bundle.folder}")


def _say(line: str) -> None:
    console.err.print(line)


def _servers(servers: str) -> str:
    return "" if servers == SERVERS else f" --servers {servers}"


def _folder(folder: Path) -> str:
    return "" if folder == FOLDER else f" --folder {folder}"
