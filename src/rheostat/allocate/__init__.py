"""Allocators: which components should get additional units of resource to raise throughput most (P4)."""

from rheostat.allocate.algorithms import ALGORITHMS, allocate
from rheostat.allocate.allocation import Allocation
from rheostat.allocate.combined import combined
from rheostat.allocate.compute_model import cores_used, throughput
from rheostat.allocate.measured import Component, MeasuredTopology, read_topology
from rheostat.allocate.optimal import optimal
from rheostat.allocate.predictive import predictive
from rheostat.allocate.stela import stela

__all__ = [
    "ALGORITHMS",
    "Allocation",
    "Component",
    "MeasuredTopology",
    "allocate",
    "combined",
    "cores_used",
    "optimal",
    "predictive",
    "read_topology",
    "stela",
    "throughput",
]
