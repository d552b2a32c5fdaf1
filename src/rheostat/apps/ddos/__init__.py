"""Detection of denial-of-service attacks (P0): a model learned in batches, applied to a stream."""
