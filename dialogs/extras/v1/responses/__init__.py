"""``/v1/responses``: OpenAI's newer protocol, translated into chat completions on the way in and written
as items on the way out."""
