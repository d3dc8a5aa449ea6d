"""OpenAI's Responses API, used without state: the provider stores nothing, and we send encrypted reasoning back."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dominds import budgets
from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.headers import openai_exchange
from dominds.llm.json_text import arguments_text, dump, is_whole
from dominds.llm.messages import ANY_TOOL, NO_TOOL, ImagePart, Message, Part, Request, Role, ToolCall, ToolSpec
from dominds.llm.models.dialects import RESPONSES
from dominds.llm.models.model import MODALITIES, Forcing, Form, ImageBounds, ModelInfo, PartSizes, ProviderKind
from dominds.llm.models.params import in_body
from dominds.llm.providers.echoes import Called, Opaque, Owner, Piece, Spoken, replay
from dominds.llm.providers.listed_window import listed_window
from dominds.llm.providers.outgoing import fit, form_of
from dominds.llm.providers.parts import data_url, ends_with_files, in_order, refuse_unseen
from dominds.llm.providers.reading import (
    AnswerReader,
    Complained,
    arguments_in,
    is_failure,
    is_plain_end,
    objects_of,
    spoken_in,
    text_inside,
    whole_number,
)
from dominds.llm.providers.wire import WireStream
from dominds.llm.stream import FinishReason, StreamEvent, ToolCallDelta
from dominds.llm.usage import Shares, UsageReport, UsageUnavailable, first_of, part, usage_from

MODELS_WITHOUT_REASONING = ("gpt-3", "gpt-4", "chatgpt-4")  # they refuse requests for encrypted reasoning
OPENAI_HOST = "api.openai.com"
LEAST_OUTPUT_TOKENS = 16  # OpenAI refuses less


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """A provider that speaks the Responses API at ``endpoint``."""

    endpoint: Endpoint
    model: ModelInfo

    def stream(self, request: Request) -> WireStream:
        refuse_unseen(request, self.model)
        owner = Owner.of(self.model.provider_id, request.model, self.endpoint.key, request.epoch)
        body = dump(request_body(request, owner, self.model))
        exchange = openai_exchange(
            self.endpoint, "/responses", body, is_openai=True, has_files=ends_with_files(request)
        )
        # OpenAI's own models never write thinking into the answer's text.
        is_thinking = urlsplit(self.endpoint.base_url).hostname != OPENAI_HOST
        return WireStream(exchange, ResponsesReader(request, owner, is_thinking=is_thinking), self.endpoint)


def connect(model: ModelInfo, key: str) -> OpenAIResponses:
    return OpenAIResponses(Endpoint(model.base_url, key), model)


OPENAI = ProviderKind(
    "openai",
    connect,
    label="OpenAI (Responses)",
    takes_several_system=True,
    embeds=True,
    forcing=Forcing.ALLOWED,
    max_tokens_field="max_output_tokens",
    params=RESPONSES,
    form=Form(most_tools=128),
    modalities=MODALITIES,
    part_sizes=PartSizes(patch=32, most_patches=2500, page=3000),
    # From developers.openai.com, "Images and vision". OpenAI also takes 50 MB of images, which is more than a worker
    # should hold unless the operator says so.
    image_bounds=ImageBounds(most=500),
    loaded_window=listed_window,
)


def request_body(request: Request, owner: Owner, model: ModelInfo) -> dict[str, Any]:
    request = fit(request, form_of(model))
    body: dict[str, Any] = {
        "model": request.model,
        "input": [item for message in request.messages for item in _items(message, owner)],
        "stream": True,
        "store": False,
        **in_body(model.model_params),
    }
    included = [] if request.model.startswith(MODELS_WITHOUT_REASONING) else ["reasoning.encrypted_content"]
    included += ["message.output_text.logprobs"] if body.pop("logprobs", False) else []
    if included:
        body["include"] = included
    if request.instructions:
        body["instructions"] = request.instructions
    if request.conversation:
        body["prompt_cache_key"] = request.conversation
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.force == NO_TOOL:
            body["tool_choice"] = "none"
        elif request.force and model.forcing is not Forcing.NONE:
            body["tool_choice"] = _choice(request.force, model.forcing)
            body.update(model.thinking_off)
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = max(LEAST_OUTPUT_TOKENS, request.max_output_tokens)
    return body


def _choice(name: str, forcing: Forcing) -> Any:
    if name == ANY_TOOL:
        return "required"
    named = {"type": "function", "name": name}
    match forcing:
        case Forcing.ALLOWED:
            return {"type": "allowed_tools", "mode": "required", "tools": [named]}
        case Forcing.REQUIRED:
            return "required"
        case _:
            return named


def _items(message: Message, owner: Owner) -> Iterator[dict[str, Any]]:
    match message.role:
        case Role.SYSTEM:
            yield {"role": "developer", "content": message.text}
        case Role.USER:
            yield {"role": "user", "content": _content(message) if message.parts else message.text}
        case Role.TOOL:
            yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": message.text}
        case Role.ASSISTANT:
            yield from _answer(message, owner)


def _content(message: Message) -> list[dict[str, Any]]:
    return [*map(_part, in_order(message))]


def _part(given: str | Part) -> dict[str, Any]:
    if isinstance(given, str):
        return {"type": "input_text", "text": given}
    if isinstance(given, ImagePart):
        detail = {"detail": given.detail} if given.detail else {}
        return {"type": "input_image", "image_url": data_url(given), **detail}
    return {"type": "input_file", "filename": given.name, "file_data": data_url(given)}


def _answer(message: Message, owner: Owner) -> Iterator[dict[str, Any]]:
    """Write text and calls, with reasoning in its old place. Reasoning at the end is dropped, since it is refused."""
    waiting: list[dict[str, Any]] = []
    for piece in replay(owner, message):
        match piece:
            case Opaque(item):
                waiting.append(item)
            case ToolCall():
                yield from (*waiting, _call(piece))
                waiting = []
            case text:
                yield from (*waiting, {"role": "assistant", "content": text})
                waiting = []


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = arguments_text(call.arguments)
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": tool.strict,
    }


class ResponsesReader(AnswerReader):
    """A reader of events up to ``response.completed`` or ``response.incomplete``, or of a whole response."""

    def __init__(self, request: Request, owner: Owner, *, is_thinking: bool = True) -> None:
        super().__init__(request, owner, is_thinking=is_thinking)
        self._items: list[dict[str, Any]] = []
        self._places: dict[Any, int] = {}  # indices in ``_items``, by an item's id and by its output index
        self._done: set[int] = set()  # indices of items that are complete
        self._said: list[str] = []
        self._has_said_part = False

    def read_document(self, document: dict[str, Any]) -> Iterable[StreamEvent]:
        match document.get("type"):
            case "response.output_text.delta":
                return self._say(document.get("delta"))
            case "response.refusal.delta":
                return self._refuse(text_inside(document.get("delta")))
            case "response.output_text.done" | "response.refusal.done" | "response.content_part.done":
                return self._end_part(document.get("part") or document)
            case "response.function_call_arguments.delta":
                piece = arguments_in(document.get("delta"))
                item = self._item_at(document)
                item["arguments"] = arguments_in(item.get("arguments")) + piece
                return (ToolCallDelta(piece),)
            case "response.function_call_arguments.done":
                item = self._item_at(document)
                item.update({name: document[name] for name in ("name", "arguments") if document.get(name)})
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self.think(text_inside(document.get("delta")))
            case "response.reasoning_summary_part.added" if document.get("summary_index"):
                return self.think("\n\n")
            case "response.content_part.added":
                self._has_said_part = False
            case "response.output_item.added" | "response.output_item.done" as kind:
                self._has_said_part = False
                if given := document.get("item"):
                    self._put(document, _as_call(given), is_done=kind.endswith("done"))
            case "response.completed" | "response.incomplete" | "response.done" as kind:
                self.note_counts(document.get("usage"))
                return self._end(document.get("response") or {}, kind)
            case "response.failed" | "response.cancelled" | "error":
                raise Complained(document)
            case _ if document.get("object") == "response":
                return self._end(document, "")
        return ()

    def _say(self, content: Any) -> list[StreamEvent]:
        text = text_inside(content)
        self._said.append(text)
        self._has_said_part = self._has_said_part or bool(text)
        return self.read_content(content)

    def _refuse(self, text: str) -> list[StreamEvent]:
        self._said.append(text)
        self._has_said_part = self._has_said_part or bool(text)
        return self.refuse(text)

    def _end_part(self, part: dict[str, Any]) -> list[StreamEvent]:
        """Take the text of a whole part if no pieces of it came, since some servers send none."""
        if self._has_said_part:
            return []
        return self._say(part["text"]) if part.get("text") else self._refuse(text_inside(part.get("refusal")))

    def _put(self, document: dict[str, Any], item: dict[str, Any], *, is_done: bool) -> None:
        """Put the newest state of an item in the place where the item began."""
        places = _places_of(document, item)
        known = [self._places[place] for place in places if place in self._places]
        if not places and self._items:
            known = [len(self._items) - 1]
        at = next((at for at in known if self._goes_on(at, item, is_done=is_done)), None)
        if at is None:
            at = len(self._items)
            self._items.append({})
            budgets.CALLS.check(len(self._items) // 4)  # items of text and reasoning stand between calls
        self._places |= dict.fromkeys(places, at)
        before = self._items[at].get("arguments")  # pieces of arguments may come before their item
        self._items[at] = {**item, "arguments": before} if before and not item.get("arguments") else dict(item)
        if is_done:
            self._done.add(at)

    def _goes_on(self, at: int, item: dict[str, Any], *, is_done: bool) -> bool:
        """Check whether an item continues the one at this place, since some servers number all items 0."""
        known = self._items[at]
        if known == item:
            return bool(item.get("call_id") or item.get("id") or at not in self._done)
        if known.get("type") != item.get("type") or at in self._done:
            return False
        if item.get("type") != "function_call" or not (known.get("name") or known.get("call_id")):
            return True
        name = "call_id" if known.get("call_id") and item.get("call_id") else "id"
        if known.get(name) and item.get(name) and known[name] != item[name]:
            return False
        before, after = arguments_in(known.get("arguments")), arguments_in(item.get("arguments"))
        return after.startswith(before) if is_done and after else not is_whole(before) or is_done

    def _item_at(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the call that a piece of arguments belongs to: the one that the event names, or else the newest."""
        places = _places_of(document, {"id": document.get("item_id")})
        at = next((self._places[place] for place in places if place in self._places), None)
        if at is not None:
            return self._items[at]
        if places or not self._items or self._items[-1].get("type") != "function_call":
            self._put(document, {"type": "function_call", "id": document.get("item_id")}, is_done=False)
        return self._items[-1]

    def _end(self, response: dict[str, Any], kind: str) -> list[StreamEvent]:
        status, details = str(response.get("status") or ""), response.get("incomplete_details")
        if response.get("error") or is_failure(status):
            raise Complained(
                {"response": response} if response.get("error") else {"message": f"the response is {status}"}
            )
        output = response.get("output") or response.get("output_text")
        output = [{"type": "message", "content": output}] if isinstance(output, str) else objects_of(output)
        output = list(map(_as_call, output))
        if _wholeness(output) >= _wholeness(self._items):
            self._items = output or self._items  # some servers end without the output, or with a part of it
        elif others := [item for item in output if item.get("type") != "function_call"]:
            self._items = [*others, *_calls_in(self._items)]
        self.note_counts(response.get("usage"))
        self.note_fields(response)
        parts = (part for item in self._items for part in _parts_of(item) if isinstance(part, dict))
        if logprobs := [one for part in parts for one in objects_of(part.get("logprobs"))]:
            budgets.LOGPROBS.check(len(logprobs))
            self.fields["logprobs"] = {"content": logprobs}
        self.has_ended = self.is_done = True
        if details or kind == "response.incomplete":
            self.note_end(details.get("reason") if isinstance(details, dict) else details)
            self.note_end("" if self.end else "incomplete")
        elif not is_plain_end(status) and status.lower() != "in_progress":
            self.note_end(status)
        return self._say_rest()

    def _say_rest(self) -> list[StreamEvent]:
        """Take the text that was not streamed from the whole answer: some servers stream a part of it, or nothing."""
        text, said = "".join(map(_text_of, self._items)), "".join(self._said)
        thoughts = [] if said else [text_inside(item) for item in self._items if item.get("type") == "reasoning"]
        events = self.think("\n\n".join(filter(None, thoughts)) if not self.has_thought else "")
        if said.strip() and said in text and not text.startswith(said):  # the beginning was not streamed
            return [*events, *self.take_back(), *self._end_with(text)]
        return events + (self._end_with(text[len(said) :]) if text.startswith(said) else [])

    def _end_with(self, text: str) -> list[StreamEvent]:
        """Take the end of the answer, and of that the refusal apart."""
        parts = [part for item in self._items for part in _parts_of(item) if isinstance(part, dict)]
        refusal = "".join(text_inside(part) for part in parts if part.get("type") == "refusal")
        refusal = text if refusal.endswith(text) else refusal if text.endswith(refusal) else ""
        return [*self._say(text.removesuffix(refusal)), *self._refuse(refusal)]

    def calls(self) -> list[ToolCall]:
        return [
            ToolCall(str(item.get("call_id") or ""), str(item.get("name") or ""), arguments_in(item.get("arguments")))
            for item in _calls_in(self._items)
        ]

    def usage(self) -> UsageReport:
        return usage_of(self.counts or None)

    def pieces(self) -> Iterator[Piece]:
        """Yield whole items of reasoning, with the places of text and calls between them."""
        for item in self._items:
            match item.get("type", "message"):
                case "reasoning":
                    yield Opaque({key: value for key, value in item.items() if key != "status"})
                case "message":
                    yield Spoken(len(_text_of(item)))
                case "function_call":
                    yield Called()

    def _reason(self, calls: list[ToolCall], *, has_answer: bool) -> FinishReason:
        reason = super()._reason(calls, has_answer=has_answer)
        return FinishReason.REFUSAL if self.has_refused and reason is FinishReason.STOP else reason


