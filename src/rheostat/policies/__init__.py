"""The policies: one module per system, and what they share. `registry.build` finds them by name."""

from rheostat.policies.base import Info, Memory, Policy, Situation, Start, hold, wish

__all__ = ["Info", "Memory", "Policy", "Situation", "Start", "hold", "wish"]
