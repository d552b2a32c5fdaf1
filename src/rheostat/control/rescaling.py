"""Whether the state of a plain script is rewritten: the user decides, above all policies (--rescale).

Applications of the Topology API are rescaled by plan; of a script, only a restart on rewritten state can
change the number of state partitions. No number of nodes brings what one rewrite does, so it comes first.
A policy may propose a rewrite itself; where it does not, this looks for one that is worth its pause.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from rheostat.analyze.state_partitions import advise
from rheostat.control.ports import Engine
from rheostat.model.decision import Cause, Proposal
from rheostat.model.rewrite import Rewrite
from rheostat.policies.base import Situation


class Rescale(StrEnum):
    """What to do about state in too many partitions."""

    AUTO = "auto"
    ADVISE = "advise"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Rescaling:
    """Adds to a policy's proposal the rewrite that is worth its pause, or the advice to do it."""

    mode: Rescale = Rescale.ADVISE

    def check(self, proposal: Proposal, situation: Situation, engine: Engine) -> Proposal:
        """The proposal with advice; with `auto`, the rewrite in its place."""
        if self.mode is Rescale.NEVER or engine.plans_state:
            return replace(proposal, rewrite=None)
        rewrite = proposal.rewrite or advise(
            situation.topology,
            situation.observation,
            situation.evaluation,
            situation.model,
            situation.bounds,
            situation.kind,
        )
        if rewrite is None:
            return proposal
        refusals = {name: engine.rewrite_refusal((name,)) for name in rewrite.operators}
        possible = tuple(name for name, why in refusals.items() if why is None)
        if not possible:
            why = next(filter(None, refusals.values()))
            return replace(proposal, rewrite=None, advice=f"{rewrite.describe()}; but {why}")
        rewrite = replace(rewrite, operators=possible)
        if self.mode is Rescale.ADVISE:
            how = f"{rewrite.describe()}: `--rescale auto` does it"
            return replace(proposal, rewrite=None, advice=how)
        own = proposal.rewrite is not None
        return replace(proposal, rewrite=rewrite) if own else _instead(proposal, situation, rewrite)


def _instead(proposal: Proposal, situation: Situation, rewrite: Rewrite) -> Proposal:
    """The rewrite alone: what else helps shows when it is done."""
    partitions = Cause(
        "state partitions", ", ".join(rewrite.operators), float(rewrite.before), ">", float(rewrite.after)
    )
    return Proposal(
        situation.configuration,
        rewrite.describe(),
        (partitions,),
        (f"the policy alone: {proposal.reason}",),
        {"batch (s)": rewrite.predicted_seconds},
        alert=proposal.alert,
        rewrite=rewrite,
    )
