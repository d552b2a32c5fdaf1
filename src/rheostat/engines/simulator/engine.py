"""The simulator: the Engine port and a Clock on virtual time. Applying a plan lets virtual time pass."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np

from rheostat.analyze.execution import ExecutionModel
from rheostat.analyze.rates import nominal_mix
from rheostat.engines.simulator import measuring
from rheostat.engines.simulator.deployment import Floats, deploy
from rheostat.engines.simulator.flow import Flow
from rheostat.engines.simulator.pipelined_flow import PipelinedFlow
from rheostat.engines.simulator.placement import Placed, place
from rheostat.engines.simulator.record import Record
from rheostat.engines.simulator.settings import Settings
from rheostat.engines.simulator.staged_flow import StagedFlow
from rheostat.engines.simulator.storm_flow import StormFlow
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Cause, Outcome, Placement, Plan, Status
from rheostat.model.errors import UserError
from rheostat.model.node import Node
from rheostat.model.observation import ApplicationMeasures, Observation
from rheostat.model.topology import Topology
from rheostat.providers.simulated import SimulatedProvider

FLOWS: dict[str, Callable[[Topology, Settings], Flow]] = {
    "pipelined": PipelinedFlow,
    "staged": StagedFlow,
    "storm": StormFlow,
}


class Simulator:
    """Runs a topology on virtual nodes under a sampled load; it is both Engine and Clock."""

    plans_state = True

    def __init__(
        self, topology: Topology, load: Floats, initial: Configuration, settings: Settings | None = None
    ) -> None:
        self.topology = topology
        self.settings = settings or Settings()
        self.model: ExecutionModel = self.settings.model(topology)
        self.kinds = self.settings.kinds
        self._load = load  # rows/s at all sources together, per step
        self._mix = np.array(list(nominal_mix(topology).values()))
        self._step = 0
        self._paused_until = 0.0
        self._window_start = 0.0
        self._hidden: frozenset[str] = frozenset()
        self._random = np.random.default_rng(self.settings.seed)
        self.flow = FLOWS[self.settings.mode](topology, self.settings)
        self.record = Record(load, self.settings.step_seconds)
        self.provider = SimulatedProvider(self, self.settings.kinds, self.settings.regions)
        for number in range(initial.nodes):
            self.provider.order(self.kinds[0], self.settings.regions[number % len(self.settings.regions)])
        self.configuration = initial
        self._placed: Placed = {}
        self._check_slots(initial)
        self._deploy(initial, self.provider.nodes(), Placement())

    def now(self) -> float:
        return self._step * self.settings.step_seconds

    @property
    def ends_at(self) -> float:
        """When the load ends."""
        return len(self._load) * self.settings.step_seconds

    def local_time(self, now: float) -> float:
        return now

    @property
    def alarmed(self) -> bool:
        return False  # it is only looked at when a turn is due

    def rewrite_refusal(self, operators: Collection[str]) -> str | None:
        return "a plan's parallelism changes it"

    def sleep(self, seconds: float, roused: Callable[[], bool] = lambda: False) -> None:
        steps = round(seconds / self.settings.step_seconds)
        flow, record, mix = self.flow, self.record, self._mix
        nodes, instances = self.provider.nodes(), self.configuration.instances
        price = sum(node.kind.price_per_hour for node in nodes)
        for _ in range(min(steps, len(self._load) - self._step)):
            offered = mix * (self._load[self._step] * self.settings.step_seconds)
            flow.step(offered, self._step * self.settings.step_seconds < self._paused_until)
            self._step += 1
            record.add(self._step, flow.backlog(), flow.dropped, len(nodes), instances, price)

    def observe(self) -> Observation:
        self.flow.close()
        start, end = self._window_start, self.now()
        observation = Observation(
            start,
            end,
            measuring.operators(self.topology, self.flow, self.provider.nodes(), end - start),
            measuring.nodes(self.flow, self.provider.nodes(), self._placed, self._hidden, end - start),
            self._application(start, end),
        )
        self.flow.reset()
        self._window_start = end
        if self.settings.noise:
            spread = self.settings.noise
            self.flow.vary(self._random.lognormal(-spread * spread / 2, spread, self.flow.size))
        return observation

    def apply(self, plan: Plan) -> Outcome:
        """Out: nodes, executors, then parallelism. In: parallelism, then nodes. Time passes meanwhile."""
        started = self.now()
        if plan.placement.hide is not None:
            self._hidden = frozenset(plan.placement.hide)
        if not plan.changes:
            return Outcome(Status.UNCHANGED, self.configuration, started, started, plan.reason, plan.causes)
        ordered = self._order_nodes(plan)
        after = self._remaining(plan)
        slots = sum(node.kind.slots for node in after)
        if self._lacks_slots(plan.target.parallelism, slots):
            for node in ordered:
                self.provider.release(node.name)
            needed = self.model.slots_for(plan.target.parallelism)
            why = f"{needed} instances need as many slots, but {len(after)} nodes have {slots}; rolled back"
            cause = Cause("slots", self.topology.name, slots, "<", needed)
            return Outcome(Status.FAILED, self.configuration, started, self.now(), why, (cause,))
        pause = self._pause(plan)
        self._paused_until = self.now() + pause
        for node in set(self.provider.nodes()) - set(after):
            self.provider.release(node.name)
        target = replace(plan.target, nodes=len(after))
        self._deploy(target, after, plan.placement)
        self.configuration = target
        self.sleep(pause)
        self.flow.reset()
        self._window_start = self.now()
        took = self.now() - started
        did = f"{self.configuration.describe(plan.current)} in {took:.0f} s, paused for {pause:.0f} s"
        return Outcome(Status.APPLIED, self.configuration, started, self.now(), did, plan.causes, pause)

    def _order_nodes(self, plan: Plan) -> list[Node]:
        """Order the nodes that the target needs and wait until their executors registered."""
        current = self.provider.nodes()
        kinds = {kind.name: kind for kind in self.kinds}
        wanted: list[tuple[NodeKind, str]] = [(kinds[kind], region) for kind, region in plan.placement.add]
        if not wanted and not plan.placement.remove:
            wanted = [(self.kinds[0], "")] * (plan.target.nodes - len(current))
        ordered = [self.provider.order(kind, region) for kind, region in wanted]
        self.provider.wait([node.name for node in ordered])
        if plan.target.executors > self.configuration.executors:
            self.sleep(self.settings.executor_startup_seconds)
        return ordered

    def _remaining(self, plan: Plan) -> tuple[Node, ...]:
        """Return the nodes that stay: all but the requested ones, or but the newest beyond the target."""
        nodes = self.provider.nodes()
        if plan.placement.remove or plan.placement.add:
            return tuple(node for node in nodes if node.name not in plan.placement.remove)
        return nodes[: max(1, plan.target.nodes)]

    def _pause(self, plan: Plan) -> float:
        """Return how long this change pauses the application."""
        changed = [
            n for n, count in plan.target.parallelism.items() if self.configuration.parallelism[n] != count
        ]
        settings = self.settings
        if settings.mode == "storm":
            if plan.placement.keep:
                moves = changed or plan.placement.put or plan.placement.take
                return settings.incremental_seconds if moves else 0.0
            return float(round(self._random.uniform(*settings.rebalance_seconds)))
        state = [self.topology.operator(name) for name in changed if self.topology.operator(name).stateful]
        if not state:
            return 0.0
        bytes_moved = sum(operator.state_bytes for operator in state)
        return settings.restart_seconds + bytes_moved / settings.state_bytes_per_second

    def _deploy(self, target: Configuration, nodes: tuple[Node, ...], wishes: Placement) -> None:
        per_row = self.flow.per_source.T @ self._mix * self.flow.cost
        weights = {n: float(per_row[i]) / target.parallelism[n] for i, n in enumerate(self.topology.names)}
        self._placed = place(self._placed, target.parallelism, nodes, wishes, self._hidden, weights)
        self.flow.deploy(deploy(self.topology, self._placed, nodes, target.executors, self.settings))

    def _lacks_slots(self, parallelism: Mapping[str, int], slots: int) -> bool:
        return self.model.slots_required(parallelism) > slots

    def _check_slots(self, initial: Configuration) -> None:
        slots = initial.nodes * self.kinds[0].slots
        if self._lacks_slots(initial.parallelism, slots):
            needed = self.model.slots_required(initial.parallelism)
            raise UserError(
                f"{initial.nodes} nodes have {slots} slots, but {needed} instances need one each: allow more"
            )

    def _application(self, start: float, end: float) -> ApplicationMeasures:
        load, throughput = self.record.mean_rates(start, end)
        batch = self.flow.batch_seconds()
        return ApplicationMeasures(
            load={
                name: load * float(share)
                for name, share in zip(self.topology.sources, self._mix, strict=True)
            },
            throughput=throughput,
            backlog=self.flow.backlog(),
            lag_seconds=self.record.lag_at(self._step),
            batch_seconds=batch,
            trigger_seconds=self.model.trigger_seconds,
            state_bytes=sum(operator.state_bytes for operator in self.topology.operators),
        )
