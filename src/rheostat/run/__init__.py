"""One run of one application on Spark: what was ordered, how it is put together, and what keeps it alive."""
