"""The profile of an application: selectivities, what its instances and nodes use, what changes cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.analyze.profiles.changes import Change, ChangeCost, change_costs
from rheostat.analyze.profiles.contest import Contest, compete
from rheostat.analyze.profiles.samples import Points, divided
from rheostat.model.errors import UserError

Stream = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Selectivity:
    """SP: rows on a stream / rows into its operator, over windows."""

    mean: float
    deviation: float
    windows: int


@dataclass(frozen=True, slots=True)
class Profile:
    """What was learned; an operator or the nodes with too few points are absent."""

    application: str
    mode: str
    operators: tuple[str, ...]
    selectivity: Mapping[Stream, Selectivity]
    instances: Mapping[str, Contest]  # OCUP
    nodes: Contest | None  # OP
    changes: Mapping[str, ChangeCost]
    windows: int = 0
    cold: int = 0


def learn(
    application: str, mode: str, operators: Sequence[str], points: Points, changes: Sequence[Change]
) -> Profile:
    """Learn everything that the points of an application show."""
    contests = {name: compete(samples) for name, samples in points.instances.items()}
    return Profile(
        application,
        mode,
        tuple(operators),
        {
            stream: Selectivity(float(np.mean(ratios)), float(np.std(ratios)), len(ratios))
            for stream, ratios in points.selectivity.items()
        },
        {name: contest for name, contest in contests.items() if contest is not None},
        compete(points.nodes),
        change_costs(changes),
        points.windows,
        points.cold,
    )


def learn_and_judge(
    application: str,
    mode: str,
    operators: Sequence[str],
    points: Points,
    changes: Sequence[Change],
    hold_back: float,
) -> tuple[Profile, Points]:
    """Learn from all but the last windows; return these beside the profile, to judge it."""
    known, judged = divided(points, hold_back)
    return learn(application, mode, operators, known, changes), judged


def check_operators(profile: Profile, application: str, operators: Sequence[str]) -> None:
    """Refuse a profile of another topology."""
    if set(profile.operators) != set(operators):
        own, others = ", ".join(profile.operators), ", ".join(operators)
        raise UserError(
            f"the profile is of {profile.application} with the operators {own}; {application} has {others}: "
            "learn a profile of its own"
        )
