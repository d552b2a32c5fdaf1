"""For how long rows held the tasks of Real-Time Mode, as the plugin `ServiceTimes.java` tells the driver."""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from rheostat.engines.spark.protocol import ServiceTime

PLUGIN = "rheostat.ServiceTimes"
_TIMES = TypeAdapter(ServiceTime)


def drain(jvm: Any) -> tuple[ServiceTime, ...]:
    """The tasks that ended since the last call; `jvm` is the driver's, through py4j."""
    return read(str(jvm.rheostat.ServiceTimes.drain()))


def read(text: str) -> tuple[ServiceTime, ...]:
    r"""One task per line; a line that makes no sense is left out, so the task's time is not known.

    >>> read("7 0 1.5\n7 1 NaN\n7\n")
    (ServiceTime(stage=7, partition=0, seconds=1.5),)
    """
    times = []
    for line in text.splitlines():
        try:
            stage, partition, seconds = line.split()
            facts = {"stage": int(stage), "partition": int(partition), "seconds": float(seconds)}
            times.append(_TIMES.validate_python(facts, strict=False))
        except (ValueError, ValidationError):
            continue
    return tuple(times)
