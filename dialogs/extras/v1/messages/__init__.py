"""``/v1/messages``: Anthropic's protocol, translated into chat completions on the way in and written as
blocks on the way out."""
