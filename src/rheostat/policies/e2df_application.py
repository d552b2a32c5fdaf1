"""E2DF's operators: an Operator Manager for each proposes, the Application Manager grants (P1)."""

from dataclasses import dataclass

from rheostat.model.decision import Cause
from rheostat.model.observation import InstanceMeasures
from rheostat.policies.base import Memory, Situation
from rheostat.policies.e2df_grants import Grants


@dataclass(frozen=True)
class ApplicationManager:
    """Grants replicas, as long as there are slots and tokens."""

    S_s_out: float
    c: float
    tokens_per_hour: float

    def decide(self, situation: Situation, grants: Grants, turn: int, memory: Memory) -> None:
        """Every OM proposes on the same grants; the AM grants in topology order what nobody took before."""
        grants.tokens = self._tokens(situation, memory)
        chance = situation.chance(turn)
        replicas_of = {name: situation.replicas(name) for name in situation.topology.order}
        claims = {name: _om_node(grants, replicas, chance.random()) for name, replicas in replicas_of.items()}
        for name, replicas in replicas_of.items():
            used = [replica.utilisation or 0.0 for replica in replicas]
            count, bounds = len(used), situation.topology.operator(name)
            if max(used) > self.S_s_out and count < bounds.max_parallelism:
                cause = Cause("utilisation", f"busiest {name}", max(used), ">", self.S_s_out)
                self._grant_out(situation, grants, name, claims[name], cause)
            elif count > bounds.min_parallelism and sum(used) / (count - 1) < self.c * self.S_s_out:
                cause = Cause(
                    "utilisation with one less", name, sum(used) / (count - 1), "<", self.c * self.S_s_out
                )
                busiest = sorted(replicas, key=lambda r: (-(r.utilisation or 0.0), r.node))[:2]
                victim = busiest[int(chance.random() * len(busiest))]
                self._grant_in(grants, name, victim.node, cause)

    def _grant_out(
        self, situation: Situation, grants: Grants, name: str, node: str | None, cause: Cause
    ) -> None:
        why = None
        if situation.model.takes_turns:
            node = None  # stages share the slots, so an instance claims one only in the widest stage
            why = "no free slot" if grants.parallelism[name] >= grants.slots else None
        elif node is None:
            why = "no free slot in its region"
        elif grants.free(grants.nodes[node]) <= 0:
            why = f"{node} was just taken by another operator"
        if why is None and not grants.pay():
            why = "no token left"
        if why is not None:
            grants.rejected.append(f"one more {name}: {why}")
            return
        grants.parallelism[name] += 1
        if node is not None:
            grants.put.append((name, node))
            grants.taken[node] += 1
        grants.say(f"one more {name}: {cause}", cause)

    def _grant_in(self, grants: Grants, name: str, node: str, cause: Cause) -> None:
        if not grants.pay():
            grants.rejected.append(f"one less {name}: no token left")
            return
        grants.parallelism[name] -= 1
        if node in grants.nodes:
            grants.take.append((name, node))
            grants.taken[node] -= 1
        grants.say(f"one less {name}: {cause}", cause)

    def _tokens(self, situation: Situation, memory: Memory) -> float | None:
        """The bucket holds an hour's tokens, at least one; it starts full and fills with time."""
        if not self.tokens_per_hour:
            return None
        size = max(1.0, self.tokens_per_hour)
        left = memory.get("tokens")
        if left is None:
            return size
        return min(size, float(left) + self.tokens_per_hour * (situation.now - float(memory["now"])) / 3600)


def _om_node(grants: Grants, replicas: tuple[InstanceMeasures, ...], draw: float) -> str | None:
    """The least used node of the operator's own region; chance decides among equals."""
    own = frozenset(grants.nodes[replica.node].region for replica in replicas if replica.node in grants.nodes)
    equal = grants.least_used(own)
    return equal[int(draw * len(equal))] if equal else None
