"""E2DF's nodes: a Region Manager for each region proposes, the Infrastructure Manager grants (P1)."""

from collections import Counter
from dataclasses import dataclass

from rheostat.analyze.execution import ceil
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Cause
from rheostat.model.observation import NodeMeasures
from rheostat.policies.base import Situation
from rheostat.policies.e2df_grants import Grants

Asked = dict[str, list[object]]  # by node: since when, and whether that is "asked" or "cancelled"


@dataclass(frozen=True)
class InfrastructureManager:
    """Keeps C_r slots free in every region, and returns nodes that are empty or can be emptied."""

    C_r: int
    U_low: float
    handshake_seconds: float

    def decide(self, situation: Situation, grants: Grants, asked: Asked) -> None:
        """Each RM proposes for its region; the IM grants all but the end of an occupied node at once."""
        self._answer_handshakes(situation, grants, asked)
        for region in sorted({node.region for node in situation.observation.nodes}):
            nodes = [node for node in situation.observation.nodes if node.region == region]
            open_nodes = [node for node in nodes if not node.hidden]
            free = sum(grants.free(node) for node in open_nodes)
            if free < self.C_r:
                self._order_nodes(situation, grants, region, free)
                continue
            free = self._return_nodes(situation, grants, nodes, region, free)
            if not situation.model.takes_turns:  # else replicas have no fixed place to move from
                self._ask_to_empty(situation, grants, open_nodes, free, asked)

    def _order_nodes(self, situation: Situation, grants: Grants, region: str, free: int) -> None:
        """Enough nodes of the smallest kind for C_r free slots, as far as the limit of nodes allows."""
        kind, nodes = _smallest(situation.kinds), situation.configuration.nodes
        missing = ceil((self.C_r - free) / kind.slots)
        room = situation.bounds.max_nodes - nodes - len(grants.add) + len(grants.remove)
        if room <= 0:
            grants.rejected.append(f"{missing} nodes more in {region}: the limit of nodes is reached")
            return
        cause = Cause("free slots", region, free, "<", self.C_r)
        grants.add += [(kind.name, region)] * min(missing, room)
        grants.say(f"{min(missing, room)} nodes more: {cause}", cause)

    def _return_nodes(
        self, situation: Situation, grants: Grants, nodes: list[NodeMeasures], region: str, free: int
    ) -> int:
        """End empty nodes, the youngest first, while C_r stays free without them; say what stays free."""
        for node in reversed(nodes):
            left = situation.configuration.nodes + len(grants.add) - len(grants.remove)
            without = free - grants.free(node)  # a hidden node counts for nothing already
            if not grants.occupied(node) and without >= self.C_r and left > situation.bounds.min_nodes:
                cause = Cause("free slots without it", region, without, ">=", self.C_r)
                grants.remove.append(node.name)
                grants.say(f"{node.name} returned: empty, and {cause}", cause)
                free = without
        return free

    def _ask_to_empty(
        self,
        situation: Situation,
        grants: Grants,
        nodes: list[NodeMeasures],
        free: int,
        asked: Asked,
    ) -> None:
        """The hand-shake's first half: hide an under-used node and ask the AM to move its replicas away.

        Only while the region would keep C_r free without the node: else emptying it would add another.
        """
        for node in nodes:
            under_used = self._under_used(node) and grants.occupied(node)
            if under_used and node.name not in asked and free - node.slots >= self.C_r:
                asked[node.name] = [situation.now, "asked"]
                free -= node.slots

    def _under_used(self, node: NodeMeasures) -> bool:
        return node.cpu is not None and node.cpu <= self.U_low

    def _answer_handshakes(self, situation: Situation, grants: Grants, asked: Asked) -> None:
        """The second half: the AM moves replicas onto nodes in use, or the IM gives up after a while."""
        ended, rooms = Counter(grants.take), _rooms(grants, asked)
        for name, (since, state) in list(asked.items()):
            node = grants.nodes.get(name)
            if node is None:
                del asked[name]
                continue
            age = situation.now - float(since)  # type: ignore[arg-type]
            if state == "asked" and not self._under_used(node):
                del asked[name]
                grants.rejected.append(f"emptying {name}: it is not under-used any more")
            elif state == "asked" and _move_away(grants, node, ended, rooms[node.region]):
                cause = Cause("CPU", name, node.cpu or 0.0, "<=", self.U_low)
                grants.say(f"{name} emptied to be returned: {cause}", cause)
                del asked[name]
            elif state == "asked" and age >= self.handshake_seconds:
                asked[name] = [situation.now, "cancelled"]
                grants.rejected.append(
                    f"emptying {name}: its replicas were not moved in {self.handshake_seconds:g} s"
                )
            elif state == "cancelled" and age >= self.handshake_seconds:
                del asked[name]


def _rooms(grants: Grants, asked: Asked) -> dict[str, dict[str, int]]:
    """Free slots by region, the least used node first; moving onto an empty node would gain nothing."""
    rooms: dict[str, dict[str, int]] = {node.region: {} for node in grants.nodes.values()}
    for node in sorted(grants.nodes.values(), key=lambda node: node.cpu or 0.0):
        leaving = node.name in asked and asked[node.name][1] == "asked"
        if grants.occupied(node) and grants.free(node) > 0 and not leaving:
            rooms[node.region][node.name] = grants.free(node)
    return rooms


def _move_away(
    grants: Grants, node: NodeMeasures, ended: Counter[tuple[str, str]], room: dict[str, int]
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
        grants.take.append((operator, node.name))
        grants.put.append((operator, target))
        grants.taken[target] += 1
        grants.taken[node.name] -= 1
    return True


def _smallest(kinds: tuple[NodeKind, ...]) -> NodeKind:
    return min(kinds, key=lambda kind: kind.slots)
