"""Word count (P1)."""
