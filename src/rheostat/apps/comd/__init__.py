"""Online analysis of a molecular-dynamics simulation (P0)."""
