"""A release of somebody else's package must not change what a set-up of ours installs."""

import re
from importlib.metadata import requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"


def installed_for(name: str, extras: frozenset[str], seen: set[tuple[str, str]]) -> set[NormalizedName]:
    """Every package that installing this one with these extras brings along, itself included."""
    names = {canonicalize_name(name)}
    for line in requires(name) or []:
        needed = Requirement(line)
        for extra in ("", *extras):
            if (line, extra) in seen or (needed.marker and not needed.marker.evaluate({"extra": extra})):
                continue
            seen.add((line, extra))
            names |= installed_for(needed.name, frozenset(needed.extras), seen)
    return names


def test_every_package_that_a_set_up_installs_is_pinned_to_the_version_that_is_here() -> None:
    pinned: dict[str, str] = dict(re.findall(r"^([\w.-]+)==(\S+)$", CONSTRAINTS.read_text(), re.MULTILINE))
    pins = {canonicalize_name(name): pin for name, pin in pinned.items()}
    here = {
        name: version(name)
        for name in installed_for("rheostat", frozenset({"dev"}), set())
        if name != "rheostat"
    }

    assert len(here) > 40
    assert here == {name: pins.get(name) for name in here}, "constraints.txt is behind: run `make pins`"
