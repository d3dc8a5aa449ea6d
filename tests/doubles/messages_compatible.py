"""Clouds that speak Anthropic's Messages beside their own dialect, as the catalog ships DeepSeek and Zhipu.

They sign nothing and bind nothing. DeepSeek's words are quoted (github.com/OEvortex/aether/issues/31, April 2026),
those of its other refusals are of its OpenAI dress, and Zhipu's are those of ``chat_families``.
"""

from tests.doubles.binding import THINKING, blocks_of
from tests.doubles.chat_families import NO_EFFORT
from tests.doubles.messages_family import BUDGET, Family, MessagesRequest
from tests.doubles.rules import Offence, Rule, too_long

UNSTATED = "unstated"  # it thinks where a request says nothing of it


def _missing_thinking(request: MessagesRequest) -> Offence:
    if request.thinking == "disabled":
        return None
    for message in request.body["messages"]:
        kinds = {block["type"] for block in blocks_of(message["content"])}
        if "tool_use" in kinds and not kinds & set(THINKING):
            return {}
    return None


def _forced(request: MessagesRequest) -> Offence:
    return {} if request.choice in ("any", "tool") else None


def _forced_while_thinking(request: MessagesRequest) -> Offence:
    return None if request.thinking == "disabled" else _forced(request)


def _idle_effort(request: MessagesRequest) -> Offence:
    effort = (request.body.get("output_config") or {}).get("effort")
    return {} if effort and request.thinking == "disabled" else None


def _no_room(request: MessagesRequest) -> Offence:
    tokens, asked, window = request.prompt_tokens, request.body.get("max_tokens", 0), request.family.window
    result = {"total": tokens + asked, "tokens": tokens, "asked": asked, "window": window}
    return result if result["total"] > window else None


def _family(name: str, maximum: int, rules: tuple[Rule, ...]) -> Family:
    return Family(
        name,
        (UNSTATED, "enabled", "disabled"),
        maximum=maximum,
        has_sampling=BUDGET.has_sampling,
        has_prefill=True,
        has_systems=False,
        signs=False,
        rules=rules,
    )


COMPATIBLE = {
    family.name: family
    for family in (
        _family(
            "deepseek",
            384_000,
            (
                Rule(
                    "missing thinking",
                    _missing_thinking,
                    "The `content[].thinking` in the thinking mode must be passed back to the API.",
                ),
                Rule("forced tool", _forced_while_thinking, "Thinking mode does not support this tool_choice"),
                Rule("effort without thinking", _idle_effort, NO_EFFORT),
                Rule(
                    "no room",
                    _no_room,
                    "This model's maximum context length is {window} tokens. However, you requested {total} tokens "
                    "({tokens} in the messages, {asked} in the completion). Please reduce the length of the messages "
                    "or completion.",
                ),
            ),
        ),
        _family(
            "glm",
            131_072,
            (
                Rule("forced tool", _forced, "Tool choice must be auto"),
                Rule("too long", too_long, "Prompt exceeds max length"),
            ),
        ),
    )
}
