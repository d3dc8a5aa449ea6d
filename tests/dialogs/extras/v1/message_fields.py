"""Fields of the types with which Anthropic's client asks for messages, ``client.beta`` included."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import anthropic.types as messages_types
import anthropic.types.beta as beta_types
from anthropic.types.beta.message_create_params import MessageCreateParamsBase as BetaMessageCreateParamsBase
from anthropic.types.message_create_params import MessageCreateParamsBase

from tests.dialogs.extras.v1.field_kinds import CACHED, HI, SCHEMA, Kind
from tests.pixels import coded, picture


def of_block(block: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}


def of_used(block: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "max_tokens": 9, "messages": [HI, {"role": "assistant", "content": [block]}, HI]}


def message_kinds() -> Iterator[Kind]:
    yield Kind(
        MessageCreateParamsBase,
        lambda fields: fields,
        {"model": "a", "messages": [HI]},
        honoured={
            "compaction": {"type": "summarize"},
            "max_tokens": 5,
            "metadata": {"user_id": "ada"},
            "output_config": {"effort": "low"},
            "stop_sequences": ["x"],
            "system": "Be brief.",
            "thinking": {"type": "adaptive"},
            "tools": [{"name": "weather", "input_schema": SCHEMA}],
        },
        refused={
            "billing_policy": {"type": "billing_policy", "bill_to": "user_profile"},
            "container": "c",
            "fallback_credit_token": "t",
            "fallbacks": [{"model": "b"}],
            "mcp_servers": [{"type": "url", "name": "a", "url": "https://example.org"}],
            "thread": {"type": "create"},
            "tool_choice": {"type": "any"},
        },
        harmless={
            **CACHED,
            "betas": ["a-2026-01-01"],
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "diagnostics": {},
            "inference_geo": "eu",
            "service_tier": "auto",
            "speed": "fast",
            "user_profile_id": "u",
            "workspace_id": "w",
        },
        also=(BetaMessageCreateParamsBase,),
    )
    bound = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    for kind, name, more in (
        (messages_types.ThinkingConfigEnabledParam, "enabled", {"budget_tokens": 2_000}),
        (messages_types.ThinkingConfigAdaptiveParam, "adaptive", {}),
    ):
        yield Kind(
            kind,
            lambda thinking: {"model": "a", "max_tokens": 9, "messages": [HI], "thinking": thinking},
            {"type": name},
            {"display": "omitted"},
            harmless={**bound, **more},
        )
    yield Kind(
        beta_types.BetaCompactionConfigParam,
        lambda compaction: {"model": "a", "max_tokens": 9, "messages": [HI], "compaction": compaction},
        {"type": "summarize"},
        refused={"instructions": "Be brief."},
    )
    yield Kind(
        beta_types.BetaContextManagementConfigParam,
        lambda management: {"model": "a", "max_tokens": 9, "messages": [HI], "context_management": management},
        {"edits": []},
    )
    yield Kind(
        messages_types.OutputConfigParam,
        lambda output: {"model": "a", "max_tokens": 9, "messages": [HI], "output_config": output},
        {},
        {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        {"task_budget": {"type": "tokens", "total": 20_000}},
    )
    yield Kind(
        messages_types.SystemMessageParam,
        lambda message: {"model": "a", "max_tokens": 9, "messages": [HI, message, HI]},
        {"role": "system", "content": "Be brief."},
        {"clear_at": "next_user_message", "output_config": {"effort": "low"}},
    )
    yield Kind(
        messages_types.UserMessageParam,
        lambda message: {"model": "a", "max_tokens": 9, "messages": [message, HI]},
        {"role": "user", "content": "Hello"},
    )
    yield Kind(
        messages_types.AssistantMessageParam,
        lambda message: {"model": "a", "max_tokens": 9, "messages": [HI, message, HI]},
        {"role": "assistant", "content": "Hello"},
    )


def message_block_kinds() -> Iterator[Kind]:
    text = {"type": "text", "text": "Hello"}
    yield Kind(messages_types.TextBlockParam, of_block, text, harmless={**CACHED, "citations": []})
    png = {"type": "base64", "media_type": "image/png", "data": coded(picture())}
    yield Kind(
        messages_types.ImageBlockParam,
        of_block,
        {"type": "image", "source": png},
        refused={"transformations": {"oversized_image": "error"}},
        harmless=CACHED,
    )
    yield Kind(
        messages_types.DocumentBlockParam,
        of_block,
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hello"}},
        {"title": "Letter"},
        {"citations": {"enabled": True}, "context": "A letter."},
        CACHED,
        also=(beta_types.BetaRequestDocumentBlockParam,),
    )
    yield Kind(
        messages_types.SearchResultBlockParam,
        of_block,
        {"type": "search_result", "source": "a.example", "title": "Weather", "content": [text]},
        refused={"citations": {"enabled": True}},
        harmless=CACHED,
        also=(beta_types.BetaSearchResultBlockParam,),
    )
    yield Kind(
        messages_types.ToolUseBlockParam,
        of_used,
        {"type": "tool_use", "id": "a", "name": "weather"},
        {"input": {"city": "Rome"}},
        {"caller": {"type": "code_execution_20260120", "tool_id": "t"}},
        {**CACHED, "toolset_name": "t"},
    )
    yield Kind(
        messages_types.ToolResultBlockParam,
        of_block,
        {"type": "tool_result", "tool_use_id": "a"},
        {"content": "12 degrees", "is_error": True},
        harmless={**CACHED, "toolset_name": "t"},
    )
    yield Kind(
        messages_types.ToolParam,
        lambda tool: {"model": "a", "max_tokens": 9, "messages": [HI], "tools": [tool]},
        {"name": "weather", "input_schema": SCHEMA},
        {
            "defer_loading": True,
            "description": "Tells it.",
            "input_examples": [{"city": "Rome"}],
            "strict": True,
        },
        {"allowed_callers": ["code_execution_20260120"], "type": "code_execution_20260120"},
        {**CACHED, "eager_input_streaming": True},
    )


def message_tool_kinds() -> Iterator[Kind]:
    """Tools whose schemas Anthropic's models know, and clients run."""
    for types, kind, name, more in (
        ((messages_types.ToolBash20250124Param, beta_types.BetaToolBash20241022Param), "bash_20250124", "bash", {}),
        (
            (messages_types.ToolTextEditor20250124Param, beta_types.BetaToolTextEditor20241022Param),
            "text_editor_20250124",
            "str_replace_editor",
            {},
        ),
        ((messages_types.ToolTextEditor20250429Param,), "text_editor_20250429", "str_replace_based_edit_tool", {}),
        (
            (messages_types.ToolTextEditor20250728Param,),
            "text_editor_20250728",
            "str_replace_based_edit_tool",
            {"max_characters": 9_000},  # the client cuts what it shows
        ),
        ((messages_types.MemoryTool20250818Param,), "memory_20250818", "memory", {}),
    ):
        yield Kind(
            types[0],
            lambda tool: {"model": "a", "max_tokens": 9, "messages": [HI], "tools": [tool]},
            {"type": kind, "name": name},
            {"defer_loading": True, "input_examples": [{"command": "view"}], "strict": True},
            {"allowed_callers": ["code_execution_20260120"]},
            {**CACHED, **more},
            also=types[1:],
        )


def in_beta(kind: Kind) -> Kind:
    """Judge the type of the same name under ``client.beta``, which has more fields, alike."""
    name = f"Beta{kind.type.__name__}"
    others = [getattr(beta_types, name)] if hasattr(beta_types, name) else []
    return replace(kind, also=(*kind.also, *others))
