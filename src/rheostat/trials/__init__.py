"""Trials: policies against each other and against Spark's own scaling, on real Spark."""
