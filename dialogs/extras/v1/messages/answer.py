"""Answers of ``/v1/messages``: blocks of thinking, text and calls, as one message or as its events."""

from collections.abc import Sequence
from typing import Any

from dialogs.api.sse import write_event
from dialogs.extras.v1.compacted import Compacted
from dialogs.extras.v1.errors import ApiError, request_id
from dialogs.extras.v1.history import Call
from dialogs.extras.v1.pieces import Ended, Reasoning, Refusal, Text
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.wire import AnswerPiece
from dominds.llm.json_text import arguments_object, arguments_text

PREFIX = "msg_"
STOP_REASONS = {
    "stop": "end_turn",
    "stop_sequence": "stop_sequence",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "compaction": "compaction",
}
ERROR_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
NO_THREADS = "thread_unsupported_request"  # by this code the official clients send the whole conversation instead
SIGNATURE = "dominds"  # clients drop thinking that has none; it comes back unread
NONE_YET = {"input_tokens": 0, "output_tokens": 0}  # a message begins with counts, which its end replaces
CACHED = {"cache_read_input_tokens": "cached_tokens", "cache_creation_input_tokens": "cache_write_tokens"}
UNKNOWN: dict[str, int | None] = {"input_tokens": None, "output_tokens": None}


def error_body(error: ApiError) -> dict[str, Any]:
    kind = ERROR_TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    named = error.param is None or error.message.startswith(f"{error.param}:")
    message = error.message if named else f"{error.param}: {error.message}"
    if error.code == "context_length_exceeded":
        message = f"prompt is too long: {error.message}"  # by these words clients know it
    error_json: dict[str, Any] = {"type": kind, "message": message, "code": error.code}
    if error.code == NO_THREADS:
        error_json["details"] = {"error_code": NO_THREADS, "unsupported": ["thread"]}
    elif error.code.startswith("compaction_"):
        error_json["details"] = {"error_code": error.code}
    return {"type": "error", "error": error_json, "request_id": request_id() or None}


class MessageWriter:
    keep_alive = write_event({"type": "ping"}, event="ping")

    def __init__(self, stops: Sequence[Any], run: Run, *, has_edits: bool = False) -> None:
        self._stop = stops[0] if len(stops) == 1 else None  # of several it is not known which one was met
        self._message: dict[str, Any] = {
            "id": f"{PREFIX}{run.dialog_id.hex}_{run.seq}_{run.after_generation}",
            "type": "message",
            "role": "assistant",
            "model": run.agent_id,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": NONE_YET,
        }
        # Nothing is cleared from what a request says: the dialog's policy judges what the model sees of it.
        self._edits: dict[str, Any] = {"context_management": {"applied_edits": []}} if has_edits else {}
        self._texts: list[str] = []  # of the block under way, which is the last one
        self._kind = ""  # its kind, empty between blocks

    def begin(self) -> list[bytes]:
        return [_event("message_start", message=self._message), self.keep_alive]

    def piece(self, piece: AnswerPiece) -> list[bytes]:
        match piece:
            case Text(text) | Refusal(text):
                return self._text_events("text", text)
            case Reasoning(text):
                return self._text_events("thinking", text)
            case Compacted():
                return self._compaction_events(piece)
            case Ended():
                return self._end_events(piece)

    def _text_events(self, kind: str, text: str) -> list[bytes]:
        events = []
        if kind != self._kind:
            events = self._close_block()
            self._kind, self._texts = kind, []
            events.append(
                self._open_block({"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})})
            )
        self._texts.append(text)
        return [*events, self._delta(f"{kind}_delta", kind, text)]

    def _open_block(self, block: dict[str, Any]) -> bytes:
        self._message["content"].append(block)
        return _event("content_block_start", index=len(self._message["content"]) - 1, content_block=block)

    def _delta(self, delta: str, name: str, piece: str) -> bytes:
        index = len(self._message["content"]) - 1
        return _event("content_block_delta", index=index, delta={"type": delta, name: piece})

    def _close_block(self) -> list[bytes]:
        """Return the end of the block under way, if there is one."""
        if not self._kind:
            return []
        kind, self._kind = self._kind, ""
        block = self._message["content"][-1]
        block[kind] = "".join(self._texts)
        events = []
        if kind == "thinking":
            block["signature"] = SIGNATURE
            events.append(self._delta("signature_delta", "signature", SIGNATURE))
        return [*events, self._stop_event()]

    def _stop_event(self) -> bytes:
        return _event("content_block_stop", index=len(self._message["content"]) - 1)

    def _call_events(self, call: Call) -> list[bytes]:
        opened = self._open_block({"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
        self._message["content"][-1]["input"] = arguments_object(call.arguments)
        return [
            opened,
            self._delta("input_json_delta", "partial_json", arguments_text(call.arguments)),
            self._stop_event(),
        ]

    def _compaction_events(self, compacted: Compacted) -> list[bytes]:
        opened = self._open_block({"type": "compaction", "content": None, "encrypted_content": None})
        held = {"content": compacted.text, "encrypted_content": compacted.pack(with_text=False)}
        self._message["content"][-1] |= held
        index = len(self._message["content"]) - 1
        delta = _event("content_block_delta", index=index, delta={"type": "compaction_delta", **held})
        return [opened, delta, self._stop_event()]

    def _end_events(self, ended: Ended) -> list[bytes]:
        events = [*self._close_block(), *(event for call in ended.calls for event in self._call_events(call))]
        usage, reason = _usage(ended.usage), STOP_REASONS[ended.finish_reason]
        delta = {"stop_reason": reason, "stop_sequence": self._stop if reason == "stop_sequence" else None}
        self._message |= {**delta, "usage": usage, "dominds": ended.health, **self._edits}
        return [
            *events,
            _event("message_delta", delta=delta, usage=usage, dominds=ended.health, **self._edits),
            _event("message_stop"),
        ]

    def failure(self, error: ApiError) -> list[bytes]:
        return [write_event(error_body(error), event="error")]

    def whole(self) -> dict[str, Any]:
        return self._message


def _usage(usage: dict[str, Any] | None) -> dict[str, int | None]:
    """Translate chat completions' counts: here, what went through the cache is no part of ``input_tokens``."""
    if usage is None:
        return UNKNOWN
    shares = usage.get("prompt_tokens_details", {})
    cached = {own: shares[name] for own, name in CACHED.items() if name in shares}
    return {
        "input_tokens": max(usage["prompt_tokens"] - sum(cached.values()), 0),
        **cached,
        "output_tokens": usage["completion_tokens"],
    }


def _event(kind: str, **content: Any) -> bytes:
    return write_event({"type": kind, **content}, event=kind)
