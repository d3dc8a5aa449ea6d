"""``/v1beta``: Gemini's protocol, translated into chat completions on the way in and written as parts on the way
out."""
