"""Finding what was said: one index of words, for search by people and agents and for recall by the runtime."""
