"""Breaking: a chain of strategies, each of which goes on where the last one stopped, and recovery if none helps."""
