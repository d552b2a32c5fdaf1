"""P3's linear topology: a cheap operator, then an expensive one."""
