"""P3's star: two sources meet in a cheap operator that feeds two expensive ones."""
