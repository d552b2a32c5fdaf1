"""What a user asks of a mapping run, checked and turned into an order for a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rheostat.analyze.levels import load_containers
from rheostat.apps.shipped import find_script
from rheostat.bench.application_map import MIN_WINDOWS, DiscoveredMap, MapPlan, levels
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.errors import UserError
from rheostat.model.secrets import without_secrets
from rheostat.policies.discovery import Discovery
from rheostat.run.order import Order, check_script, choose_trigger


@dataclass(frozen=True)
class MapRequest:
    """An application, the load levels to try, and the nodes to try them on."""

    app: str
    first: float
    last: float
    step: float
    hold_seconds: float
    period_seconds: float
    mode: str
    trigger_seconds: float | None
    node_text: str
    node: NodeKind
    nodes: Bounds
    partitions: int
    min_health: float
    platform: Path | None
    kafka: str | None
    seed: int
    settings: Mapping[str, str]


def plan_map(request: MapRequest, out: Path | None) -> MapPlan:
    """Check the request, and open the map that it starts or continues."""
    trigger_seconds = choose_trigger(request.mode, request.trigger_seconds, request.settings)
    loads = levels(request.first, request.last, request.step)
    min_hold = (MIN_WINDOWS + 1) * request.period_seconds  # so that no window is cut off by the level's end
    if not min_hold <= request.hold_seconds <= 1e9:
        raise UserError(f"--hold must be at least {min_hold:g}, not {request.hold_seconds:g}")
    if request.kafka is not None:
        from rheostat.services.kafka_topics import must_answer  # noqa: PLC0415 - most maps need no Kafka client

        must_answer(request.kafka)
    containers = load_containers(request.platform) if request.platform else "slot+node"
    order = _order(request, trigger_seconds, containers)
    check_script(order.script)
    options = {
        "node": request.node_text,
        "mode": request.mode,
        "trigger": f"{trigger_seconds:g}",
        "partitions": str(request.partitions),
        "containers": containers,
        "health": f"{request.min_health:g}",
        **without_secrets(request.settings),
    }
    discovered = DiscoveredMap.open(out or Path(f"{order.name}.map.yaml"), order.name, options)
    remaining = [load for load in loads if load > discovered.offered * (1 + 1e-9)]
    return MapPlan(discovered, remaining, request.hold_seconds, order)


def _order(request: MapRequest, trigger_seconds: float, containers: str) -> Order:
    policy = Discovery(
        period_seconds=request.period_seconds, minHealth=request.min_health, nodes_only=containers == "node"
    )
    return Order(
        name=Path(request.app).stem,
        script=find_script(request.app),
        policy=policy,
        policy_text="discovery",
        folder=Path(),
        arguments=("--partitions", str(request.partitions), "--seed", str(request.seed)),
        mode=request.mode,
        kinds=(request.node,),
        bounds=request.nodes,
        trigger_seconds=trigger_seconds,
        kafka=request.kafka,
        seed=request.seed,
        settings=dict(request.settings),
    )
