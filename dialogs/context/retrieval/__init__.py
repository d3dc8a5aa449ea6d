"""Search for what was said: one index of words, for people, agents, and recall by the runtime."""
