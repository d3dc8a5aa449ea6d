"""Answers of ``/v1/responses``: items of reasoning, text and calls, as one response or as its numbered events."""

import time
from dataclasses import dataclass, field, replace
from typing import Any

from dialogs.api.sse import KEEP_ALIVE, write_event
from dialogs.extras.v1.compacted import Compacted
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.history import Call
from dialogs.extras.v1.pieces import Ended, Reasoning, Refusal, Text
from dialogs.extras.v1.responses.stored import Place
from dialogs.extras.v1.responses.tools import Tools
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.wire import AnswerPiece

ECHOED: dict[str, Any] = {  # fields of a request that its response repeats, with what stands for those left out
    "instructions": None,
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "temperature": None,
    "top_p": None,
    "max_output_tokens": None,
    "previous_response_id": None,
    "reasoning": None,
    "text": None,
    "truncation": "disabled",
    "background": False,
    "store": True,
}
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
CALLS = ("function_call", "custom_tool_call")  # whose arguments are told by events of their own
SEALED = "dominds"  # in the place of encrypted reasoning, which comes back unread


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of text: the item and the part that hold it, and their events."""

    prefix: str
    empty: dict[str, Any]
    holder: str  # the field of an item with its parts
    index: str
    part: dict[str, Any]
    part_event: str
    text_event: str
    text: str = "text"  # the field of a part with its text
    beside: dict[str, Any] = field(default_factory=dict)


MESSAGE = Kind(
    prefix="msg",
    empty={"type": "message", "status": "in_progress", "role": "assistant"},
    holder="content",
    index="content_index",
    part={"type": "output_text", "annotations": [], "logprobs": []},
    part_event="response.content_part",
    text_event="response.output_text",
    beside={"logprobs": []},
)
REFUSAL = replace(MESSAGE, part={"type": "refusal"}, text_event="response.refusal", text="refusal", beside={})
REASONING = Kind(
    prefix="rs",
    empty={"type": "reasoning"},
    holder="summary",
    index="summary_index",
    part={"type": "summary_text"},
    part_event="response.reasoning_summary_part",
    text_event="response.reasoning_summary_text",
)


class ResponseWriter:
    keep_alive = KEEP_ALIVE

    def __init__(self, body: dict[str, Any], tools: Tools, encrypts: bool, run: Run) -> None:
        self._place, self._tools, self._encrypts = Place.of_run(run), tools, encrypts
        self._response: dict[str, Any] = {
            "id": self._place.id("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "model": run.agent_id,
            "output": [],
            "error": None,
            "incomplete_details": None,
            "usage": None,
            **{name: usual if body.get(name) is None else body[name] for name, usual in ECHOED.items()},
            "metadata": {**(body.get("metadata") or {}), "dialog_id": str(run.dialog_id)},
        }
        self._number = 0
        self._kind: Kind | None = None  # of the last item's last part, while it is under way
        self._texts: list[str] = []
        self._logprobs: list[Any] = []  # of the text that the end closes

    def begin(self) -> list[bytes]:
        return [self._event(f"response.{status}", response=self._response) for status in ("created", "in_progress")]

    def _event(self, kind: str, **content: Any) -> bytes:
        event = write_event({"type": kind, "sequence_number": self._number, **content}, event=kind)
        self._number += 1
        return event

    def piece(self, piece: AnswerPiece) -> list[bytes]:
        match piece:
            case Text(text):
                return self._text_events(MESSAGE, text)
            case Refusal(text):
                return self._text_events(REFUSAL, text)
            case Reasoning(text):
                return self._text_events(REASONING, text)
            case Compacted():
                return self._compaction_events(piece)
            case Ended():
                self._response["dominds"] = piece.health
                return self.end(piece)

    # Items

    @property
    def _here(self) -> dict[str, Any]:
        """Return the last item, for its events."""
        index = len(self._response["output"]) - 1
        return {"item_id": self._response["output"][index]["id"], "output_index": index}

    def _item_event(self, stage: str) -> bytes:
        index = len(self._response["output"]) - 1
        return self._event(f"response.output_item.{stage}", output_index=index, item=self._response["output"][index])

    def _open_item(self, prefix: str, item: dict[str, Any]) -> bytes:
        output = self._response["output"]
        output.append({"id": self._place.id(prefix, len(output)), **item})
        return self._item_event("added")

    def _text_events(self, kind: Kind, text: str) -> list[bytes]:
        events = []
        if kind is not self._kind:
            goes_on = self._kind is not None and self._kind.prefix == kind.prefix  # a refusal behind other text
            events = self._close_part() if goes_on else self._close_item()
            self._kind, self._texts = kind, []
            events += [] if goes_on else [self._open_item(kind.prefix, {**kind.empty, kind.holder: []})]
            part = {**kind.part, kind.text: ""}
            events.append(self._event(f"{kind.part_event}.added", **self._part_here(kind), part=part))
        self._texts.append(text)
        return [*events, self._event(f"{kind.text_event}.delta", **self._part_here(kind), **kind.beside, delta=text)]

    def _part_here(self, kind: Kind) -> dict[str, Any]:
        """Return the part under way, for its events."""
        return {**self._here, kind.index: len(self._response["output"][-1][kind.holder])}

    def _close_part(self) -> list[bytes]:
        """Return the end of the part under way, if there is one."""
        kind, self._kind = self._kind, None
        if kind is None:
            return []
        text = {kind.text: "".join(self._texts)}
        probable = {"logprobs": self._logprobs} if kind is MESSAGE else {}
        here, part = self._part_here(kind), {**kind.part, **text, **probable}
        self._response["output"][-1][kind.holder].append(part)
        return [
            self._event(f"{kind.text_event}.done", **here, **text, **probable),
            self._event(f"{kind.part_event}.done", **here, part=part),
        ]

    def _close_item(self) -> list[bytes]:
        """Return the end of the item under way, if there is one."""
        if not (events := self._close_part()):
            return []
        item = self._response["output"][-1]
        if "status" in item:
            item["status"] = "completed"
        elif self._encrypts:
            item["encrypted_content"] = SEALED
        return [*events, self._item_event("done")]

    def _call_events(self, call: Call) -> list[bytes]:
        item = self._tools.item(call)
        if item["type"] not in CALLS:
            opened = self._open_item("tc", {**item, "status": "in_progress"})
            self._response["output"][-1]["status"] = "completed"
            return [opened, self._item_event("done")]
        is_custom = item["type"] == "custom_tool_call"
        name, event = ("input", "custom_tool_call_input") if is_custom else ("arguments", "function_call_arguments")
        opened = self._open_item("ctc" if is_custom else "fc", {**item, name: "", "status": "in_progress"})
        self._response["output"][-1] |= {name: item[name], "status": "completed"}
        return [
            opened,
            self._event(f"response.{event}.delta", **self._here, delta=item[name]),
            self._event(f"response.{event}.done", **self._here, name=item["name"], **{name: item[name]}),
            self._item_event("done"),
        ]

    def _compaction_events(self, compacted: Compacted) -> list[bytes]:
        item = {"type": "compaction", "encrypted_content": compacted.pack()}
        return [*self._close_item(), self._open_item("cmp", item), self._item_event("done")]

    # The end

    def end(self, ended: Ended) -> list[bytes]:
        reason, fields = ended.finish_reason, ended.fields
        self._logprobs = fields.get("logprobs", {}).get("content", [])
        events = self._close_item()
        events += [event for call in ended.calls for event in self._call_events(call)]
        status = "incomplete" if reason in INCOMPLETE else "completed"
        details = {"reason": INCOMPLETE[reason]} if reason in INCOMPLETE else None
        self._response |= {"status": status, "incomplete_details": details, "usage": usage_json(ended.usage)}
        self._response |= {"service_tier": fields["service_tier"]} if "service_tier" in fields else {}
        return [*events, self._event(f"response.{status}", response=self._response)]

    def failure(self, error: ApiError) -> list[bytes]:
        problem = {"code": error.code, "message": error.message}
        self._response |= {"status": "failed", "error": problem}
        return [*self._close_item(), self._event("response.failed", response=self._response)]

    def whole(self) -> dict[str, Any]:
        return self._response


def usage_json(usage: dict[str, Any] | None) -> dict[str, Any] | None:
    """Write chat completions' counts under this protocol's names. Its shares are not optional: unknown ones are 0."""
    if usage is None:
        return None
    shares = usage.get("prompt_tokens_details", {})
    cached = {name: shares.get(name) or 0 for name in ("cached_tokens", "cache_write_tokens")}
    thought = usage.get("completion_tokens_details", {}).get("reasoning_tokens") or 0
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": cached,
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": usage["total_tokens"],
    }
