"""`rheostat kafka`: a real broker on this machine, for streams that read and write Kafka."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import console, options
from rheostat.cli.options import SERVERS

commands = typer.Typer(help="Run a Kafka broker on this machine and list its topics.")

Folder = Annotated[Path, typer.Option(help="Folder of the broker's data and log.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
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
    port: Annotated[int, typer.Option(min=1024, max=65535, help="Port on the loopback interface.")] = 9092,
) -> None:
    """Start a broker in the background. It runs until `rheostat kafka down`."""
    from rheostat.services import kafka_broker

    broker, is_new = kafka_broker.ensure_running(folder, port, say=_say)
    print(broker.servers)
    print(f"{'started' if is_new else 'already running'}; its log is {folder / kafka_broker.LOG}")
    print(
        f"try: rheostat load run sine --kafka events{_servers(broker.servers)}; "
        f"rheostat kafka down{_folder(folder)} stops it"
    )


@commands.command(epilog="Example: rheostat kafka down --delete")
def down(
    folder: Folder = FOLDER,
    delete: Annotated[bool, typer.Option("--delete", help="Also delete its topics and its log.")] = False,
) -> None:
    """Stop the broker."""
    from rheostat.services import kafka_broker

    broker = kafka_broker.attach(folder)
    if broker is not None:
        broker.stop()
    print(f"no broker runs in {folder}" if broker is None else f"{broker.servers} stopped")
    if delete and folder.exists():
        kafka_broker.delete_data(folder)
        print(f"deleted its data in {folder}")


@commands.command(epilog="Example: rheostat kafka status --json")
def status(folder: Folder = FOLDER, as_json: Json = False) -> None:
    """Say whether the broker runs; exit code 1 if it does not."""
    from rheostat.services import kafka_broker

    broker = kafka_broker.attach(folder)
    if as_json:
        details = {"servers": broker.servers, "pid": broker.pid} if broker else {}
        console.print_json({"running": broker is not None, "folder": str(folder), **details})
    elif broker is None:
        print(f"no broker runs in {folder}; `rheostat kafka up{_folder(folder)}` starts one")
    else:
        print(f"{broker.servers} runs as process {broker.pid} in {folder}")
    if broker is None:
        raise typer.Exit(1)


@commands.command(epilog="Example: rheostat kafka topics --servers 127.0.0.1:9092")
def topics(servers: options.ServersOption = SERVERS, as_json: Json = False) -> None:
    """List the topics with their partitions and rows."""
    from rheostat.services import kafka_broker, kafka_topics

    kafka_broker.must_answer(servers)
    rows = [
        {"topic": name, "partitions": partitions, "rows": kafka_topics.row_count(servers, name)}
        for name, partitions in kafka_broker.topics(servers).items()
    ]
    if as_json:
        console.print_json(rows)
        return
    if not rows:
        print(f"{servers} has no topics")
        return
    table = console.table("", "topic", "partitions", "rows")
    for topic in rows:
        table.add_row(str(topic["topic"]), f"{topic['partitions']:,}", f"{topic['rows']:,}")
    console.out.print(table)


@commands.command(epilog="Example: rheostat kafka clean .rheostat/diamond")
def clean(
    run: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of a run that has ended.")],
) -> None:
    """Delete the topics between the queries of a run."""
    from rheostat.run.folder import delete_query_topics

    count = delete_query_topics(run)
    print(f"deleted {console.count(count, 'topic')}; start the next run with a new checkpoint")


@commands.command(epilog="Example: rheostat kafka fetch")
def fetch() -> None:
    """Download broker and connector from Maven Central, if missing."""
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
