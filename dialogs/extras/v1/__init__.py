"""``/v1``: agents as models, in the protocols of OpenAI and Anthropic. The web relays; a worker generates."""
