"""The record of a request on its generation's row: enough to build the request again, byte for byte, from turns,
rewrites and parts that are stored once. The record holds no text of the request. The text of guidance is stored
nowhere, only the version and the values of its prompt.
"""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from dialogs.context.client import client_of
from dialogs.context.model_calls import ModelCall
from dialogs.context.reminder_statements import as_rows
from dialogs.context.request import Prepared
from dialogs.context.sizes import parts_tokens
from dialogs.models import Dialog, Generation
from dominds.llm.messages import chars_of
from dominds.llm.models.model import ModelInfo
from dominds.llm.models.traits import traits_of
from remediation.prompts import Use, uses_of


class Category(StrEnum):
    """The categories of a request's pieces, in order. Rows store sizes by place, so a new one comes last."""

    INSTRUCTIONS = "instructions"
    TOOLS = "tools"
    SUMMARY = "summary and ledger"
    MESSAGES = "messages"
    RESULTS = "tool results"
    REMINDERS = "reminders"
    RECALLED = "recalled"
    GUIDANCE = "guidance"
    IMAGES = "images"


CHARS_PER_TOKEN = 4  # assumed for requests that were not counted, and for the tokens of images

StoredUse = tuple[str, str, str]  # name and version of a prompt, and the digest of the part that holds its values
UNKNOWN: StoredUse = ("", "", "")  # stands for a text that was not rendered from a prompt


class Part(NamedTuple):
    """The text of a part, and the dialog that it belongs to; None if dialogs share it."""

    dialog_id: UUID | None
    text: str


@dataclass(frozen=True, slots=True)
class Sent:
    """The record of one request. ``digest`` is the SHA-256 of the body as it went out.

    ``position`` is that of the view's last turn, ``messages`` the number of messages of the whole view.
    ``instructions``, ``tools``, ``traits`` and ``statements`` are digests of parts. ``system`` are the client's system
    messages in the middle: how many messages stand before each, and the digest of its part; ``as_user`` if the model
    takes none there. ``recalled`` are those of ``Recall.passages``. ``results_left_out`` and ``units_left_out`` are
    those of ``LeftOut``. ``sizes`` are characters by category, without zeros at the end; an image counts as four
    characters per token.
    """

    digest: str = ""
    epoch: int = 0
    position: int = 0
    messages: int = 0
    instructions: str = ""
    tools: str = ""
    traits: str = ""
    statements: str = ""
    system: tuple[tuple[int, str], ...] = ()
    as_user: bool = False
    goes_on: bool = False
    recalled: tuple[tuple[int, ...], ...] = ()
    nudge: tuple[StoredUse, ...] = ()
    guidance: tuple[StoredUse, ...] = ()
    called: str = ""  # the tool that the request asks for in words
    force: str = ""
    output: int | None = None
    sizes: tuple[int, ...] = ()
    results_left_out: tuple[int, ...] = ()
    units_left_out: tuple[int, ...] = ()

    @property
    def stored(self) -> str:
        """Return the values as a JSON text, without empty ones at the end. By name, and as the database's own JSON,
        they took twice as many bytes of each row.
        """
        values = [_short(getattr(self, name)) if name in _DIGESTS else getattr(self, name) for name in _PLACES]
        while values and not values[-1]:
            values.pop()
        return orjson.dumps(values).decode()

    @classmethod
    def of(cls, stored: str | Mapping[str, Any] | None) -> "Sent":
        """Read a row's column. Older rows hold values by name, and calls that are not recorded hold nothing."""
        if not isinstance(stored, str):
            return cls(**{name: _freeze(value) for name, value in (stored or {}).items() if name in _PLACES})
        given = zip(_PLACES, orjson.loads(stored), strict=False)
        values: dict[str, Any] = {name: _long(value) if name in _DIGESTS else _freeze(value) for name, value in given}
        return cls(**values)


# The order of the values in a row. Stored rows must stay readable, so new names are added at the end.
_PLACES = (
    "digest",
    "position",
    "messages",
    "sizes",
    "instructions",
    "tools",
    "traits",
    "output",
    "epoch",
    "statements",
    "recalled",
    "system",
    "as_user",
    "goes_on",
    "nudge",
    "guidance",
    "called",
    "force",
    "results_left_out",
    "units_left_out",
)
_DIGESTS = frozenset({"digest", "instructions", "tools", "traits", "statements"})


def _short(digest: str) -> str:
    """Write a digest in base64, without its padding."""
    return urlsafe_b64encode(bytes.fromhex(digest)).rstrip(b"=").decode()


