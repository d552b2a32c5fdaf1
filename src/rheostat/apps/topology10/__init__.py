"""P4's topology 10: a tree of ten operators that share their rows unequally."""
