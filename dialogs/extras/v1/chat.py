"""Chat completions: an answer as one object, or as chunks with ``[DONE]`` last. Each also carries
``metadata.dialog_id``, by which a client may go on with the dialog."""

import time
from dataclasses import replace
from functools import partial
from typing import Any

from dialogs.api.sse import KEEP_ALIVE, write_event
from dialogs.extras.v1.compacted import Compacted
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.fields import read_list, read_object
from dialogs.extras.v1.parsing import ChatRequest, chat_request
from dialogs.extras.v1.pieces import Ended, Reasoning, Refusal, Text
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.wire import AnswerPiece, ChatBody, Reading, Sent, call_json

DONE = b"data: [DONE]\n\n"
REASONS = {"stop_sequence": "stop"}


def read(sent: Sent) -> Reading:
    body = sent.body
    if has_shown_results(body.get("messages")):
        request = _with_results_shown(body).request(sent.dialog, sent.policy)
    else:
        request = chat_request(body, sent.dialog, sent.policy)
    return Reading(request, partial(ChatWriter, request))


def has_shown_results(messages: Any) -> bool:
    """Check whether results of tools hold images, as some servers of this protocol take them."""
    results = (one for one in read_list(messages, "messages") if isinstance(one, dict) and one.get("role") == "tool")
    parts = (part for one in results if isinstance(one.get("content"), list) for part in one["content"])
    return any(isinstance(part, dict) and part.get("type") == "image_url" for part in parts)


def _with_results_shown(body: dict[str, Any]) -> ChatBody:
    """Put the images of results where every model sees them, in a user's message behind the results."""
    chat = ChatBody({name: value for name, value in body.items() if name not in ("messages", "tools")})
    chat.tools = read_list(body.get("tools"), "tools")
    for index, given in enumerate(body["messages"]):
        message = read_object(given, f"messages[{index}]")
        others = {name: value for name, value in message.items() if name not in ("role", "content")}
        chat.say(str(message.get("role")), message.get("content"), f"messages[{index}]", **others)
    return chat


class ChatWriter:
    keep_alive = KEEP_ALIVE

    def __init__(self, request: ChatRequest, run: Run) -> None:
        self._includes_usage = request.include_usage
        self._object = {
            "id": f"chatcmpl-{run.dialog_id.hex}-{run.seq}-{run.after_generation}",
            "created": int(time.time()),
            "model": run.agent_id,
            "metadata": {**request.labels, "dialog_id": str(run.dialog_id)},
        }
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._thoughts: list[str] = []
        self._ended: Ended | None = None

    def begin(self) -> list[bytes]:
        return [write_event(self._chunk({"role": "assistant", "content": ""}))]

    def piece(self, piece: AnswerPiece) -> list[bytes]:
        match piece:
            case Text(text):
                self._texts.append(text)
                return [write_event(self._chunk({"content": text}))]
            case Refusal(text):
                self._refusals.append(text)
                return [write_event(self._chunk({"refusal": text}))]
            case Reasoning(text):
                self._thoughts.append(text)
                return [write_event(self._chunk({"reasoning_content": text}))]
            case Compacted():
                return []  # no field of this protocol asks for one
            case Ended():
                self._ended = piece = replace(
                    piece, finish_reason=REASONS.get(piece.finish_reason, piece.finish_reason)
                )
                return [*map(write_event, self._last_chunks(piece)), DONE]

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None, logprobs: Any = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}
        return {**self._object, "object": "chat.completion.chunk", "choices": [choice]}

    def _last_chunks(self, ended: Ended) -> list[dict[str, Any]]:
        calls = [{"index": index, **call_json(call)} for index, call in enumerate(ended.calls)]
        chunks = [self._chunk({"tool_calls": [call]}) for call in calls]
        of_message, of_answer = _fields(ended)
        chunks += [self._chunk(of_message)] if of_message else []
        chunks.append({**self._chunk({}, ended.finish_reason, _logprobs(ended)), **of_answer})
        if self._includes_usage:
            chunks.append({**chunks[-1], "choices": [], "usage": ended.usage})
        chunks[-1]["dominds"] = ended.health
        return chunks

    def failure(self, error: ApiError) -> list[bytes]:
        return [write_event(error.body)]

    def whole(self) -> dict[str, Any]:
        assert self._ended is not None
        ended, text = self._ended, "".join(self._texts)
        refusal = "".join(self._refusals) or None
        of_message, of_answer = _fields(ended)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": text or None if ended.calls or refusal else text,
            "refusal": refusal,
            **of_message,
        }
        if self._thoughts:
            message["reasoning_content"] = "".join(self._thoughts)
        if ended.calls:
            message["tool_calls"] = [call_json(call) for call in ended.calls]
        choice = {"index": 0, "message": message, "logprobs": _logprobs(ended), "finish_reason": ended.finish_reason}
        answer = {"choices": [choice], "usage": ended.usage, "dominds": ended.health}
        return {**self._object, "object": "chat.completion", **answer, **of_answer}


def _logprobs(ended: Ended) -> dict[str, Any] | None:
    """Return the answer's tokens with their probabilities, of a stream at its end, or None."""
    logprobs = ended.fields.get("logprobs")
    return {"content": None, "refusal": None, **logprobs} if logprobs else None


def _fields(ended: Ended) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the provider said of the message, and what of the whole answer."""
    of_answer = {name: value for name, value in ended.fields.items() if name != "logprobs"}
    of_message = {"annotations": of_answer.pop("annotations")} if "annotations" in of_answer else {}
    return of_message, of_answer
