"""Rheostat keeps Apache Spark streaming applications exactly as large as their load needs."""

__version__ = "0.1.0"
