"""Rheostat keeps Apache Spark streaming applications just large enough for their load."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`from rheostat import Application` without loading Spark for those who do not ask for it."""
    if name == "Application":
        return import_module("rheostat.engines.spark.driver.application").Application
    raise AttributeError(f"module 'rheostat' has no attribute {name!r}")
