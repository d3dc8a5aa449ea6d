"""Chat completions: an answer as one object, or as chunks with ``[DONE]`` last."""

from functools import partial
from typing import Any

from dialogs.api.sse import KEEP_ALIVE, written
from dialogs.openai_api.conversations import Run
from dialogs.openai_api.errors import ApiError
from dialogs.openai_api.parsing import ChatRequest, chat_request
from dialogs.openai_api.relay import Ended, Reasoning, Text
from dialogs.openai_api.shapes import Answer, call_json
from dialogs.openai_api.wire import Asked, Said, Sent

DONE = b"data: [DONE]\n\n"


def read(sent: Sent) -> Asked:
    request = chat_request(sent.body, sent.dialog, sent.policy)
    return Asked(request, partial(ChatWriter, request))


class ChatWriter:
    keep_alive = KEEP_ALIVE

    def __init__(self, request: ChatRequest, run: Run) -> None:
        self._answer, self._includes_usage = Answer(run, request.labels), request.include_usage
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._ended: Ended | None = None

    def begin(self) -> list[bytes]:
        return [written(self._answer.chunk({"role": "assistant", "content": ""}))]

    def piece(self, piece: Said) -> list[bytes]:
        match piece:
            case Text(text):
                self._texts.append(text)
                return [written(self._answer.chunk({"content": text}))]
            case Reasoning(text):
                self._thoughts.append(text)
                return [written(self._answer.chunk({"reasoning_content": text}))]
            case Ended():
                self._ended = piece
                return [*map(written, self._last_chunks(piece)), DONE]

    def _last_chunks(self, ended: Ended) -> list[dict[str, Any]]:
        answer = self._answer
        chunks = [
            answer.chunk({"tool_calls": [{"index": index, **call_json(call)}]})
            for index, call in enumerate(ended.calls)
        ]
        chunks.append(answer.chunk({}, ended.finish_reason))
        if self._includes_usage:
            chunks.append(answer.usage_chunk(ended))
        chunks[-1]["dominds"] = ended.health
        return chunks

    def failed(self, error: ApiError) -> list[bytes]:
        return [written(error.body)]

    def whole(self) -> dict[str, Any]:
        assert self._ended is not None
        return self._answer.whole("".join(self._texts), "".join(self._thoughts), self._ended)
