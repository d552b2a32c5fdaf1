"""E2DF (P1): two hierarchies of managers, one for operators and one for nodes."""

from dataclasses import dataclass

from rheostat.model.configuration import Configuration
from rheostat.model.decision import Placement, Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, Start, hold
from rheostat.policies.e2df_application import ApplicationManager
from rheostat.policies.e2df_grants import Grants
from rheostat.policies.e2df_infrastructure import Asked, InfrastructureManager


@dataclass(frozen=True)
class E2df(Policy):
    """E2DF: two hierarchies of managers, for operators and for nodes (P1).

    Operator Managers and Region Managers look at one operator or region and propose; an Application Manager
    and an Infrastructure Manager see the whole and grant.

    Nardelli, Russo Russo, Cardellini, Lo Presti: A Multi-level Elasticity Framework for Distributed Data
    Stream Processing. Euro-Par 2018 Workshops, LNCS 11339.

    >>> from rheostat.policies.example import situation
    >>> proposal, _ = E2df().decide(situation(load=1_500, nodes=3), {})
    >>> proposal.target.parallelism["split"], proposal.target.nodes, proposal.causes[0].measure
    (2, 5, 'utilisation')
    """

    period_seconds: float = 30.0  # OM and AM; RM and IM run every second time
    S_s_out: float = 0.7
    c: float = 0.75
    C_r: int = 5  # slots that every region keeps free
    U_low: float = 0.1
    R_init: int = 5
    handshake_seconds: float = 120.0
    tokens_per_hour: float = 0.0  # AM's token bucket; 0: no limit

    info = Info("e2df", "operators and nodes, in two hierarchies", "reactive", "P1 E2DF")

    def __post_init__(self) -> None:
        if not (0 < self.S_s_out <= 1 and 0 < self.c < 1 and self.C_r >= 0 and self.R_init >= 1):
            raise ValueError("S_s_out must be in (0, 1], c in (0, 1), C_r at least 0, R_init at least 1")
        if min(self.U_low, self.handshake_seconds, self.tokens_per_hour) < 0:
            raise ValueError("U_low, handshake_seconds and tokens_per_hour must be at least 0")

    def initial(self, start: Start) -> Configuration:
        """One replica of each operator, balanced over R_init nodes (section 4.2)."""
        few = start.sized_for(0.0)
        nodes = start.bounds.nodes(max(self.R_init, few.nodes))
        return Configuration(few.parallelism, nodes * start.kind.executors, nodes)

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        if situation.model.scales_nodes_only:
            return hold(situation, "hold: no operator of this application can change its replicas"), memory
        turn, grants = int(memory.get("turn", 0)), Grants.of(situation)
        asked: Asked = dict(memory.get("asked", {}))
        application = ApplicationManager(self.S_s_out, self.c, self.tokens_per_hour)
        application.decide(situation, grants, turn, memory)
        if turn % 2 == 0 and grants.placed:  # a node of which nothing is known is not empty
            infrastructure = InfrastructureManager(self.C_r, self.U_low, self.handshake_seconds)
            infrastructure.decide(situation, grants, asked)
        memory = {"turn": turn + 1, "asked": asked, "tokens": grants.tokens, "now": situation.now}
        return _proposal(situation, grants, asked), memory


def _proposal(situation: Situation, grants: Grants, asked: Asked) -> Proposal:
    hidden = tuple(sorted(node for node, state in asked.items() if state[1] == "asked"))
    placement = Placement(
        tuple(grants.put), tuple(grants.take), tuple(grants.add), tuple(grants.remove), hidden, keep=True
    )
    rejected = tuple(grants.rejected)
    if not grants.words:
        quiet = hold(situation, "no manager proposes a change")
        return Proposal(quiet.target, quiet.reason, rejected=rejected, placement=placement)
    more = f"; and {len(grants.words) - 4} more" if len(grants.words) > 4 else ""
    reason = "; ".join(grants.words[:4]) + more
    return Proposal(_target(situation, grants), reason, tuple(grants.causes), rejected, {}, placement)


def _target(situation: Situation, grants: Grants) -> Configuration:
    """The configuration that follows from the replicas and nodes that were granted."""
    nodes = situation.configuration.nodes + len(grants.add) - len(grants.remove)
    executors = situation.configuration.executors + sum(
        next(k.executors for k in situation.kinds if k.name == kind) for kind, _ in grants.add
    )
    executors -= sum(node.executors for node in situation.observation.nodes if node.name in grants.remove)
    return Configuration(grants.parallelism, max(1, executors), nodes)
