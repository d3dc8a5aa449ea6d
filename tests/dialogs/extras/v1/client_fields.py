"""What becomes of each field that the official clients can send: honoured, refused by its name, or harmless."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import anthropic.types as messages_types
import anthropic.types.beta as beta_types
from anthropic.types.beta.message_create_params import MessageCreateParamsBase as BetaMessageCreateParamsBase
from anthropic.types.message_create_params import MessageCreateParamsBase
from openai.types import chat, responses
from openai.types.chat.chat_completion_content_part_image_param import ImageURL
from openai.types.chat.chat_completion_content_part_param import File, FileFile
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses import response_input_item_param as items
from openai.types.responses.namespace_tool_param import NamespaceToolParam
from openai.types.responses.namespace_tool_param import ToolFunction as NamespacedFunction
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from openai.types.responses.response_input_item_param import AdditionalTools, FunctionCallOutput, Message
from openai.types.shared_params import FunctionDefinition, Reasoning

from dialogs.extras.v1.messages.request import chat_request_of
from dialogs.extras.v1.parsing import ChatRequest, chat_request
from dialogs.extras.v1.responses.request import read
from dialogs.extras.v1.wire import Sent
from dialogs.models import ApiKey
from tests.pixels import coded, picture

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
IMAGE = f"data:image/png;base64,{coded(picture())}"
TEXT = "data:text/plain;base64,SGVsbG8="
CALL = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
HI = {"role": "user", "content": "Hi"}
SKILL = {"name": "ships", "path": "/skills/ships", "description": "Counts ships."}
BREAKS = {"prompt_cache_breakpoint": {"type": "explicit"}}
CACHED = {"cache_control": {"type": "ephemeral"}}


def of_response(body: dict[str, Any]) -> ChatRequest:
    return read(Sent(body, "", "", cast(ApiKey, None))).request


@dataclass(frozen=True)
class Kind:
    """``always_given`` is the least of its objects, and ``body`` a request that holds one. The other fields have values
    that ask for something. ``also`` are types of the same objects elsewhere in the client."""

    type: Any
    body: Callable[[dict[str, Any]], dict[str, Any]]
    always_given: Mapping[str, Any]
    honoured: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, Any] = field(default_factory=dict)
    harmless: Mapping[str, Any] = field(default_factory=dict)
    reader: Callable[[dict[str, Any]], ChatRequest] = chat_request
    also: tuple[Any, ...] = ()

    @property
    def types(self) -> tuple[Any, ...]:
        return (self.type, *self.also)

    def beside(self, name: str) -> list[Any]:
        """Return what a list always holds."""
        value = self.always_given.get(name)
        return value if isinstance(value, list) else []

    def read(self, **more: Any) -> ChatRequest:
        return self.reader(self.body({**self.always_given, **more}))


def of_chat(message: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "messages": [message, HI]}


def of_chat_tool(function: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "messages": [HI], "tools": [{"type": "function", "function": function}]}


def of_chat_part(part: dict[str, Any]) -> dict[str, Any]:
    return of_chat({"role": "user", "content": [part]})


def of_item(item: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "input": [item, HI]}


def of_input(part: dict[str, Any]) -> dict[str, Any]:
    return of_item({"role": "user", "content": [part]})


def of_block(block: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}


def of_used(block: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "max_tokens": 9, "messages": [HI, {"role": "assistant", "content": [block]}, HI]}


def chat_message_kinds() -> Iterator[Kind]:
    yield Kind(
        CompletionCreateParamsBase,
        lambda fields: fields,
        {"model": "a", "messages": [HI]},
        honoured={
            "frequency_penalty": 0.5,
            "logit_bias": {"5": 1},
            "max_completion_tokens": 5,
            "max_tokens": 5,
            "metadata": {"a": "b"},
            "parallel_tool_calls": False,
            "presence_penalty": 0.5,
            "reasoning_effort": "low",
            "response_format": {"type": "json_object"},
            "safety_identifier": "ada",
            "seed": 1,
            "service_tier": "flex",
            "stop": "x",
            "store": False,
            "stream_options": {"include_usage": True},
            "temperature": 0.5,
            "tools": [{"type": "function", "function": {"name": "weather"}}],
            "top_p": 0.5,
            "user": "ada",
            "verbosity": "low",
        },
        refused={
            "audio": {"voice": "alloy", "format": "wav"},
            "function_call": "auto",
            "functions": [{"name": "a"}],
            "logprobs": True,
            "modalities": ["text", "audio"],
            "moderation": {"model": "a"},
            "n": 2,
            "prediction": {"type": "content", "content": "a"},
            "tool_choice": "required",
            "top_logprobs": 2,
            "web_search_options": {},
        },
        harmless={
            "prompt_cache_key": "a",
            "prompt_cache_options": {"mode": "explicit"},
            "prompt_cache_retention": "24h",
        },
    )
    for kind, role in (
        (chat.ChatCompletionUserMessageParam, "user"),
        (chat.ChatCompletionSystemMessageParam, "system"),
        (chat.ChatCompletionDeveloperMessageParam, "developer"),
    ):
        yield Kind(kind, of_chat, {"role": role, "content": "Hello"}, {"name": "Ada"})
    yield Kind(
        chat.ChatCompletionAssistantMessageParam,
        of_chat,
        {"role": "assistant"},
        {"content": "Hello", "refusal": "No.", "tool_calls": [CALL]},
        {"audio": {"id": "a"}, "function_call": {"name": "a", "arguments": "{}"}},
        {"name": "helper"},
    )
    result = {"role": "tool", "tool_call_id": "a"}
    yield Kind(chat.ChatCompletionToolMessageParam, of_chat, result, {"content": "12 degrees"})


def chat_part_kinds() -> Iterator[Kind]:
    text = {"type": "text", "text": "Hello"}
    yield Kind(chat.ChatCompletionContentPartTextParam, of_chat_part, text, harmless=BREAKS)
    image = {"type": "image_url", "image_url": {"url": IMAGE}}
    yield Kind(chat.ChatCompletionContentPartImageParam, of_chat_part, image, harmless=BREAKS)
    yield Kind(
        ImageURL, lambda url: of_chat_part({"type": "image_url", "image_url": url}), {"url": IMAGE}, {"detail": "low"}
    )
    file = {"type": "file", "file": {"file_data": TEXT}}
    yield Kind(File, of_chat_part, file, harmless=BREAKS)
    yield Kind(
        FileFile,
        lambda file: of_chat_part({"type": "file", "file": file}),
        {"file_data": TEXT},
        {"filename": "a.txt"},
        harmless={"file_id": "a"},  # beside the file itself
    )
    yield Kind(
        FunctionDefinition,
        of_chat_tool,
        {"name": "weather"},
        {"description": "Tells it.", "parameters": SCHEMA, "strict": True},
    )
    yield Kind(
        chat.ChatCompletionFunctionToolParam,
        lambda tool: {"model": "a", "messages": [HI], "tools": [tool]},
        {"type": "function", "function": {"name": "weather"}},
    )


def response_kinds() -> Iterator[Kind]:
    yield Kind(
        ResponseCreateParamsBase,
        lambda fields: fields,
        {"model": "a", "input": [HI]},
        honoured={
            "instructions": "Be brief.",
            "max_output_tokens": 5,
            "metadata": {"a": "b"},
            "parallel_tool_calls": False,
            "reasoning": {"effort": "low"},
            "safety_identifier": "ada",
            "service_tier": "flex",
            "store": False,
            "temperature": 0.5,
            "text": {"verbosity": "low"},
            "tools": [{"type": "function", "name": "weather"}],
            "top_p": 0.5,
            "user": "ada",
        },
        refused={
            "access_programs": ["a"],
            "background": True,
            "background_options": {"a": 1},
            "conversation": "c",
            "max_tool_calls": 3,
            "moderation": {"model": "a"},
            "prompt": {"id": "p"},
            "image": {"a": 1},
            "include": ["message.output_text.logprobs"],
            "tool_choice": "required",
            "top_logprobs": 2,
        },
        harmless={
            "context_management": [{"type": "compaction"}],  # what comes first is no part of the request itself
            "previous_response_id": None,
            "prompt_cache_key": "a",
            "prompt_cache_options": {"mode": "explicit"},
            "prompt_cache_retention": "24h",
            "stream_options": {"include_obfuscation": False},
            "truncation": "auto",
        },
    )
    yield Kind(
        Reasoning,
        lambda reasoning: {"model": "a", "input": "Hi", "reasoning": reasoning},
        {},
        {"effort": "low", "summary": "auto", "generate_summary": "auto"},
        {"mode": "pro"},
        {"context": "all_turns"},
    )
    yield Kind(
        responses.ResponseTextConfigParam,
        lambda text: {"model": "a", "input": "Hi", "text": text},
        {},
        {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}, "verbosity": "low"},
    )


def response_item_kinds() -> Iterator[Kind]:
    message = {"type": "message", "role": "assistant", "content": "Hello"}
    marks = {"phase": "commentary", "status": "completed", "id": "m"}
    for kind in (responses.EasyInputMessageParam, Message, responses.ResponseOutputMessageParam):
        has = {name: value for name, value in marks.items() if name in kind.__annotations__}
        yield Kind(kind, of_item, message, harmless=has)
    called = {"call_id": "a", "name": "weather", "id": "i"}
    meant = {"async": True, "caller": {"type": "program", "caller_id": "p"}}
    yield Kind(
        responses.ResponseFunctionToolCallParam,
        of_item,
        {"type": "function_call", "arguments": "{}", **called},
        {"namespace": "files"},
        meant,
        {"status": "completed"},
    )
    yield Kind(
        responses.ResponseCustomToolCallParam,
        of_item,
        {"type": "custom_tool_call", "input": "a", **called},
        {"namespace": "files"},
        meant,
    )
    output = {"call_id": "a", "output": "12 degrees"}
    beside = {"caller": {"type": "direct"}, "id": "i", "name": "weather", "namespace": "files", "status": "completed"}
    yield Kind(FunctionCallOutput, of_item, {"type": "function_call_output", **output}, harmless=beside)
    custom = {name: beside[name] for name in ("caller", "id")}
    yield Kind(
        responses.ResponseCustomToolCallOutputParam,
        of_item,
        {"type": "custom_tool_call_output", **output},
        harmless=custom,
    )
    tools = {"type": "additional_tools", "tools": [{"type": "function", "name": "weather"}]}
    yield Kind(AdditionalTools, of_item, tools, harmless={"id": "i", "role": "developer"})


def response_part_kinds() -> Iterator[Kind]:
    text = {"type": "input_text", "text": "Hello"}
    of_results = (responses.ResponseInputTextContentParam,)
    yield Kind(responses.ResponseInputTextParam, of_input, text, harmless=BREAKS, also=of_results)
    yield Kind(
        responses.ResponseInputImageParam,
        of_input,
        {"type": "input_image", "image_url": IMAGE},
        {"detail": "low"},
        harmless={"file_id": "a", **BREAKS},
        also=(responses.ResponseInputImageContentParam,),
    )
    yield Kind(
        responses.ResponseInputFileParam,
        of_input,
        {"type": "input_file", "file_data": TEXT},
        {"filename": "a.txt"},
        {"detail": "high"},
        {"file_id": "a", "file_url": "https://example.org/a", **BREAKS},
        also=(responses.ResponseInputFileContentParam,),
    )
    yield Kind(
        responses.ResponseOutputTextParam,
        lambda part: of_item({"role": "assistant", "content": [part]}),
        {"type": "output_text", "text": "Hello"},
        harmless={"annotations": [{"type": "url_citation"}], "logprobs": [{"token": "a"}]},
    )
    offered = {"allowed_callers": ["programmatic"], "async": True}
    for kind, name, more in (
        (responses.FunctionToolParam, "function", {"parameters": SCHEMA, "strict": True}),
        (responses.CustomToolParam, "custom", {"format": {"type": "grammar", "syntax": "lark", "definition": "s: x"}}),
    ):
        yield Kind(
            kind,
            lambda tool: {"model": "a", "input": "Hi", "tools": [tool]},
            {"type": name, "name": "weather"},
            {"description": "Tells it.", **more},
            offered,
            {"defer_loading": True} | ({"output_schema": SCHEMA} if name == "function" else {}),
            also=(NamespacedFunction,) if name == "function" else (),
        )
    yield Kind(
        NamespaceToolParam,
        lambda tool: {"model": "a", "input": "Hi", "tools": [tool]},
        {"type": "namespace", "name": "files", "tools": [{"type": "function", "name": "read"}]},
        harmless={"description": "What has to do with files."},
    )


def response_shell_kinds() -> Iterator[Kind]:
    """Tools that OpenAI's models know by their types and clients run, with their calls and outputs."""
    for kind, name in ((responses.FunctionShellToolParam, "shell"), (responses.ApplyPatchToolParam, "apply_patch")):
        yield Kind(
            kind,
            lambda tool: {"model": "a", "input": "Hi", "tools": [tool]},
            {"type": name},
            {"environment": {"type": "local", "skills": [SKILL]}} if name == "shell" else {},
            {"allowed_callers": ["programmatic"]},
        )
    marks = {"id": "i", "status": "completed"}
    meant = {"caller": {"type": "program", "caller_id": "p"}}
    commands = {"action": {"commands": ["ls"]}}
    yield Kind(
        items.ShellCall,
        of_item,
        {"type": "shell_call", "call_id": "a", **commands},
        refused=meant,
        harmless={**marks, "environment": {"type": "local"}},
    )
    lines = [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}]
    yield Kind(
        items.ShellCallOutput,
        of_item,
        {"type": "shell_call_output", "call_id": "a", "output": lines},
        harmless={**marks, "caller": {"type": "direct"}, "max_output_length": 99},
    )
    patch = {"operation": {"type": "delete_file", "path": "a.txt"}}
    yield Kind(
        items.ApplyPatchCall,
        of_item,
        {"type": "apply_patch_call", "call_id": "a", **patch},
        refused=meant,
        harmless=marks,
    )
    yield Kind(
        items.ApplyPatchCallOutput,
        of_item,
        {"type": "apply_patch_call_output", "call_id": "a"},
        {"output": "There is no such file.", "status": "failed"},
        harmless={"id": "i", "caller": {"type": "direct"}},
    )
    yield Kind(
        items.LocalShellCall,
        of_item,
        {"type": "local_shell_call", "call_id": "a", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        harmless=marks,
    )
    yield Kind(
        items.LocalShellCallOutput,
        of_item,
        {"type": "local_shell_call_output", "id": "a", "output": "a.txt"},
        harmless={"status": "completed"},
    )


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


PROTOCOLS = (
    (chat_request, (*chat_message_kinds(), *chat_part_kinds())),
    (of_response, (*response_kinds(), *response_item_kinds(), *response_part_kinds(), *response_shell_kinds())),
    (chat_request_of, tuple(map(in_beta, (*message_kinds(), *message_block_kinds(), *message_tool_kinds())))),
)
KINDS = {kind.type.__name__: replace(kind, reader=reader) for reader, kinds in PROTOCOLS for kind in kinds}
# Objects in fields that are read, whose own fields need no judgement, and why.
_WHOLE = "read whole, and checked by those whose tests are about it"
_THINKING = "what the model thought is in the dialog, and comes back unread"
_THEIRS = "programs send OpenAI's own tools along with theirs; refused where there are no others"
_LOOKED_UP = "what was found stands in the answer behind it, which is read"
_SEEN_TO = "the runtime prunes results and keeps no thinking of older turns, in its own way"
UNREAD: dict[str, str] = {
    **dict.fromkeys(("ResponseFormatText", "ResponseFormatJSONSchema", "ResponseFormatJSONObject"), _WHOLE),
    **dict.fromkeys(("ResponseFormatTextJSONSchemaConfigParam", "JSONOutputFormatParam"), _WHOLE),
    **dict.fromkeys(("BetaJSONOutputFormatParam", "InputSchemaTyped", "MetadataParam", "BetaMetadataParam"), _WHOLE),
    **dict.fromkeys(("ChatCompletionStreamOptionsParam", "ChatCompletionMessageFunctionToolCallParam"), _WHOLE),
    **dict.fromkeys(("ChatCompletionContentPartRefusalParam", "ResponseOutputRefusalParam"), _WHOLE),
    **dict.fromkeys(("Text", "Grammar", "PlainTextSourceParam", "BetaPlainTextSourceParam"), _WHOLE),
    **dict.fromkeys(("Base64ImageSourceParam", "BetaBase64ImageSourceParam"), _WHOLE),
    **dict.fromkeys(("ToolReferenceBlockParam", "BetaToolReferenceBlockParam"), _WHOLE),
    **dict.fromkeys(("ThinkingConfigDisabledParam", "BetaThinkingConfigDisabledParam"), _WHOLE),
    **dict.fromkeys(("ThinkingConfigBetweenToolsParam", "BetaThinkingConfigBetweenToolsParam"), _WHOLE),
    **dict.fromkeys(("BetaCompact20260112EditParam", "BetaCompactionBlockParam"), _WHOLE),
    "BetaSystemMessageOutputConfigParam": _WHOLE,
    "ResponseCompactionItemParamParam": _WHOLE,
    **dict.fromkeys(("ThinkingBlockParam", "RedactedThinkingBlockParam", "ResponseReasoningItemParam"), _THINKING),
    **dict.fromkeys(("BetaThinkingBlockParam", "BetaRedactedThinkingBlockParam"), _THINKING),
    **dict.fromkeys(("ResponseFunctionWebSearchParam", "ToolSearchCall"), _LOOKED_UP),
    "ResponseToolSearchOutputItemParamParam": _LOOKED_UP,
    **dict.fromkeys(("BetaClearToolUses20250919EditParam", "BetaClearThinking20251015EditParam"), _SEEN_TO),
    **dict.fromkeys(("FileSearchToolParam", "ComputerToolParam", "ComputerUsePreviewToolParam"), _THEIRS),
    **dict.fromkeys(("WebSearchToolParam", "WebSearchPreviewToolParam", "Mcp", "CodeInterpreter"), _THEIRS),
    **dict.fromkeys(("ProgrammaticToolCalling", "ImageGeneration", "ToolSearchToolParam"), _THEIRS),
    **dict.fromkeys(("LocalShell", "LocalEnvironmentParam", "ShellCallAction", "LocalShellCallAction"), _WHOLE),
    **dict.fromkeys(("ApplyPatchCallOperationCreateFile", "ApplyPatchCallOperationDeleteFile"), _WHOLE),
    **dict.fromkeys(("ApplyPatchCallOperationUpdateFile", "ResponseFunctionShellCallOutputContentParam"), _WHOLE),
}
