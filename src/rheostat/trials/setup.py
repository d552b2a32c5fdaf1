"""What a user asks of a trial, checked before anything is started or written."""

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.apps.shipped import find_script
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.errors import UserError
from rheostat.policies.registry import build, split_top
from rheostat.run.order import check_script, choose_trigger
from rheostat.trials.contestants import PEAK, PEERS
from rheostat.trials.trial import Trial
from rheostat.workloads import parse_curve

MAX_WARM_UP_SECONDS = 600


@dataclass(frozen=True)
class Contestants:
    """Who takes part in a trial."""

    policies: list[str]  # those to judge
    names: list[str]  # all contestants, the policies first


def choose_contestants(policies: str, peers: str) -> Contestants:
    """Return who takes part: the policies, the reference and the peers; each must exist."""
    judged = _split_names(policies)
    if not judged:
        raise UserError("--policies is empty; see `rheostat policies`")
    names = list(dict.fromkeys([*judged, PEAK, *_split_names(peers)]))
    for name in names:
        if name not in PEERS:
            build(name)
    return Contestants(judged, names)


def make_trial(
    *,
    app: str,
    curve: str,
    seed: int,
    nodes: Bounds,
    node: NodeKind,
    mode: str,
    trigger_seconds: float | None,
    period_seconds: float,
    cooldown_seconds: float,
    warm_up_seconds: float,
    partitions: int,
    kafka: str | None,
    settings: Mapping[str, str],
) -> Trial:
    """Return a trial that can run."""
    trigger_seconds = choose_trigger(mode, trigger_seconds, settings)
    if mode == "realtime" and kafka is None:
        raise UserError("--mode realtime needs --kafka HOST:PORT; start a broker with `rheostat kafka up`")
    if not 0 <= warm_up_seconds <= MAX_WARM_UP_SECONDS:
        raise UserError(f"--warm-up must be from 0 to {MAX_WARM_UP_SECONDS} s, not {warm_up_seconds:g}")
    if kafka is not None:
        from rheostat.services.kafka_topics import must_answer  # noqa: PLC0415 - most trials need none

        must_answer(kafka)
    script = find_script(app)
    check_script(script)
    trial = Trial(
        app=app,
        script=script,
        curve=curve,
        seed=seed,
        nodes=nodes,
        node=node,
        mode=mode,
        trigger_seconds=trigger_seconds,
        period_seconds=period_seconds,
        cooldown_seconds=cooldown_seconds,
        warm_up_seconds=warm_up_seconds,
        partitions=partitions,
        kafka=kafka,
        settings=settings,
    )
    parse_curve(trial.load)
    return trial


def _split_names(text: str) -> list[str]:
    """Split a list of contestants at its commas, except those inside parentheses."""
    return [name.strip() for name in split_top(text) if name.strip()]
