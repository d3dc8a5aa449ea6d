"""Ways to make a context smaller, as pure functions over units (document C, and the pruning agent of document B)."""
