"""Requests that were sent, rebuilt from rows and compared with the hash of the sent bytes, and the request that would
be sent next."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from django.utils.functional import cached_property

from dialogs.context.client import SystemMessage
from dialogs.context.config import prompts_folder
from dialogs.context.images import sendable, with_image_bytes
from dialogs.context.limits import catalog
from dialogs.context.reminder_statements import Statement, Statements, in_order, interleave
from dialogs.context.request import Once, messages_of, prepare, tools_in
from dialogs.context.retrieval.recall import PushRecall
from dialogs.context.retrieval.text_index import TURN_COLUMNS, passages_of_turn
from dialogs.context.sent import Category, Sent, StoredUse, parts_named_by, sizes_of
from dialogs.context.view import units_at
from dialogs.models import Dialog, Generation, RequestPart, Turn
from dialogs.runtime.materials import materials_of
from dialogs.runtime.next_call import answer
from dominds.llm.catalog.catalog import ModelInfo, UnknownModel
from dominds.llm.connect import key_of
from dominds.llm.messages import ImagePart, Message, Request, Role, chars_of
from dominds.llm.models.traits import kind_in, version_in, with_traits
from dominds.llm.provider import AuthFailed, ProviderError
from dominds.llm.providers.kinds import kind_named
from dominds.version import VERSION
from remediation.context import STAND_INS, Unit, Units
from remediation.prompts import PromptError, Use, refill
from remediation.recall.recall import render
from remediation.strategies.left_out import LeftOut, without

NOT_KEPT = "this call was made before Dominds kept what its requests are made of"
SIDE_CALL = "it was a call to shorten texts; what it was shown is not kept with the call, only its hash"
ELSEWHERE = "its guidance came from a policy beside Dominds and is stored nowhere"
CHANGED = "a row that it was made of cannot be read as it was, or the key of its provider is another one now"


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a request. Guidance has no text here, only its size and the ``prompts`` with their versions.
    ``turns`` are the ``seq`` of the turns that it stands for.
    """

    category: Category
    label: str
    text: str
    chars: int
    turns: tuple[int, ...] = ()
    prompts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request in pieces. ``digest`` is the SHA-256 of the sent bytes.

    ``differs`` says why the pieces are not the whole request. It is empty if the rebuilt request equals the sent one
    byte for byte.
    """

    digest: str
    pieces: tuple[Piece, ...] = ()
    differs: str = ""


def sent_request(generation: Generation) -> SentRequest:
    """Rebuild a request. The generation must be read with its ``dialog``."""
    if not generation.sent:
        return SentRequest("", differs=NOT_KEPT)
    sent = Sent.of(generation.sent)
    if not sent.traits:
        return SentRequest(sent.digest, differs=SIDE_CALL)
    made = _Made(generation, sent)
    return SentRequest(sent.digest, tuple(made.pieces()), made.differs)


class _Made:
    """A rebuilt request. ``gone`` lists, in words for people, parts that can no longer be read."""

    def __init__(self, generation: Generation, sent: Sent) -> None:
        self.generation, self.sent, self.gone = generation, sent, list[str]()
        named = RequestPart.objects.in_bulk(parts_named_by(sent))
        self._parts = {digest: part.text for digest, part in named.items()}
        self.instructions, self.offered = self._part(sent.instructions), self._part(sent.tools) or "[]"
        self.statements = _statements(self._part(sent.statements))
        self.system = [SystemMessage(at, self._part(text), sent.as_user) for at, text in sent.system]
        shown = _first(units_at(generation.dialog_id, generation.base, sent.position), sent.messages)
        self.units = without(shown, LeftOut(sent.results_left_out, sent.units_left_out))
        self.once = Once(
            sent.goes_on, self._recall_text(), self._fill(sent.nudge), self._fill(sent.guidance), sent.called
        )

    def _part(self, digest: str) -> str:
        if digest and digest not in self._parts:
            self.gone.append("a part of it is no longer stored")
        return self._parts.get(digest, "")

    def _recall_text(self) -> str:
        if not self.sent.recalled:
            return ""
        rows = Turn.objects.filter(dialog=self.generation.dialog_id, seq__in={turn for turn, *_ in self.sent.recalled})
        passages = (passage for row in rows.values_list(*TURN_COLUMNS, named=True) for passage in passages_of_turn(row))
        by_place = {(passage.turn, passage.part): passage for passage in passages}
        return render(
            replace(by_place[turn, part], superseded=tuple(zip(marks[::2], marks[1::2], strict=True)))
            for turn, part, *marks in self.sent.recalled
            if (turn, part) in by_place
        )

    def _fill(self, uses: tuple[StoredUse, ...]) -> str:
        if not uses:
            return ""
        if not all(name for name, _, _ in uses):
            self.gone.append(ELSEWHERE)
            return ""
        prompts = [Use(name, version, _values(self._part(values))) for name, version, values in uses]
        try:
            return refill(prompts, prompts_folder())
        except PromptError as error:
            self.gone.append(str(error))
            return ""

    @cached_property
    def request(self) -> Request:
        sent, messages = self.sent, tuple(message for unit in self.units for message in unit.messages)
        return Request(
            model=self.generation.model,
            instructions=self.instructions,
            messages=interleave(sendable(messages, self._model)[0], in_order(self.system, self.statements))
            + messages_of(self.once),
            tools=tools_in(self.offered),
            force=sent.force or None,
            max_output_tokens=sent.output,
            epoch=sent.epoch,
            conversation=str(self.generation.dialog_id),
        )

    @property
    def differs(self) -> str:
        """Return why the rebuilt request differs from the sent one; empty if it does not."""
        if self.gone:
            return "; ".join(dict.fromkeys(self.gone))
        try:
            body = (
                self._model.kind.connect(self._model, _key(self._model))
                .stream(with_image_bytes(self.request, self.generation.dialog_id))
                .body
            )
        except ProviderError as error:
            return str(error)
        if hashlib.sha256(body).hexdigest() == self.sent.digest:
            return ""
        by = version_in(self._parts[self.sent.traits])
        return CHANGED if by == VERSION else f"Dominds {by} sent it, and {VERSION or 'this one'} may write it otherwise"

    @cached_property
    def _model(self) -> ModelInfo:
        """Return the model as it was at the time of the call."""
        generation, traits = self.generation, self._parts[self.sent.traits]
        kind = kind_named(kind_in(traits))
        try:
            now = catalog().model(generation.provider, generation.model)
        except UnknownModel:
            now = ModelInfo(generation.provider, generation.model, generation.model, kind)
        return with_traits(now if now.kind.name == kind.name else replace(now, kind=kind), traits)

    def pieces(self) -> Iterator[Piece]:
        recalled = tuple(dict.fromkeys(turn for turn, *_ in self.sent.recalled))
        between = in_order(self.system, self.statements)
        yield from pieces_of(self.instructions, self.offered, between, self.units, self.once, recalled)
        uses = (*self.sent.nudge, *self.sent.guidance)
        if chars := sizes_of(self.sent).get(Category.GUIDANCE):
            prompts = tuple(f"{name} {version}" for name, version, _ in uses)
            yield Piece(Category.GUIDANCE, "Guidance", "", chars, prompts=prompts)


def next_request(dialog: Dialog) -> tuple[Piece, ...]:
    """Return the pieces of the request that would be sent now. Raises ``Refusal`` and ``UnknownModel``."""
    materials = materials_of(dialog)
    call = answer(dialog, materials, "", "", PushRecall(dialog, materials.view))
    prepared = prepare(dialog, materials.served.model, call)
    between = in_order(prepared.system, prepared.statements)
    instructions, units = prepared.request.instructions, materials.view.units
    return tuple(pieces_of(instructions, prepared.offered, between, units, prepared.once, call.recalled.turns))


def pieces_of(
    instructions: str,
    offered: str,
    between: Iterable[SystemMessage | Statement],
    units: Units,
    once: Once,
    recalled: Sequence[int],
) -> Iterator[Piece]:
    """Yield the pieces of a request in their order, without guidance, which is never shown."""
    if instructions:
        yield _piece(Category.INSTRUCTIONS, "Instructions", instructions)
    for tool in orjson.loads(offered):
        yield Piece(Category.TOOLS, tool[0], _tool_text(tool), len(orjson.dumps(tool)))
    yield from _conversation(units, list(between))
    for text in once.texts:
        if text == once.recalled:
            yield _piece(Category.RECALLED, "Recalled", text, tuple(recalled))


def _tool_text(tool: Sequence[Any]) -> str:
    """Return a tool's description, and below it its parameters."""
    _name, description, *rest = tool
    return "\n\n".join((str(description), *(orjson.dumps(part, option=orjson.OPT_INDENT_2).decode() for part in rest)))


