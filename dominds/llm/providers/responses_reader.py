"""Reader of the answers of OpenAI's Responses API."""

from collections.abc import Iterable, Iterator
from typing import Any

from dominds import budgets
from dominds.llm.messages import Request, ToolCall
from dominds.llm.providers.contents import arguments_in, objects_of, text_inside
from dominds.llm.providers.echoes import Called, Opaque, Owner, Piece, Spoken
from dominds.llm.providers.ends import is_failure, is_plain_end
from dominds.llm.providers.events import Complained
from dominds.llm.providers.reading import AnswerReader
from dominds.llm.providers.responses_items import ItemAssembly, OutputItem
from dominds.llm.stream import FinishReason, StreamEvent, ToolCallDelta
from dominds.llm.usage import Shares, UsageReport, UsageUnavailable, first_of, part, usage_from


class ResponsesReader(AnswerReader):
    """A reader of events up to ``response.completed`` or ``response.incomplete``, or of a whole response."""

    def __init__(self, request: Request, owner: Owner, *, is_thinking: bool = True) -> None:
        super().__init__(request, owner, is_thinking=is_thinking)
        self._items = ItemAssembly()
        self._said: list[str] = []
        self._has_said_part = False  # whether pieces of the present part came

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
                self._items.call_of(document).arguments.append(piece)
                return (ToolCallDelta(piece),)
            case "response.function_call_arguments.done":
                item = self._items.call_of(document)
                if name := document.get("name"):
                    item.fields = {**item.fields, "name": name}
                if arguments := arguments_in(document.get("arguments")):
                    item.arguments = [arguments]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self.think(text_inside(document.get("delta")))
            case "response.reasoning_summary_part.added" if document.get("summary_index"):
                return self.think("\n\n")
            case "response.content_part.added":
                self._has_said_part = False
            case "response.output_item.added" | "response.output_item.done" as kind:
                self._has_said_part = False
                if given := document.get("item"):
                    item = OutputItem.of(given)
                    item.is_done = kind.endswith("done")
                    self._items.put(document, item)
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

    def _end(self, response: dict[str, Any], kind: str) -> list[StreamEvent]:
        status, details = str(response.get("status") or ""), response.get("incomplete_details")
        if response.get("error") or is_failure(status):
            raise Complained(
                {"response": response} if response.get("error") else {"message": f"the response is {status}"}
            )
        output = response.get("output") or response.get("output_text")
        output = [{"type": "message", "content": output}] if isinstance(output, str) else objects_of(output)
        self._items.settle(output)
        self.note_counts(response.get("usage"))
        self.note_fields(response)
        if logprobs := [one for part in self._parts() for one in objects_of(part.get("logprobs"))]:
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
        text, said = "".join(item.text for item in self._items), "".join(self._said)
        thoughts = [] if said else [text_inside(item.fields) for item in self._items if item.kind == "reasoning"]
        events = self.think("\n\n".join(filter(None, thoughts)) if not self.has_thought else "")
        if said.strip() and said in text and not text.startswith(said):  # the beginning was not streamed
            return [*events, *self.take_back(), *self._end_with(text)]
        return events + (self._end_with(text[len(said) :]) if text.startswith(said) else [])

    def _end_with(self, text: str) -> list[StreamEvent]:
        """Take the end of the answer, and of that the refusal apart."""
        refusal = "".join(text_inside(part) for part in self._parts() if part.get("type") == "refusal")
        refusal = text if refusal.endswith(text) else refusal if text.endswith(refusal) else ""
        return [*self._say(text.removesuffix(refusal)), *self._refuse(refusal)]

    def _parts(self) -> list[dict[str, Any]]:
        return [part for item in self._items for part in item.parts if isinstance(part, dict)]

    def calls(self) -> list[ToolCall]:
        return [item.call for item in self._items if item.is_call]

    def usage(self) -> UsageReport:
        return usage_of(self.counts or None)

    def pieces(self) -> Iterator[Piece]:
        """Yield whole items of reasoning, with the places of text and calls between them."""
        for item in self._items:
            match item.kind:
                case "reasoning":
                    yield Opaque({key: value for key, value in item.fields.items() if key != "status"})
                case "message":
                    yield Spoken(len(item.text))
                case "function_call":
                    yield Called()

    def _reason(self, calls: list[ToolCall], *, has_answer: bool) -> FinishReason:
        reason = super()._reason(calls, has_answer=has_answer)
        return FinishReason.REFUSAL if self.has_refused and reason is FinishReason.STOP else reason


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
