"""ELYSIUM's opponent (P2, section 5.2): operators and nodes scale together."""

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.model.decision import Cause, Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, hold, wish


@dataclass(frozen=True)
class Joint(Policy):
    """ELYSIUM's opponent: operators and nodes scale together, one unit at a time (P2, section 5.2).

    Any operator's scale-out brings a node; operators scale in by themselves; nodes scale by their own CPU
    only when no operator did anything.

    Lombardi, Aniello, Bonomi, Querzoni: Elastic Symbiotic Scaling of Operators and Resources in Stream
    Processing Systems. IEEE TPDS 29(3), 2018.

    >>> from rheostat.policies.example import situation
    >>> proposal, _ = Joint().decide(situation(load=1_400), {})
    >>> proposal.target.parallelism["split"], proposal.target.nodes
    (2, 3)
    """

    period_seconds: float = 60.0
    core_min_thr: float = 0.25
    core_max_thr: float = 0.65
    cpu_min_thr: float = 0.5  # not printed; this value saves about the nodes that Figure 9 shows for joint
    cpu_max_thr: float = 0.8

    info = Info("joint", "operators and nodes, together", "reactive", "P2, section 5.2 (baseline)")

    def __post_init__(self) -> None:
        if not (0 <= self.core_min_thr < self.core_max_thr and 0 <= self.cpu_min_thr < self.cpu_max_thr):
            raise ValueError("each minimum must be at least 0 and below its maximum")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        wanted = dict(situation.configuration.parallelism)
        causes, out = [], False
        for name in situation.topology.names:
            bounds, used = situation.topology.operator(name), self._core_usage(situation, name)
            if used > self.core_max_thr and wanted[name] < bounds.max_parallelism:
                wanted[name] += situation.model.step
                out = True
                causes.append(Cause("core usage", name, used, ">", self.core_max_thr))
            elif used < self.core_min_thr and wanted[name] > bounds.min_parallelism:
                wanted[name] -= situation.model.step
                causes.append(Cause("core usage", name, used, "<", self.core_min_thr))
        nodes = situation.configuration.nodes
        if out:
            reason = "operators scale out, so a node is added too: " + "; ".join(map(str, causes[:3]))
            return wish(
                situation,
                wanted,
                reason,
                nodes=self._enough(situation, wanted, nodes + 1),
                causes=tuple(causes),
            ), memory
        if causes:
            reason = "operators scale in: " + "; ".join(map(str, causes[:3]))
            return wish(
                situation, wanted, reason, nodes=self._enough(situation, wanted, nodes), causes=tuple(causes)
            ), memory
        return self._scale_nodes(situation), memory

    def _scale_nodes(self, situation: Situation) -> Proposal:
        nodes, parallelism = situation.configuration.nodes, situation.configuration.parallelism
        used = [node.cpu for node in situation.observation.nodes if node.cpu is not None]
        if not used:
            return hold(situation, "hold: node CPU not measured in this window")
        mean = sum(used) / len(used)
        if max(used) > self.cpu_max_thr:
            cause = Cause("CPU", "busiest node", max(used), ">", self.cpu_max_thr)
            return wish(situation, parallelism, f"a node more: {cause}", nodes=nodes + 1, causes=(cause,))
        if len(used) < len(situation.observation.nodes):
            return hold(situation, "hold: the CPU of some nodes was not measured in this window")
        fewer = self._enough(situation, parallelism, nodes - 1)
        if mean < self.cpu_min_thr and situation.bounds.nodes(fewer) < nodes:
            cause = Cause("mean CPU", "nodes", mean, "<", self.cpu_min_thr)
            return wish(situation, parallelism, f"a node less: {cause}", nodes=fewer, causes=(cause,))
        return hold(situation, "no operator and no node is outside its thresholds")

    @staticmethod
    def _core_usage(situation: Situation, name: str) -> float:
        """The busiest instance as measured, so a queue that is being worked off counts as stress."""
        return max(replica.utilisation or 0.0 for replica in situation.replicas(name))

    @staticmethod
    def _enough(situation: Situation, parallelism: Mapping[str, int], nodes: int) -> int:
        """Where a slot holds one instance only, nodes must at least hold them all."""
        if situation.model.oversubscribes:
            return nodes
        return max(nodes, situation.nodes_with(situation.model.slots_for(parallelism)))
