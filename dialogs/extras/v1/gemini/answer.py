"""Answers of ``generateContent``: parts of text, thoughts and calls, as one response or as those of a stream."""

from typing import Any

from dialogs.api.sse import KEEP_ALIVE, write_event
from dialogs.extras.v1.compacted import Compacted
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.pieces import Ended, Reasoning, Refusal, Text
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.wire import AnswerPiece
from dominds.llm.json_text import arguments_object

REASONS = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    409: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
OVERFLOW = "The input token count exceeds the maximum number of tokens allowed"  # by these words clients know it


def error_body(error: ApiError) -> dict[str, Any]:
    message = error.message if error.code != "context_length_exceeded" else f"{OVERFLOW}: {error.message}"
    usual = "INTERNAL" if error.status >= 500 else "INVALID_ARGUMENT"
    about = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": error.code, "domain": "dominds"}
    details = [{**about, "metadata": {"field": error.param} if error.param else {}}]
    status = STATUSES.get(error.status, usual)
    return {"error": {"code": error.status, "message": message, "status": status, "details": details}}


class ContentWriter:
    keep_alive = KEEP_ALIVE

    def __init__(self, model: str, run: Run) -> None:
        self._response = {
            "modelVersion": model,
            "responseId": f"{run.dialog_id.hex}_{run.seq}_{run.after_generation}",
        }
        self._parts: list[dict[str, Any]] = []
        self._ended: dict[str, Any] = {}
        self._reason = ""

    def begin(self) -> list[bytes]:
        return []

    def piece(self, piece: AnswerPiece) -> list[bytes]:
        match piece:
            case Text(text) | Refusal(text):
                return self._say({"text": text})
            case Reasoning(text):
                return self._say({"text": text, "thought": True})
            case Compacted():
                return []  # no field of this protocol asks for one
            case Ended():
                return self._end(piece)

    def _say(self, part: dict[str, Any]) -> list[bytes]:
        last = self._parts[-1] if self._parts else {}
        if "text" in last and last.get("thought") == part.get("thought"):
            last["text"] += part["text"]
        else:
            self._parts.append(dict(part))
        return [write_event(self._with([part]))]

    def _end(self, ended: Ended) -> list[bytes]:
        calls = [
            {"functionCall": {"id": call.id, "name": call.name, "args": arguments_object(call.arguments)}}
            for call in ended.calls
        ]
        self._parts += calls
        self._ended = {"usageMetadata": _usage(ended.usage)} if ended.usage else {}
        self._ended["dominds"] = ended.health
        self._reason = REASONS.get(ended.finish_reason, "STOP")
        return [write_event(self._with(calls or [{"text": ""}], finishReason=self._reason) | self._ended)]

    def _with(self, parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, **more}], **self._response}

    def failure(self, error: ApiError) -> list[bytes]:
        return [write_event(error_body(error))]

    def whole(self) -> dict[str, Any]:
        return self._with(self._parts or [{"text": ""}], finishReason=self._reason) | self._ended


def _usage(usage: dict[str, Any]) -> dict[str, int]:
    """Translate chat completions' counts: here, thoughts are no part of the candidates' tokens."""
    thought = usage.get("completion_tokens_details", {}).get("reasoning_tokens") or 0
    cached = usage.get("prompt_tokens_details", {}).get("cached_tokens")
    return {
        "promptTokenCount": usage["prompt_tokens"],
        "candidatesTokenCount": usage["completion_tokens"] - thought,
        "totalTokenCount": usage["total_tokens"],
        **({"thoughtsTokenCount": thought} if thought else {}),
        **({"cachedContentTokenCount": cached} if cached is not None else {}),
    }
