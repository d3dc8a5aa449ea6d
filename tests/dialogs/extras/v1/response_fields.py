"""Fields of the types with which OpenAI's client asks for responses."""

from collections.abc import Iterator
from typing import Any, cast

from openai.types import responses
from openai.types.responses import response_input_item_param as items
from openai.types.responses.namespace_tool_param import NamespaceToolParam
from openai.types.responses.namespace_tool_param import ToolFunction as NamespacedFunction
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from openai.types.responses.response_input_item_param import AdditionalTools, FunctionCallOutput, Message
from openai.types.shared_params import Reasoning

from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.responses.request import read
from dialogs.extras.v1.wire import Sent
from dialogs.models import ApiKey
from tests.dialogs.extras.v1.field_kinds import BREAKS, HI, IMAGE, SCHEMA, SKILL, TEXT, Kind


def of_response(body: dict[str, Any]) -> ChatRequest:
    return read(Sent(body, "", "", cast(ApiKey, None))).request


def of_item(item: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "input": [item, HI]}


def of_input(part: dict[str, Any]) -> dict[str, Any]:
    return of_item({"role": "user", "content": [part]})


def response_kinds() -> Iterator[Kind]:
    yield Kind(
        ResponseCreateParamsBase,
        lambda fields: fields,
        {"model": "a", "input": [HI]},
        honoured={
            "include": ["message.output_text.logprobs"],
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
            "top_logprobs": 2,
            "top_p": 0.5,
            "user": "ada",
        },
        refused={
            "access_programs": ["a"],
            "background_options": {"a": 1},
            "conversation": "c",
            "max_tool_calls": 3,
            "moderation": {"model": "a"},
            "prompt": {"id": "p"},
            "image": {"a": 1},
            "tool_choice": "required",
        },
        harmless={
            "background": True,  # shapes how it is answered, and not what is asked
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
