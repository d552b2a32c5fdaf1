"""What the operators of five.py cost, in rounds of a hash; here so that a test can read it without Spark."""

ROUNDS = {"a": 4_000, "b": 4_000, "c": 2_000, "d": 3_000, "e": 2_000}
