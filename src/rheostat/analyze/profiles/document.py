"""A profile as a file: JSON with a version, read as data."""

import json
from pathlib import Path
from typing import Any, Literal

from rheostat.analyze.profiles.changes import ChangeCost
from rheostat.analyze.profiles.contest import CURVES, Contest
from rheostat.analyze.profiles.profile import Profile, Selectivity
from rheostat.model.documents import Document, parse, read_document
from rheostat.model.errors import FileError
from rheostat.model.files import write_whole

VERSION = 1


class _Contest(Document):
    curve: str
    state: dict[str, Any]
    errors: dict[str, float]
    samples: int


class _Selectivity(Document):
    upstream: str
    downstream: str
    mean: float
    deviation: float
    windows: int


class _Change(Document):
    changes: int
    fixed: float
    per_gigabyte: float
    per_thousand_rows: float


class _Profile(Document):
    version: Literal[1]
    application: str
    mode: str
    operators: list[str]
    selectivity: list[_Selectivity]
    instances: dict[str, _Contest]
    nodes: _Contest | None
    changes: dict[str, _Change]
    windows: int
    cold: int


def write_profile(path: Path, profile: Profile) -> None:
    """Write it whole; a reader sees the old file or the new one."""
    write_whole(path, (json.dumps(as_json(profile), indent=2) + "\n").encode())


def as_json(profile: Profile) -> dict[str, Any]:
    """It as plain JSON data."""
    return {
        "version": VERSION,
        "application": profile.application,
        "mode": profile.mode,
        "operators": list(profile.operators),
        "selectivity": [
            {
                "upstream": up,
                "downstream": down,
                "mean": s.mean,
                "deviation": s.deviation,
                "windows": s.windows,
            }
            for (up, down), s in profile.selectivity.items()
        ],
        "instances": {name: _contest_json(contest) for name, contest in profile.instances.items()},
        "nodes": profile.nodes and _contest_json(profile.nodes),
        "changes": {
            kind: {
                "changes": cost.changes,
                "fixed": cost.fixed,
                "per_gigabyte": cost.per_gigabyte,
                "per_thousand_rows": cost.per_thousand_rows,
            }
            for kind, cost in profile.changes.items()
        },
        "windows": profile.windows,
        "cold": profile.cold,
    }


def read_profile(path: Path) -> Profile:
    """Read a profile; FileError says what is wrong with the file."""
    content = read_document(path)
    if content.get("version") != VERSION:
        found = content.get("version", "none")
        raise FileError(f"{path}: version {found} of a profile is not known here: learn it again")
    document = parse(_Profile, content, path)
    return Profile(
        document.application,
        document.mode,
        tuple(document.operators),
        {
            (s.upstream, s.downstream): Selectivity(s.mean, s.deviation, s.windows)
            for s in document.selectivity
        },
        {name: _contest(path, contest) for name, contest in document.instances.items()},
        _contest(path, document.nodes) if document.nodes else None,
        {kind: ChangeCost(**cost.model_dump()) for kind, cost in document.changes.items()},
        document.windows,
        document.cold,
    )


def _contest_json(contest: Contest) -> dict[str, Any]:
    return {
        "curve": contest.curve.name,
        "state": contest.curve.state,
        "errors": dict(contest.errors),
        "samples": contest.samples,
    }


def _contest(path: Path, document: _Contest) -> Contest:
    """Build the curve; each takes what its own state gave."""
    kind = CURVES.get(document.curve)
    if kind is None:
        raise FileError(f"{path}: unknown curve {document.curve!r}: learn the profile again")
    try:
        curve = kind.restored(document.state)
    except (TypeError, ValueError, LookupError):
        raise FileError(f"{path}: the {document.curve} cannot be read: learn the profile again") from None
    return Contest(curve, document.errors, document.samples)
