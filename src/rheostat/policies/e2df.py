from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from rheostat.analyze.execution import ceil
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Cause, Placement, Proposal
from rheostat.model.observation import InstanceMeasures, NodeMeasures
from rheostat.policies.base import Info, Memory, Policy, Situation, Start, hold


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
        return Configuration(few.parallelism, nodes * start.kinds[0].executors, nodes)

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        if situation.model.scales_nodes_only:
            return hold(situation, "hold: no operator of this application can change its replicas"), memory
        turn = int(memory.get("turn", 0))
        view = _View.of(situation)
        self._application_level(situation, view, turn, memory)
        asked = dict(memory.get("asked", {}))
        if turn % 2 == 0 and view.placed:  # a node of which nothing is known is not empty
            self._infrastructure_level(situation, view, asked)
        memory = {"turn": turn + 1, "asked": asked, "tokens": view.tokens, "now": situation.now}
        hidden = tuple(sorted(node for node, state in asked.items() if state[1] == "asked"))
        placement = Placement(
            tuple(view.put), tuple(view.take), tuple(view.add), tuple(view.remove), hidden, keep=True
        )
        nodes = situation.configuration.nodes + len(view.add) - len(view.remove)
        executors = situation.configuration.executors + sum(
            next(k.executors for k in situation.kinds if k.name == kind) for kind, _ in view.add
        )
        executors -= sum(node.executors for node in situation.observation.nodes if node.name in view.remove)
        target = Configuration(view.parallelism, max(1, executors), nodes)
        if not view.words:
            quiet = hold(situation, "no manager proposes a change")
            return Proposal(
                quiet.target, quiet.reason, rejected=tuple(view.rejected), placement=placement
            ), memory
        reason = "; ".join(view.words[:4]) + (
            f"; and {len(view.words) - 4} more" if len(view.words) > 4 else ""
        )
        return Proposal(target, reason, tuple(view.causes), tuple(view.rejected), {}, placement), memory

    def _application_level(self, situation: Situation, view: "_View", turn: int, memory: Memory) -> None:
        """Every OM proposes on the same view; the AM grants in topology order what nobody took before."""
        view.tokens = self._tokens(situation, memory)
        chance = situation.chance(turn)
        replicas_of = {name: _replicas(situation, name) for name in situation.topology.order}
        claims = {name: _om_node(view, replicas, chance.random()) for name, replicas in replicas_of.items()}
        for name, replicas in replicas_of.items():
            used = [replica.utilisation or 0.0 for replica in replicas]
            count, bounds = len(used), situation.topology.operator(name)
            if max(used) > self.S_s_out and count < bounds.max_parallelism:
                cause = Cause("utilisation", f"busiest {name}", max(used), ">", self.S_s_out)
                self._grant_out(situation, view, name, claims[name], cause)
            elif count > bounds.min_parallelism and sum(used) / (count - 1) < self.c * self.S_s_out:
                cause = Cause(
                    "utilisation with one less", name, sum(used) / (count - 1), "<", self.c * self.S_s_out
                )
                busiest = sorted(replicas, key=lambda r: (-(r.utilisation or 0.0), r.node))[:2]
                victim = busiest[int(chance.random() * len(busiest))]
                self._grant_in(view, name, victim.node, cause)

    def _grant_out(
        self, situation: Situation, view: "_View", name: str, node: str | None, cause: Cause
    ) -> None:
        why = None
        if situation.model.takes_turns:
            node = None  # stages share the slots, so an instance claims one only in the widest stage
            why = "no free slot" if view.parallelism[name] >= view.slots else None
        elif node is None:
            why = "no free slot in its region"
        elif view.free(view.nodes[node]) <= 0:
            why = f"{node} was just taken by another operator"
        if why is None and not view.pay():
            why = "no token left"
        if why is not None:
            view.rejected.append(f"one more {name}: {why}")
            return
        view.parallelism[name] += 1
        if node is not None:
            view.put.append((name, node))
            view.taken[node] += 1
        view.say(f"one more {name}: {cause}", cause)

    def _grant_in(self, view: "_View", name: str, node: str, cause: Cause) -> None:
        if not view.pay():
            view.rejected.append(f"one less {name}: no token left")
            return
        view.parallelism[name] -= 1
        if node in view.nodes:
            view.take.append((name, node))
            view.taken[node] -= 1
        view.say(f"one less {name}: {cause}", cause)

    def _tokens(self, situation: Situation, memory: Memory) -> float | None:
        """The bucket holds an hour's tokens, at least one; it starts full and fills with time."""
        if not self.tokens_per_hour:
            return None
        size = max(1.0, self.tokens_per_hour)
        left = memory.get("tokens")
        if left is None:
            return size
        return min(size, float(left) + self.tokens_per_hour * (situation.now - float(memory["now"])) / 3600)

    def _infrastructure_level(
        self, situation: Situation, view: "_View", asked: dict[str, list[object]]
    ) -> None:
        """Each RM proposes for its region; the IM grants all but the end of an occupied node at once."""
        self._answer_handshakes(situation, view, asked)
        for region in sorted({node.region for node in situation.observation.nodes}):
            nodes = [node for node in situation.observation.nodes if node.region == region]
            open_nodes = [node for node in nodes if not node.hidden]
            free = sum(view.free(node) for node in open_nodes)
            if free < self.C_r:
                kind = _smallest(situation.kinds)
                missing = ceil((self.C_r - free) / kind.slots)
                room = (
                    situation.bounds.max_nodes
                    - situation.configuration.nodes
                    - len(view.add)
                    + len(view.remove)
                )
                if room <= 0:
                    view.rejected.append(f"{missing} nodes more in {region}: the limit of nodes is reached")
                    continue
                cause = Cause("free slots", region, free, "<", self.C_r)
                view.add += [(kind.name, region)] * min(missing, room)
                view.say(f"{min(missing, room)} nodes more: {cause}", cause)
            else:
                free = self._return_nodes(situation, view, nodes, region, free)
                if not situation.model.takes_turns:  # else replicas have no fixed place to move from
                    self._ask_to_empty(situation, view, open_nodes, free, asked)

    def _return_nodes(
        self, situation: Situation, view: "_View", nodes: list[NodeMeasures], region: str, free: int
    ) -> int:
        """End empty nodes, the youngest first, while C_r stays free without them; say what stays free."""
        for node in reversed(nodes):
            left = situation.configuration.nodes + len(view.add) - len(view.remove)
            without = free - view.free(node)  # a hidden node counts for nothing already
            if not view.occupied(node) and without >= self.C_r and left > situation.bounds.min_nodes:
                cause = Cause("free slots without it", region, without, ">=", self.C_r)
                view.remove.append(node.name)
                view.say(f"{node.name} returned: empty, and {cause}", cause)
                free = without
        return free

    def _ask_to_empty(
        self,
        situation: Situation,
        view: "_View",
        nodes: list[NodeMeasures],
        free: int,
        asked: dict[str, list[object]],
    ) -> None:
        """The hand-shake's first half: hide an under-used node and ask the AM to move its replicas away.

        Only while the region would keep C_r free without the node: else emptying it would add another.
        """
        for node in nodes:
            under_used = self._under_used(node) and view.occupied(node)
            if under_used and node.name not in asked and free - node.slots >= self.C_r:
                asked[node.name] = [situation.now, "asked"]
                free -= node.slots

    def _under_used(self, node: NodeMeasures) -> bool:
        return node.cpu is not None and node.cpu <= self.U_low

    def _answer_handshakes(self, situation: Situation, view: "_View", asked: dict[str, list[object]]) -> None:
        """The second half: the AM moves replicas onto nodes in use, or the IM gives up after a while."""
        ended, rooms = Counter(view.take), _rooms(view, asked)
        for name, (since, state) in list(asked.items()):
            node = view.nodes.get(name)
            if node is None:
                del asked[name]
                continue
            age = situation.now - float(since)  # type: ignore[arg-type]
            if state == "asked" and not self._under_used(node):
                del asked[name]
                view.rejected.append(f"emptying {name}: it is not under-used any more")
            elif state == "asked" and _move_away(view, node, ended, rooms[node.region]):
                cause = Cause("CPU", name, node.cpu or 0.0, "<=", self.U_low)
                view.say(f"{name} emptied to be returned: {cause}", cause)
                del asked[name]
            elif state == "asked" and age >= self.handshake_seconds:
                asked[name] = [situation.now, "cancelled"]
                view.rejected.append(
                    f"emptying {name}: its replicas were not moved in {self.handshake_seconds:g} s"
                )
            elif state == "cancelled" and age >= self.handshake_seconds:
                del asked[name]


