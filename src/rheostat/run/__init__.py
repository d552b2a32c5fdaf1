"""One run of one application on Spark: the order, its composition, and the heartbeat that keeps it alive."""
