"""Rolling top-k words (P2, T1)."""
