"""Load curves: rows per second offered at the sources, as functions of time and as files."""

from rheostat.workloads.curve import Curve, sample
from rheostat.workloads.grammar import curve_names, parse_curve
from rheostat.workloads.noise import Noise

__all__ = ["Curve", "Noise", "curve_names", "parse_curve", "sample"]
