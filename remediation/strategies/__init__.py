"""Ways to make a context smaller, as pure functions over units."""
