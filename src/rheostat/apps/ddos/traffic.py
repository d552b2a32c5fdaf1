"""Synthetic traffic of a data centre: packets with a daily and a weekly period, and attacks among them.

A packet follows from its number and the seed, so a stream, a batch and a reference see the same packets. Time
is simulated: numbers are spread over it so that the packets per minute vary ninefold over a week.
"""

import math
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rheostat.apps.draws import draw

BEGAN = 1_700_000_000 - 1_700_000_000 % 604_800  # seconds; a multiple of a week
PER_MINUTE = 400.0  # numbers, on average
DAY, WEEK = 1_440.0, 10_080.0  # minutes
DAILY, WEEKLY = 0.6, 0.2  # amplitude of the time between packets
LOST = 0.3  # at most this part of the packets of a minute is missing: traffic is never smooth
CLIENTS, SERVERS = 200, 20
EPISODE_MINUTES, ATTACKED = 5, 0.06  # of these episodes, this part is an attack
FLOOD, SCAN, SLOW = "flood", "scan", "slow"
KINDS = (FLOOD, SCAN, SLOW)


@dataclass(frozen=True)
class Traffic:
    """Traffic of a seed, with or without attacks."""

    seed: int = 0
    attacks: bool = True

    def packets(self, numbers: DataFrame) -> DataFrame:
        """Turn rows `value` into rows `line`, as a firewall writes them."""
        minute = F.floor("time").cast("bigint")
        timed = numbers.select("value", time_of("value").alias("time")).withColumn("minute", minute)
        kept = timed.where(self._draw("value", 1) >= LOST * self._draw("minute", 2))
        made = kept.select("time", F.explode(self._packets_of_a_row()).alias("packet"))
        seconds = (F.col("time") * 60 + BEGAN).cast("decimal(20,6)").cast("string")
        return made.select(F.concat_ws(" ", seconds, "packet").alias("line"))

    def attack(self) -> Column:
        """Return the kind of attack in a `minute`, or null."""
        if not self.attacks:
            return F.lit(None).cast("string")
        which = (self._draw(_episode(), 4) * len(KINDS)).cast("int")
        return F.when(self._draw(_episode(), 3) < ATTACKED, F.get(F.array(*map(F.lit, KINDS)), which))

    def _packets_of_a_row(self) -> Column:
        """Return what the clients send, and what an attack adds to it."""
        attack, normal = self.attack(), self._normal()
        victim = F.concat(F.lit("10.0.0."), (self._draw(_episode(), 5) * SERVERS).cast("int"))
        bots = [
            self._packet(self._address("10.66.0.", 50, 20 + n), victim, 40 + 20 * self._draw("value", 30 + n))
            for n in (0, 1)
        ]
        probe = self._packet(F.lit("10.66.1.1"), self._address("10.0.9.", 254, 40), F.lit(40.0))
        trickle = self._packet(self._address("10.66.2.", 5, 50), victim, 1 + 9 * self._draw("value", 51))
        return (
            F.when(attack == FLOOD, F.array(normal, *bots))
            .when((attack == SCAN) & (self._draw("value", 60) < 0.5), F.array(normal, probe))
            .when((attack == SLOW) & (self._draw("value", 61) < 0.25), F.array(normal, trickle))
            .otherwise(F.array(normal))
        )

    def _normal(self) -> Column:
        tiny = self._draw("value", 12) < 0.05  # acknowledgements
        payload = F.when(tiny, 20.0).otherwise(60 + 1400 * self._draw("value", 13) ** 2)
        return self._packet(
            self._address("10.1.0.", CLIENTS, 10), self._address("10.0.0.", SERVERS, 11), payload
        )

    def _packet(self, source: Column, destination: Column, payload: Column) -> Column:
        return F.concat_ws(" ", source, F.lit(">"), destination, F.lit("len"), payload.cast("int"))

    def _address(self, network: str, addresses: int, number: int) -> Column:
        """Choose an address of a network; a few are the busiest."""
        return F.concat(F.lit(network), (self._draw("value", number) ** 2 * addresses).cast("int"))

    def _draw(self, of: str | Column, number: int) -> Column:
        """Return a number in [0, 1) that is always the same for the same input."""
        return draw(of, number, self.seed)


def _episode() -> Column:
    return F.floor(F.col("minute") / EPISODE_MINUTES)


def time_of(number: str) -> Column:
    """Return the minute of a packet: the time between packets varies by day and by week."""
    steps = F.col(number) / PER_MINUTE
    swing = F.lit(0.0)
    for part, period in ((DAILY, DAY), (WEEKLY, WEEK)):
        swing += part * period / (2 * math.pi) * F.sin(steps * (2 * math.pi / period))
    return steps + swing