def _conversation(units: Units, waiting: list[SystemMessage | Statement]) -> Iterator[Piece]:
    """Yield the messages of the view, with the system messages and reminders between them."""
    before = 0
    for unit in units:
        for message in unit.messages:
            while waiting and waiting[0].at <= before:
                yield _piece_between(waiting.pop(0))
            before += 1
            yield from _pieces_of(message, unit)
    yield from map(_piece_between, waiting)


def _piece_between(item: SystemMessage | Statement) -> Piece:
    if isinstance(item, SystemMessage):
        return _piece(Category.INSTRUCTIONS, "System message", item.message.text)
    return _piece(Category.REMINDERS, "Reminders", item.message.text)


def _pieces_of(message: Message, unit: Unit) -> Iterator[Piece]:
    is_stand_in = unit.kind in STAND_INS
    category = Category.RESULTS if message.role is Role.TOOL else Category.MESSAGES
    calls = (f"{call.name}({call.arguments})" for call in message.tool_calls)
    images = [part for part in message.parts if isinstance(part, ImagePart)]
    if message.text or message.tool_calls or not images:
        yield Piece(
            Category.SUMMARY if is_stand_in else category,
            "Stands for what was removed" if is_stand_in else LABELS[message.role],
            "\n".join(filter(None, (message.text, *calls))),
            chars_of((message,)),
            unit.source,
        )
    for image in images:
        yield Piece(Category.IMAGES, "Image", f"[{image.label}]", 0, unit.source)


LABELS = {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool result"}


def _piece(category: Category, label: str, text: str, turns: tuple[int, ...] = ()) -> Piece:
    return Piece(category, label, text, len(text), turns)


def _statements(text: str) -> Statements:
    rows = orjson.loads(text or "[]")
    return tuple(Statement(at, lines, not place) for place, (at, lines) in enumerate(rows))


def _values(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in orjson.loads(text or "[]"))


def _first(units: Units, messages: int) -> Units:
    """Return the units that hold the first ``messages`` messages."""
    kept = list[Unit]()
    for unit in units:
        if messages <= 0:
            break
        messages -= len(unit.messages)
        kept.append(unit)
    return tuple(kept)


def _key(model: ModelInfo) -> str:
    try:
        return key_of(model)
    except AuthFailed:
        return ""