def _rooms(view: "_View", asked: dict[str, list[object]]) -> dict[str, dict[str, int]]:
    """Free slots by region, the least used node first; moving onto an empty node would gain nothing."""
    rooms: dict[str, dict[str, int]] = {node.region: {} for node in view.nodes.values()}
    for node in sorted(view.nodes.values(), key=lambda node: node.cpu or 0.0):
        leaving = node.name in asked and asked[node.name][1] == "asked"
        if view.occupied(node) and view.free(node) > 0 and not leaving:
            rooms[node.region][node.name] = view.free(node)
    return rooms


def _move_away(
    view: "_View", node: NodeMeasures, ended: Counter[tuple[str, str]], room: dict[str, int]
) -> bool:
    """Move all replicas of a node, but those that the AM ended this turn, onto nodes with room; or none."""
    replicas = [
        operator
        for operator, count in (node.instances or {}).items()
        for _ in range(count - ended[(operator, node.name)])
    ]
    if sum(room.values()) < len(replicas):
        return False
    for operator in replicas:
        target = next(iter(room))
        room[target] -= 1
        if not room[target]:
            del room[target]
        view.take.append((operator, node.name))
        view.put.append((operator, target))
        view.taken[target] += 1
        view.taken[node.name] -= 1
    return True


@dataclass
class _View:
    """What one turn has granted so far: the AM's and IM's notebook, gone when the turn ends."""

    nodes: dict[str, NodeMeasures]
    assigned: dict[str, int]  # A_n
    parallelism: dict[str, int]
    placed: bool  # whether it is known where the replicas are
    taken: Counter[str] = field(default_factory=Counter)
    put: list[tuple[str, str]] = field(default_factory=list)
    take: list[tuple[str, str]] = field(default_factory=list)
    add: list[tuple[str, str]] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    tokens: float | None = None

    _least: dict[frozenset[str], list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, situation: Situation) -> "_View":
        nodes = {node.name: node for node in situation.observation.nodes}
        assigned = {name: node.assigned for name, node in nodes.items()}
        parallelism = dict(situation.configuration.parallelism)
        placed = all(node.instances is not None for node in nodes.values())
        if situation.model.takes_turns:  # no fixed place: the slots in use are on the oldest nodes
            placed = True
            left = situation.model.slots_for(parallelism)
            for name, node in nodes.items():
                assigned[name] = min(left, node.slots)
                left -= assigned[name]
        return cls(nodes, assigned, parallelism, placed)

    @cached_property
    def slots(self) -> int:
        return sum(node.slots for node in self.nodes.values())

    def least_used(self, regions: frozenset[str]) -> list[str]:
        """The equally least used nodes with a free slot in these regions (in all of them, if none is known).

        Every OM asks before anything is granted, so one answer serves all operators of a region.
        """
        if regions not in self._least:
            free = [
                node
                for node in self.nodes.values()
                if self.free(node) > 0 and (not regions or node.region in regions)
            ]
            least = min((node.cpu or 0.0 for node in free), default=0.0)
            self._least[regions] = [node.name for node in free if (node.cpu or 0.0) <= least]
        return self._least[regions]

    def occupied(self, node: NodeMeasures) -> bool:
        """Whether it hosts replicas after what was granted this turn."""
        return self.assigned[node.name] + self.taken[node.name] > 0

    def free(self, node: NodeMeasures) -> int:
        """C_n - A_n, what was granted this turn included; nothing on a hidden node."""
        return 0 if node.hidden else node.slots - self.assigned[node.name] - self.taken[node.name]

    def pay(self) -> bool:
        if self.tokens is None:
            return True
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def say(self, words: str, cause: Cause) -> None:
        self.words.append(words)
        self.causes.append(cause)


def _replicas(situation: Situation, name: str) -> tuple[InstanceMeasures, ...]:
    """The operator's replicas; where the engine cannot tell them apart, each is as busy as the operator."""
    measures = situation.observation.operators[name]
    if measures.instances and all(replica.utilisation is not None for replica in measures.instances):
        return measures.instances
    used = situation.evaluation.operators[name].utilisation
    return (InstanceMeasures(node="", utilisation=used),) * max(1, measures.parallelism)


def _om_node(view: _View, replicas: tuple[InstanceMeasures, ...], draw: float) -> str | None:
    """The least used node of the operator's own region; chance decides among equals."""
    own = frozenset(view.nodes[replica.node].region for replica in replicas if replica.node in view.nodes)
    equal = view.least_used(own)
    return equal[int(draw * len(equal))] if equal else None


def _smallest(kinds: tuple[NodeKind, ...]) -> NodeKind:
    return min(kinds, key=lambda kind: kind.slots)
