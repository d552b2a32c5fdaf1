"""P3's diamond: two cheap operators share the rows and meet in an expensive one."""
