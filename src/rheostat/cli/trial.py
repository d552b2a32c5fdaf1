"""`rheostat trial`: policies against each other and against Spark's own scaling, on real Spark."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import apps, console, results, run, settings, trial_report, world
from rheostat.cli.contest import PEERS, Contest, Contestant, Result, contestant, read_result
from rheostat.cli.contest_run import run_one
from rheostat.cli.running import check_script
from rheostat.model.errors import UserError
from rheostat.policies.registry import build, split_top
from rheostat.workloads import parse_curve

ALL_PEERS = "static-min,static-peak,spark-dra,occupancy,joint,ds2"
REFERENCE = "static-peak"
RESULT, ABOUT = "result.json", "contest.json"
MOST_WARM_UP_SECONDS = 600


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "trial",
        epilog="Example: rheostat trial --app wordcount --curve sine:high=90000:period=3m:duration=3m "
        "--policies elysium --nodes 1:4",
    )(_trial)


def _trial(
    app: Annotated[str, typer.Option("--app", "-a", help="A script, or one of `rheostat apps`.")],
    curve: world.CurveOption,
    policies: Annotated[
        str, typer.Option("--policies", "-p", help="Who is tried: names, or name(parameter=value,...).")
    ],
    peers: Annotated[
        str, typer.Option("--peers", help=f"Against whom; besides policies: {', '.join(PEERS)}.")
    ] = ALL_PEERS,
    repeat: Annotated[int, typer.Option("--repeat", min=1, max=100, help="Runs of each.")] = 1,
    nodes: world.NodesOption = "1:4",
    node: world.NodeOption = "cores=0.4,slots=2,memory_mb=1024",
    mode: run.ModeOption = "microbatch",
    trigger: run.TriggerOption = None,
    period: Annotated[float, typer.Option("--period", help="Seconds between decisions.")] = 5.0,
    cooldown: Annotated[float, typer.Option("--cooldown", help="Least seconds between two changes.")] = 5.0,
    warm_up: Annotated[
        float,
        typer.Option("--warm-up", help="Seconds at the curve's first load before it begins; not judged."),
    ] = 40.0,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, max=64, help="Tasks that read the curve, or of the topic.")
    ] = 4,
    kafka: Annotated[
        str | None,
        typer.Option("--kafka", help="HOST:PORT of a broker: the load goes through a topic of it."),
    ] = None,
    conf: settings.ConfOption = None,
    conf_file: settings.ConfFileOption = None,
    seed: world.SeedOption = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for journals, report and plot.")] = Path(
        "trial"
    ),
) -> None:
    """Run an application under a load once per contestant, each on a fresh cluster, and judge them.

    What is in the folder from an earlier call with the same options is kept: it goes on where it stopped.
    """
    given = settings.read(conf, conf_file)
    trigger_seconds = run.trigger_of(mode, trigger, given)
    if mode == "realtime" and kafka is None:
        raise UserError("--mode realtime needs --kafka HOST:PORT; start a broker with `rheostat kafka up`")
    if not 0 <= warm_up <= MOST_WARM_UP_SECONDS:
        raise UserError(f"--warm-up must be from 0 to {MOST_WARM_UP_SECONDS} s, not {warm_up:g}")
    script = apps.find(app)
    check_script(script)
    contest = Contest(
        app=app,
        script=script,
        curve=curve,
        seed=seed,
        nodes=world.bounds(nodes),
        node=world.node_kind(node),
        mode=mode,
        trigger_seconds=trigger_seconds,
        period_seconds=run.positive("--period", period, least=0.5),
        cooldown_seconds=run.positive("--cooldown", cooldown, least=0.0),
        warm_up_seconds=warm_up,
        partitions=partitions,
        kafka=kafka,
        settings=given,
    )
    parse_curve(contest.load)
    tried = _named(policies)
    if not tried:
        raise UserError("--policies names none; see `rheostat policies`")
    names = list(dict.fromkeys([*tried, REFERENCE, *_named(peers)]))
    for name in names:
        if name not in PEERS:
            build(name)
    _prepare(out, contest)
    with run.interruptible() as ending:
        for place, (number, one) in enumerate(_schedule(names, repeat), 1):
            _run(contest, one, number, out, f"{place} of {len(names) * repeat}")
    if found := _results(out, names):
        report = trial_report.make(contest, tried, found)
        plots = results.draw(report.title, report.series, out, "trial") if report.series else []
        (out / "trial.md").write_text(report.markdown([plot.name for plot in plots[:1]]))
        report.show()
        console.out.print(
            f"\nreport: {out / 'trial.md'}; plot, results and journals beside it", soft_wrap=True
        )
    raise typer.Exit(ending.code)


def _named(text: str) -> list[str]:
    return [name.strip() for name in split_top(text) if name.strip()]


def _schedule(names: list[str], repeat: int) -> Iterator[tuple[int, Contestant]]:
    """Every contestant once per round; every second round in reverse, so that no place is an advantage."""
    for number in range(1, repeat + 1):
        for name in names if number % 2 else reversed(names):
            yield number, contestant(name)


def _prepare(out: Path, contest: Contest) -> None:
    """A folder of this very contest, or a new one."""
    results.make_folder(out)
    about = out / ABOUT
    if about.exists():
        if about.read_text() != contest.json():
            raise UserError(f"{out} holds a trial with other options: choose another folder with --out")
    elif any(out.iterdir()):
        raise UserError(f"{out} is not empty and holds no trial: choose another folder with --out")
    else:
        about.write_text(contest.json())


def _run(contest: Contest, one: Contestant, number: int, out: Path, place: str) -> None:
    """Run a contestant, unless that was done: a run that failed is a result, too."""
    folder = out / one.folder / str(number)
    if (folder / RESULT).exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    with console.err.status("") as status:
        result = run_one(
            contest, one, number, folder, lambda text: status.update(f"{place}: {one.name}: {text}")
        )
    if result.refused and not any(out.glob(f"*/*/{RESULT}")):  # the first: it is the options that are wrong
        shutil.rmtree(out / one.folder, ignore_errors=True)
        (out / ABOUT).unlink()
        raise UserError(result.failure)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULT).write_bytes(result.json())
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    again = f"; delete {folder} to try it again" if result.failure else ""
    console.out.print(f"{place:>9}  {one.name:<24} {result.line()}{again}", soft_wrap=True)


def _results(out: Path, names: list[str]) -> list[Result]:
    """All that lies in the folder, those that were asked for first."""
    found = [read_result(path) for path in sorted(out.glob(f"*/*/{RESULT}"))]
    order = {name: place for place, name in enumerate(names)}
    return sorted(found, key=lambda one: (order.get(one.contestant, len(order)), one.contestant, one.number))
