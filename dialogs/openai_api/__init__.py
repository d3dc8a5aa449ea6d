"""``/v1``: agents as models, in the shapes of OpenAI's chat completions. The web relays; a worker generates."""
