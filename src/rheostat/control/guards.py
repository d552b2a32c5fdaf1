"""Guards: the checks between a policy's proposal and the running application."""

from dataclasses import dataclass, replace

from rheostat.analyze.execution import ceil
from rheostat.model.configuration import Configuration
from rheostat.model.decision import Placement, Plan, Proposal
from rheostat.policies.base import Situation

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Guards:
    """Limits on changes; 0 switches a limit off."""

    cooldown_seconds: float = 0.0
    changes_per_hour: int = 0
    stale_seconds: float = 0.0  # a window that ended longer ago is too old to act on
    rescale_above: float = 0.0  # rewrite state only if utilisation would exceed this without it

    @property
    def memory_seconds(self) -> float:
        """How long the guards need to know about a change; older times can be dropped."""
        return max(HOUR, self.cooldown_seconds)

    def check(
        self, proposal: Proposal, situation: Situation, changed_at: tuple[float, ...], number: int
    ) -> Plan:
        """Turn a proposal into a plan; each refusal becomes a veto with its reason.

        `changed_at` holds the times when earlier changes finished: only then does their effect show.
        """
        current = situation.configuration
        contradicts = _contradiction(proposal, situation)
        plan = Plan(
            number=number,
            decided_at=situation.now,
            current=current,
            target=current if contradicts else proposal.target,
            reason=proposal.reason,
            causes=proposal.causes,
            rejected=proposal.rejected,
            expected=proposal.expected,
            placement=_without_wishes(proposal.placement) if contradicts else proposal.placement,
            alert=proposal.alert,
            changes=not contradicts and proposal.changes(current),
            rewrite=None if contradicts else proposal.rewrite,
            advice=proposal.advice,
            asked_by=proposal.asked_by,
        )
        if contradicts:
            checked = _hold(plan, contradicts)
        else:
            checked = self._checked(plan, situation, changed_at) if plan.changes else plan
        return replace(checked, wished=proposal.target) if checked.vetoes else checked

    def _checked(self, plan: Plan, situation: Situation, changed_at: tuple[float, ...]) -> Plan:
        refusal = self._refusal(situation, changed_at)
        if refusal:
            return _hold(plan, refusal)
        checked = _within_bounds(plan, situation)
        if self.rescale_above and checked.changes:
            checked = self._worth_the_pause(checked, situation)
        return _enough_slots(checked, situation) if checked.changes else checked

    def _worth_the_pause(self, plan: Plan, situation: Situation) -> Plan:
        """Rewriting state pauses the stream: leave it as it is if the rest of the plan is enough."""
        had, target = plan.current.parallelism, plan.target
        stateful = {o.name for o in situation.topology.operators if o.stateful}
        kept = {name: had[name] if name in stateful else count for name, count in target.parallelism.items()}
        if kept == target.parallelism or not situation.evaluation.operators:
            return plan
        model, slots = situation.model, _slots_after(plan, situation)
        used = max(model.utilisation(situation.evaluation.busy, kept, slots).values())
        room = model.oversubscribes or model.slots_for(kept) <= slots
        if used > self.rescale_above or not room:
            return plan
        names = ", ".join(sorted(name for name in stateful if kept[name] != target.parallelism[name]))
        veto = (
            f"{names} unchanged: rewriting state pauses the stream, and without it utilisation is {used:.2f}"
        )
        parallelism = Configuration(kept, target.executors, target.nodes)
        return replace(
            plan, target=parallelism, vetoes=(*plan.vetoes, veto), changes=parallelism != plan.current
        )

    def _refusal(self, situation: Situation, changed_at: tuple[float, ...]) -> str | None:
        now = situation.now
        age = now - situation.observation.end
        if self.stale_seconds and age > self.stale_seconds:
            return f"the newest window ended {age:.0f} s ago, more than {self.stale_seconds:g} s"
        if changed_at and self.cooldown_seconds and now - changed_at[-1] < self.cooldown_seconds:
            since = now - changed_at[-1]
            return f"cool-down: the last change was {since:.0f} s ago, less than {self.cooldown_seconds:g} s"
        recent = sum(1 for time in changed_at if now - time < HOUR)
        if self.changes_per_hour and recent >= self.changes_per_hour:
            return f"{recent} changes in the last hour, the limit is {self.changes_per_hour}"
        return None


