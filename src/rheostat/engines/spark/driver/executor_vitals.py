"""What each executor uses, as its plugin `Vitals.java` tells the driver."""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from rheostat.engines.spark.protocol import Vitals

PLUGIN = "rheostat.Vitals"
_VITALS = TypeAdapter(Vitals)


def latest(jvm: Any) -> dict[str, Vitals]:
    """The latest vitals of each executor that was heard lately; `jvm` is the driver's, through py4j."""
    return read(str(jvm.rheostat.Vitals.latest()))


def read(text: str) -> dict[str, Vitals]:
    r"""One executor per line: its id, then JSON; a line that makes no sense counts as not heard.

    >>> list(read('0 {"at": 5, "gc_seconds": 0.1}\n1 {"at": -1}\n2 {"at": 5, "gc_seconds": NaN}'))
    ['0']
    """
    heard = {}
    for line in text.splitlines():
        name, _, facts = line.partition(" ")
        try:
            heard[name] = _VITALS.validate_json(facts)
        except (ValueError, ValidationError):
            continue
    return heard
