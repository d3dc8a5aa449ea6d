"""Models as values, and the parameters that they take."""
