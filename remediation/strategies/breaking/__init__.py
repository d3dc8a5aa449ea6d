"""Breaking: a chain of strategies, each going on where the last one stopped, and recovery."""
