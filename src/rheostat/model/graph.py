"""What every directed graph of operators must satisfy, whatever file it came from."""

import math
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from rheostat.model.errors import UserError, nearest

SHARE_SLACK = 1e-9  # 0.1 + 0.2 + 0.7 is a little over 1 in floating point
MAX_NAME = 200  # characters


def check_name(name: str, word: str) -> None:
    """Refuse a name that is empty, too long or unprintable."""
    if not name.strip():
        raise UserError(f"one {word} has an empty name")
    if len(name) > MAX_NAME or not name.isprintable():
        raise UserError(
            f"{word} {name[:40]!r}: a name must be at most {MAX_NAME} characters that can be printed"
        )


def check_names(names: Sequence[str], word: str = "operator") -> None:
    """Refuse an empty graph, unusable names and duplicate names."""
    if not names:
        raise UserError(f"there is no {word}; state at least one")
    unique: set[str] = set()
    for name in names:
        check_name(name, word)
        if name in unique:
            raise UserError(f"{word} {name!r} is stated twice; names must be unique")
        unique.add(name)


def check_shares(children: Mapping[str, Mapping[str, float]], word: str = "operator") -> None:
    """Refuse unknown children and shares that are negative, not finite, or add up to more than 1."""
    for name, shares in children.items():
        for child, share in shares.items():
            if child not in children:
                raise UserError(
                    f"{word} {name!r} sends to {child!r}, which does not exist{nearest(child, children)}"
                )
            if not math.isfinite(share) or share < 0:
                raise UserError(
                    f"{word} {name!r}: the share for {child!r} is {share}; it must be between 0 and 1"
                )
        total = sum(shares.values())
        if total > 1 + SHARE_SLACK:
            raise UserError(
                f"{word} {name!r}: its shares add up to {total:g}, more than 1; "
                "to send each row to several children, raise the selectivity instead"
            )


def downstream_order(children: Mapping[str, Mapping[str, float]], word: str = "operator") -> tuple[str, ...]:
    """Order the operators so that each comes after every operator that feeds it; refuse a cycle.

    >>> downstream_order({"count": {}, "split": {"count": 1.0}})
    ('split', 'count')
    """
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(children, ()))
    for name, shares in children.items():
        for child in shares:
            sorter.add(child, name)
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        cycle = list(reversed(error.args[1]))
        path = " -> ".join([*cycle[:6], "...", cycle[-1]] if len(cycle) > 8 else cycle)
        raise UserError(f"{word} {cycle[0]!r} is in a cycle: {path}; a topology must be acyclic") from None