def _long(digest: str) -> str:
    return urlsafe_b64decode(digest + "=" * (-len(digest) % 4)).hex()


def _freeze(value: Any) -> Any:
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


def record_request(
    dialog: Dialog, call: ModelCall, prepared: Prepared, model: ModelInfo, body: bytes
) -> tuple[Sent, Mapping[str, Part]]:
    """Return the record of a request, with the parts that it names, by digest."""
    view, request, once = call.view, prepared.request, prepared.once
    parts: dict[str, Part] = {}

    def part(text: str, *, of_dialog: bool = client_of(dialog) is not None) -> str:
        """Add a part. A client of ``/v1`` may bring anything, so all parts of its requests belong to the dialog."""
        if not text:
            return ""
        digest = _digest_of(text, str(dialog.pk) if of_dialog else "")
        parts[digest] = Part(dialog.pk if of_dialog else None, text)
        return digest

    def uses(text: str) -> tuple[StoredUse, ...]:
        stored = tuple((use.name, use.version, part(_values(use), of_dialog=True)) for use in uses_of(text))
        return stored or ((UNKNOWN,) if text else ())

    stated = orjson.dumps(as_rows(prepared.statements)).decode() if prepared.statements else ""
    sizes = {
        Category.INSTRUCTIONS: len(request.instructions) + chars_of(item.message for item in prepared.system),
        Category.TOOLS: len(prepared.offered) if request.tools else 0,
        Category.SUMMARY: view.summary_chars,
        Category.MESSAGES: view.chars - view.summary_chars - view.result_chars,
        Category.RESULTS: view.result_chars,
        Category.REMINDERS: chars_of(statement.message for statement in prepared.statements),
        Category.RECALLED: len(once.recalled),
        Category.GUIDANCE: sum(map(len, once.texts)) - len(once.recalled),
        Category.IMAGES: parts_tokens(request.with_parts, model) * CHARS_PER_TOKEN,
    }
    sent = Sent(
        digest=hashlib.sha256(body).hexdigest(),
        epoch=request.epoch,
        position=view.position,
        messages=view.left_out.messages or len(view.messages),
        instructions=part(request.instructions),
        tools=part(prepared.offered),
        traits=part(traits_of(model)),
        statements=part(stated, of_dialog=True),
        system=tuple((item.at, part(item.text)) for item in prepared.system),
        as_user=any(item.as_user for item in prepared.system),
        goes_on=once.goes_on,
        recalled=call.recalled.passages,
        nudge=uses(once.nudge),
        guidance=uses(once.guidance),
        called=once.called,
        force=request.force or "",
        output=request.max_output_tokens,
        sizes=_without_last_zeros([sizes[category] for category in Category]),
        results_left_out=view.left_out.results,
        units_left_out=view.left_out.units,
    )
    return sent, parts


def _without_last_zeros(sizes: list[int]) -> tuple[int, ...]:
    """Drop zeros at the end, to keep rows short: most requests have at most four categories."""
    while sizes and not sizes[-1]:
        sizes.pop()
    return tuple(sizes)


def _digest_of(text: str, owner: str) -> str:
    return hashlib.blake2b(f"{owner}\0{text}".encode(), digest_size=16).hexdigest()


def _values(use: Use) -> str:
    return orjson.dumps(use.values).decode() if use.values else ""


def sizes_of(sent: Sent) -> dict[Category, int]:
    """Return characters by category; empty for rows stored before there were sizes."""
    return dict(zip(Category, (*sent.sizes, *[0] * len(Category)), strict=False)) if sent.sizes else {}


def est_tokens_of(generation: Generation) -> int:
    """Return the estimated tokens of a prompt: as pages showed them before it was sent, as counted or by length."""
    return generation.est_tokens or generation.est_prompt_tokens or generation.request_chars // CHARS_PER_TOKEN


def parts_named_by(sent: Sent) -> set[str]:
    values = {values for _, _, values in (*sent.nudge, *sent.guidance)}
    system = {text for _, text in sent.system}
    return {sent.instructions, sent.tools, sent.traits, sent.statements, *system, *values} - {""}


def split_by_chars(chars: dict[Category, int], tokens: int) -> dict[Category, int]:
    """Split ``tokens`` by category in proportion to characters; the parts sum up exactly."""
    all_chars = sum(chars.values())
    shares: dict[Category, int] = {}
    chars_so_far = tokens_so_far = 0
    for category, size in chars.items():
        chars_so_far += size
        upto = tokens * chars_so_far // all_chars if all_chars else 0
        shares[category] = upto - tokens_so_far
        tokens_so_far = upto
    return shares