def _places_of(document: dict[str, Any], item: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the fields by which an event names its item."""
    named = {"id": item.get("id"), "output_index": whole_number(document.get("output_index"))}
    return [(name, value) for name, value in named.items() if value not in (None, "")]


def _as_call(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item that calls a tool with the type ``function_call``, since some servers have other types for it."""
    if item.get("type") == "function_call" or not (item.get("name") and item.get("call_id")):
        return item
    return {**item, "type": "function_call", "arguments": item.get("arguments", item.get("input"))}


def _calls_in(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (item for item in items if item.get("type") == "function_call")


def _wholeness(items: list[dict[str, Any]]) -> tuple[int, int]:
    """Return how many calls are complete, and how many there are."""
    calls = list(_calls_in(items))
    return sum(bool(call.get("name")) and is_whole(arguments_in(call.get("arguments"))) for call in calls), len(calls)


def _parts_of(item: dict[str, Any]) -> list[Any]:
    content = item.get("content") if item.get("type", "message") == "message" else None
    return content if isinstance(content, list) else [content]


def _text_of(item: dict[str, Any]) -> str:
    return "".join(text for part in _parts_of(item) for text, is_thought in spoken_in(part) if not is_thought)


def usage_of(reported: Any) -> UsageReport:
    """Read the counts. In this format ``input_tokens`` includes cached tokens, and ``output_tokens`` reasoning."""
    if not isinstance(reported, dict):
        return UsageUnavailable()
    shares = Shares(
        cache_read=part(reported, "input_tokens_details", "cached_tokens"),
        cache_write=part(reported, "input_tokens_details", "cache_write_tokens"),
        reasoning=part(reported, "output_tokens_details", "reasoning_tokens"),
    )
    return usage_from(
        first_of(reported, "input_tokens", "prompt_tokens"),
        first_of(reported, "output_tokens", "completion_tokens"),
        reported.get("total_tokens"),
        shares,
    )
