"""P0's benchmark procedure: what a node can serve, and which configuration serves which load."""