def _hold(plan: Plan, veto: str) -> Plan:
    held = _without_wishes(plan.placement)
    vetoes = (*plan.vetoes, veto)
    return replace(plan, target=plan.current, placement=held, vetoes=vetoes, changes=False, rewrite=None)


def _without_wishes(placement: Placement) -> Placement:
    return replace(placement, put=(), take=(), add=(), remove=())


def _contradiction(proposal: Proposal, situation: Situation) -> str:
    """What is wrong with the nodes that a proposal names, or nothing."""
    places, current = proposal.placement, situation.configuration
    nodes, kinds = (
        {node.name for node in situation.observation.nodes},
        {kind.name for kind in situation.kinds},
    )
    for name in places.remove:
        if nodes and name not in nodes:
            return f"the proposal removes a node {name!r}, which does not exist"
    for kind, _ in places.add:
        if kind not in kinds:
            return f"the proposal adds a node of kind {kind!r}, which does not exist"
    if places.contradicts(current, proposal.target):
        after = places.nodes_after(current.nodes)
        return f"the proposal wants {proposal.target.nodes} nodes, but the nodes it names lead to {after}"
    return ""


def _within_bounds(plan: Plan, situation: Situation) -> Plan:
    """Keep the target within the bounds; refuse to add or remove named nodes beyond them."""
    bounds, had, wanted = situation.bounds, plan.current.nodes, plan.target.nodes
    added, removed = plan.placement.add, plan.placement.remove
    if (added or removed) and (had < wanted > bounds.max_nodes or had > wanted < bounds.min_nodes):
        limits = f"{bounds.min_nodes} to {bounds.max_nodes}"
        return _hold(plan, f"{wanted} nodes after this change, the bounds are {limits}")
    nodes = wanted if added or removed else bounds.nodes(wanted)
    executors = plan.target.executors if nodes == plan.target.nodes else situation.executors_on(nodes)
    parallelism = bounds.parallelism(situation.topology, plan.target.parallelism)
    target = Configuration(parallelism, executors, nodes)
    if target == plan.target:
        return plan
    veto = f"brought within the bounds: {target.describe(plan.target)}"
    wishes = plan.placement.put or plan.placement.take or added or removed
    changes = target != plan.current or plan.rewrite is not None or bool(wishes)
    return replace(plan, target=target, vetoes=(*plan.vetoes, veto), changes=changes)


def _enough_slots(plan: Plan, situation: Situation) -> Plan:
    """If each instance holds a slot, instances without slots would end the query: add nodes or refuse."""
    slots = situation.model.slots_required(plan.target.parallelism)
    missing = slots - _slots_after(plan, situation)
    if missing <= 0:
        return plan
    more = ceil(missing / situation.kind.slots)
    needed = plan.target.nodes + more
    if needed > situation.bounds.max_nodes:
        return _hold(
            plan, f"{slots} instances need {needed} nodes, the limit is {situation.bounds.max_nodes}"
        )
    executors = plan.target.executors + more * situation.kind.executors
    return replace(
        plan,
        target=Configuration(plan.target.parallelism, executors, needed),
        placement=_with_nodes(plan.placement, more, situation),
        vetoes=(*plan.vetoes, f"nodes raised to {needed}: every instance holds a slot"),
    )


def _slots_after(plan: Plan, situation: Situation) -> int:
    """The slots of the nodes under the plan; nodes that it does not name are of the default kind."""
    kinds = {kind.name: kind.slots for kind in situation.kinds}
    default, places = situation.kind.slots, plan.placement
    if not (places.add or places.remove):
        return situation.slots_on(plan.target.nodes)
    added = sum(kinds.get(kind, default) for kind, _ in places.add)
    removed = {node.name: node.slots for node in situation.observation.nodes if node.name in places.remove}
    had = sum(node.slots for node in situation.observation.nodes) or plan.current.nodes * default
    return had + added - sum(removed.get(name, default) for name in places.remove)


def _with_nodes(placement: Placement, more: int, situation: Situation) -> Placement:
    """The placement with this many more nodes: first fewer are removed, then more are added."""
    if not (placement.add or placement.remove):
        return placement  # it names no single nodes
    staying = min(more, len(placement.remove))
    region = situation.observation.nodes[0].region if situation.observation.nodes else "local"
    new = ((situation.kind.name, region),) * (more - staying)
    return replace(
        placement, add=placement.add + new, remove=placement.remove[: len(placement.remove) - staying]
    )
