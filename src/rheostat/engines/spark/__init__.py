"""Runs applications on Spark and changes their size while they run."""
