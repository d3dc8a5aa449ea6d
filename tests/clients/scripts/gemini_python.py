"""Google's package for Python: a chat, whole or streamed, that runs the tool by itself."""

import sys

from common import place, report, run
from google import genai
from google.genai import types

client = genai.Client(api_key=place["KEY"], http_options=types.HttpOptions(base_url=place["BASE_URL"]))
chat = client.chats.create(model=place["MODEL"], config=types.GenerateContentConfig(tools=[run]))


def turn(text: str) -> str:
    if place["WIRE"] == "stream":
        return "".join(piece.text or "" for piece in chat.send_message_stream(text))
    return chat.send_message(text).text or ""


report([turn(text) for text in sys.argv[1:]])
