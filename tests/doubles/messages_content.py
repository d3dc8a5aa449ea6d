"""What Anthropic's Messages API refuses in the messages of a request.

No source quotes the words for a system message behind an answer, or before a user's turn; they are ours.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.doubles import images
from tests.doubles.binding import THINKING, blocks_of
from tests.doubles.messages_family import MessagesRequest
from tests.doubles.messages_rules import THINKING_DOCS
from tests.doubles.rules import Offence, Rule

ID = re.compile(r"[a-zA-Z0-9_-]+")


def _system_first(request: MessagesRequest) -> Offence:
    return {} if request.body["messages"][0]["role"] == "system" else None


def _answer_first(request: MessagesRequest) -> Offence:
    return {} if request.body["messages"][0]["role"] == "assistant" else None


def _systems(request: MessagesRequest) -> Iterator[int]:
    return (at for at, message in enumerate(request.body["messages"]) if message["role"] == "system")


def _system_unknown(request: MessagesRequest) -> Offence:
    return None if request.family.has_systems else next(({"at": at} for at in _systems(request)), None)


def _system_before_user(request: MessagesRequest) -> Offence:
    after = {at + 1 for at in _systems(request)}
    text = enumerate(request.body["messages"])
    return next(({"at": at - 1} for at, message in text if at in after and message["role"] == "user"), None)


def _system_misplaced(request: MessagesRequest) -> Offence:
    messages = request.body["messages"]
    return next(({"at": at} for at in _systems(request) if messages[at - 1]["role"] == "assistant"), None)


def _prefill(request: MessagesRequest) -> Offence:
    return {} if not request.family.has_prefill and request.body["messages"][-1]["role"] == "assistant" else None


def _no_content(request: MessagesRequest) -> Offence:
    last = len(request.body["messages"]) - 1
    for at, message in enumerate(request.body["messages"]):
        if not blocks_of(message["content"]) and not (at == last and message["role"] == "assistant"):
            return {"at": at}
    return None


def _texts(request: MessagesRequest) -> Iterator[str]:
    for block in [*blocks_of(request.body.get("system")), *(block for _, _, block, _ in request.blocks)]:
        if block.get("type") == "text":
            yield block["text"]


def _empty_text(request: MessagesRequest) -> Offence:
    return {} if "" in _texts(request) else None


def _blank_text(request: MessagesRequest) -> Offence:
    return {} if any(not text.strip() for text in _texts(request)) else None


def _no_result(request: MessagesRequest) -> Offence:
    """Results come in the next message, before anything else."""
    messages = request.body["messages"]
    for at, message in enumerate(messages):
        used = [block["id"] for block in blocks_of(message["content"]) if block["type"] == "tool_use"]
        following = blocks_of(messages[at + 1]["content"]) if at + 1 < len(messages) else []
        results = [block.get("tool_use_id") for block in following[: len(used)]]
        if missing := [call for call in used if call not in results]:
            return {"at": at, "ids": ", ".join(missing)}
    return None


def _no_use(request: MessagesRequest) -> Offence:
    messages = request.body["messages"]
    for at, position, block, _ in request.blocks:
        before = blocks_of(messages[at - 1]["content"]) if at else []
        if block["type"] == "tool_result" and block["tool_use_id"] not in [b.get("id") for b in before]:
            return {"at": at, "position": position, "id": block["tool_use_id"]}
    return None


def _bad_use(request: MessagesRequest) -> Iterator[tuple[str, int, int]]:
    for at, position, block, _ in request.blocks:
        if block["type"] == "tool_use" and not isinstance(block.get("input"), dict):
            yield "input", at, position
        if block["type"] == "tool_use" and not ID.fullmatch(str(block.get("id"))):
            yield "id", at, position


def _bad_input(request: MessagesRequest) -> Offence:
    return next(({"at": at, "position": position} for what, at, position in _bad_use(request) if what == "input"), None)


def _bad_id(request: MessagesRequest) -> Offence:
    return next(({"at": at, "position": position} for what, at, position in _bad_use(request) if what == "id"), None)


def _marked_thinking(request: MessagesRequest) -> Offence:
    for at, position, block, _ in request.blocks:
        if block["type"] in THINKING and "cache_control" in block:
            return {"at": at, "position": position, "type": block["type"]}
    return None


def _breakpoints(request: MessagesRequest) -> Offence:
    marked = [*(request.body.get("tools") or ()), *blocks_of(request.body.get("system"))]
    count = sum("cache_control" in block for block in [*marked, *(block for _, _, block, _ in request.blocks)])
    return {"count": count} if count > 4 else None


def _unthinking_round(request: MessagesRequest) -> Offence:
    """With a budget, the answer whose calls are open begins with thinking."""
    messages = request.body["messages"]
    at = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=None)
    if request.thinking != "enabled" or at is None:
        return None
    blocks = blocks_of(messages[at]["content"])
    is_open = at == len(messages) - 1 or any(block["type"] == "tool_use" for block in blocks)
    return {"at": at, "type": blocks[0]["type"]} if is_open and blocks[0]["type"] not in THINKING else None


def _sources(request: MessagesRequest) -> Iterator[dict[str, Any]]:
    for at, position, block, _ in request.blocks:
        if block["type"] == "image":
            image = images.image_in(block)
            yield {
                "at": at,
                "position": position,
                "image": image,
                "stated": (block.get("source") or {}).get("media_type"),
            }


def _first_image(request: MessagesRequest, offends: Callable[[images.Seen], bool]) -> Offence:
    for result in _sources(request):
        image = result["image"]
        if image is not None and offends(image):
            return {**result, "found": image.found_type, "size": len(image.data)}
    return None


def _no_source(request: MessagesRequest) -> Offence:
    return next((result for result in _sources(request) if result["image"] is None), None)


def _image_type(request: MessagesRequest) -> Offence:
    return _first_image(request, lambda image: image.problem == "type")


def _image_base64(request: MessagesRequest) -> Offence:
    return _first_image(request, lambda image: image.problem == "base64")


def _long_image(request: MessagesRequest) -> Offence:
    return _first_image(request, lambda image: len(image.data) > images.MOST_BASE64)


def _broken_image(request: MessagesRequest) -> Offence:
    return _first_image(request, lambda image: image.problem == "broken")


def _mistaken_image(request: MessagesRequest) -> Offence:
    return _first_image(request, lambda image: not image.problem and image.found_type != image.media_type)


def _large_image(request: MessagesRequest) -> Offence:
    return _first_image(request, lambda image: max(image.width, image.height) > images.MOST_PIXELS)


def _too_many_images(request: MessagesRequest) -> Offence:
    most = images.MOST_OF_SMALL_WINDOWS if request.family.window <= images.SMALL_WINDOW else images.MOST
    count = sum(1 for _ in _sources(request))
    return {"count": count, "most": most} if count > most else None


def _large_of_many(request: MessagesRequest) -> Offence:
    if sum(1 for _ in _sources(request)) <= images.MANY:
        return None
    return _first_image(request, lambda image: max(image.width, image.height) > images.MOST_PIXELS_OF_MANY)


CONTENT = (
    Rule(
        "system first", _system_first, "messages.0: use the top-level 'system' parameter for the initial system prompt"
    ),
    Rule("answer first", _answer_first, 'messages: first message must use the "user" role'),
    Rule("system unknown", _system_unknown, "role 'system' is not supported on this model"),
    Rule("system misplaced", _system_misplaced, "messages.{at}: a `system` message must follow a user turn"),
    Rule(
        "system before a user",
        _system_before_user,
        "messages.{at}: a `system` message must precede an assistant turn or be last",
    ),
    Rule(
        "no content",
        _no_content,
        "messages.{at}: all messages must have non-empty content except for the optional final assistant message",
    ),
    Rule("empty text", _empty_text, "messages: text content blocks must be non-empty"),
    Rule("blank text", _blank_text, "messages: text content blocks must contain non-whitespace text"),
    Rule("input", _bad_input, "messages.{at}.content.{position}.tool_use.input: Input should be a valid dictionary"),
    Rule("id", _bad_id, "messages.{at}.content.{position}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
    Rule("image source", _no_source, "messages.{at}.content.{position}.image.source: Field required"),
    Rule(
        "image type",
        _image_type,
        "messages.{at}.content.{position}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', "
        "'image/gif' or 'image/webp'",
    ),
    Rule("image base64", _image_base64, "messages.{at}.content.{position}.image.source.base64: invalid base64 data"),
    Rule(
        "long image",
        _long_image,
        "messages.{at}.content.{position}.image.source.base64: image exceeds 5 MB maximum: {size} bytes > 5242880 "
        "bytes",
    ),
    Rule("broken image", _broken_image, "Could not process image"),
    Rule(
        "mistaken image",
        _mistaken_image,
        "messages.{at}.content.{position}.image.source.base64.data: The image was specified using the {stated} media "
        "type, but the image appears to be a {found} image",
    ),
    Rule(
        "large image",
        _large_image,
        "messages.{at}.content.{position}.image.source.base64.data: At least one of the image dimensions exceed max "
        "allowed size: 8000 pixels",
    ),
    Rule("too many images", _too_many_images, "Too much media: 0 document pages + {count} images > {most}"),
    Rule(
        "large image of many",
        _large_of_many,
        "messages.{at}.content.{position}.image.source.base64.data: At least one of the image dimensions exceed max "
        "allowed size for many-image requests: 2000 pixels",
    ),
    Rule(
        "use without result",
        _no_result,
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each "
        "`tool_use` block must have a corresponding `tool_result` block in the next message.",
    ),
    Rule(
        "result without use",
        _no_use,
        "messages.{at}.content.{position}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each "
        "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
    ),
    Rule(
        "prefill",
        _prefill,
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    ),
    Rule(
        "marked thinking",
        _marked_thinking,
        "messages.{at}.content.{position}.{type}.cache_control: Extra inputs are not permitted",
    ),
    Rule("breakpoints", _breakpoints, "A maximum of 4 blocks with cache_control may be provided. Found {count}."),
    Rule(
        "round without thinking",
        _unthinking_round,
        f"messages.{{at}}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{{type}}`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost "
        "set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. "
        f"To avoid this requirement, disable `thinking`. Please consult our documentation at {THINKING_DOCS}",
    ),
)
