"""The available curves, their parameters and their sources."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from rheostat.workloads import papers, shapes
from rheostat.workloads.bursty import bursty
from rheostat.workloads.curve import RateFunction
from rheostat.workloads.noise import KINDS

Kind = Literal["rate", "time", "whole", "number", "word", "path"]
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
MAX_SECONDS = 366 * DAY
MAX_RATE = 1e9


@dataclass(frozen=True, slots=True)
class Key:
    """A parameter: the kind of value it takes, its limits and its default."""

    name: str
    kind: Kind
    default: float | str | None
    low: float = 0.0
    high: float = MAX_RATE
    unset: str = ""  # how the default is shown if it depends on the other values
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """A curve before its parameters are known."""

    name: str
    summary: str
    source: str
    build: Callable[..., RateFunction]
    keys: tuple[Key, ...]
    compress: float = 1.0
    seeded: bool = False  # the seed determines its shape, not only its noise

    def preset(self, name: str, summary: str, source: str, **defaults: float) -> "Family":
        """Return this curve under another name, with other defaults."""
        keys = tuple(replace(key, default=defaults.get(key.name, key.default)) for key in self.keys)
        return replace(self, name=name, summary=summary, source=source, keys=keys)

    def common(self) -> tuple[Key, ...]:
        """The parameters that every curve takes."""
        return (
            Key("scale", "number", 1.0, 0.0, 1000.0),
            Key("compress", "number", self.compress, 1e-3, 1e5),
            Key("lead", "time", 0.0, 0.0, MAX_SECONDS),
            Key("noise", "word", "none", words=KINDS),
            Key("dispersion", "number", 0.02, 1e-6, 10.0),
            Key("seed", "whole", 0.0, 0.0, 2.0**32),
        )


def _duration(seconds: float) -> Key:
    return Key("duration", "time", seconds, 1.0, MAX_SECONDS)


def _period(seconds: float) -> Key:
    return Key("period", "time", seconds, 1.0, MAX_SECONDS)


def _never(**_: object) -> RateFunction:
    raise AssertionError("a trace is read by the grammar, which learns its duration from the file")


LOW, HIGH = Key("low", "rate", 100.0), Key("high", "rate", 1000.0)

_RAMP = Family("ramp", "a line up and a line down", "", shapes.ramp, (LOW, HIGH, _duration(30 * MINUTE)))
_STAIR = Family(
    "stair",
    "up by equal steps and down again",
    "P2 5.1",
    shapes.stair,
    (LOW, HIGH, Key("steps", "whole", 5.0, 1.0, 1000.0), _duration(30 * MINUTE)),
)

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            "constant",
            "one rate throughout",
            "",
            shapes.constant,
            (Key("rate", "rate", 1000.0), _duration(10 * MINUTE)),
        ),
        Family(
            "step",
            "one jump up and one back",
            "P2 5.2",
            shapes.step,
            (
                LOW,
                HIGH,
                Key("start", "time", None, 0.0, MAX_SECONDS, unset="1/3"),
                Key("end", "time", None, 0.0, MAX_SECONDS, unset="2/3"),
                _duration(30 * MINUTE),
            ),
        ),
        _STAIR,
        Family(
            "square",
            "half a period low, half a period high",
            "P2 5.1",
            shapes.square,
            (LOW, HIGH, _period(10 * MINUTE), _duration(30 * MINUTE)),
        ),
        Family(
            "sine",
            "a wave that starts at its low",
            "P2 5.1",
            shapes.sine,
            (LOW, HIGH, _period(10 * MINUTE), _duration(30 * MINUTE)),
        ),
        _RAMP,
        _RAMP.preset("p1", "5 to 550 rows/s and back", "P1 Fig. 2a", low=5.0, high=550.0, duration=HOUR),
        _STAIR.preset(
            "ddos-ramp",
            "0 to 16,000 by 2,000, each held 2 min",
            "P0 5.2",
            low=0.0,
            high=16_000.0,
            steps=8.0,
            duration=17 * 2 * MINUTE,
        ),
        Family(
            "exponential",
            "an exponential rise, a fall by plateaus, irregular",
            "P3 5.1",
            papers.exponential,
            (
                LOW,
                HIGH,
                Key("plateaus", "whole", 4.0, 1.0, 100.0),
                Key("irregular", "number", 0.05, 0.0, 0.5),
                _duration(30 * MINUTE),
            ),
            seeded=True,
        ),
        Family(
            "day",
            "a working day: morning rise, lunch dip, evening fall",
            "P0 Fig. 8",
            papers.day,
            (LOW, HIGH, Key("start", "time", 0.0, 0.0, DAY), _duration(DAY)),
        ),
        Family(
            "week",
            "five working days and a week-end",
            "P0 Fig. 8",
            papers.week,
            (LOW, HIGH, Key("start", "time", 0.0, 0.0, 7 * DAY), _duration(7 * DAY)),
        ),
        Family(
            "ddos-day",
            "a working day as hourly means, each held 5 min",
            "P0 5.3",
            papers.hourly_means,
            (replace(LOW, default=5000.0), replace(HIGH, default=16_000.0), _duration(2 * HOUR)),
        ),
        Family(
            "bursty",
            "a social network's day: rhythm, bursts, an election night",
            "P2 5.1",
            bursty,
            (LOW, HIGH, Key("bursts", "number", 24.0, 0.0, 1000.0), _duration(DAY)),
            compress=60.0,
            seeded=True,
        ),
        Family(
            "trace",
            "a CSV file with the header time,rate",
            "",
            _never,
            (
                Key("path", "path", None, unset="needed"),
                replace(_duration(DAY), default=None, unset="the file's"),
            ),
        ),
    )
}
