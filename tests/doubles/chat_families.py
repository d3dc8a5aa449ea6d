"""The clouds that speak chat completions: what each refuses beside the general rules.

GLM's words of a forced tool are quoted by a gateway (github.com/onyx-dot-app/onyx/pull/14192,
24 August 2026); its code is ours.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.doubles.chat_rules import ChatRequest, Family
from tests.doubles.rules import Offence, Refusal, Rule, too_long
from tests.doubles.signing import Signer

SIGNER = Signer("google")
NO_EFFORT = "thinking options type cannot be disabled when reasoning_effort is set"
SKIPS_SIGNATURE = "skip_thought_signature_validator"  # for a history that another provider made
OPENAI_FIELDS = set(
    "model messages tools tool_choice parallel_tool_calls stream stream_options max_completion_tokens max_tokens "
    "temperature top_p n stop seed user metadata store reasoning_effort response_format prompt_cache_key verbosity "
    "prompt_cache_retention prompt_cache_options service_tier logprobs top_logprobs safety_identifier".split()
)


# -- what offends


def _unknown(request: ChatRequest) -> Offence:
    return next(({"field": name} for name in request.body if name not in OPENAI_FIELDS), None)


def _old_budget(request: ChatRequest) -> Offence:
    return {} if "max_tokens" in request.body else None


def _thinking_with_tools(request: ChatRequest) -> Offence:
    return {"model": request.model} if request.body.get("tools") and request.thinks else None


def _no_none(request: ChatRequest) -> Offence:
    return {} if request.body.get("reasoning_effort") == "none" else None


def _sampling(request: ChatRequest) -> Offence:
    given = request.body.get("temperature")
    return None if given in (None, 1) else {"value": given}


def _great_budget(request: ChatRequest) -> Offence:
    budget, maximum = request.budget or 0, request.family.maximum
    return {"budget": budget, "maximum": maximum} if budget > maximum else None


def _missing_reasoning(request: ChatRequest) -> Offence:
    if not request.thinks:
        return None
    return next(({"at": at} for at, message in request.calling if message.get("reasoning_content") is None), None)


def _forced(request: ChatRequest) -> Offence:
    is_named = isinstance(request.body.get("tool_choice"), dict)
    choice = "specified" if is_named else request.body.get("tool_choice")
    return {"choice": choice} if request.is_forced and request.thinks else None


def _named(request: ChatRequest) -> Offence:
    return _forced(request) if isinstance(request.body.get("tool_choice"), dict) else None


def _missing_signature(request: ChatRequest) -> Offence:
    for at, message in request.calling:
        if not _signature(message):
            return {"name": message["tool_calls"][0]["function"]["name"], "at": at}
    return None


def _wrong_signature(request: ChatRequest) -> Offence:
    """A signature holds for the key and the model that it was made for."""
    for _, message in request.calling:
        made = SIGNER.open(_signature(message)) or {}
        is_own = (made.get("account"), made.get("model")) == (request.account, request.model)
        if _signature(message) != SKIPS_SIGNATURE and not is_own:
            return {}
    return None


def _idle_effort(request: ChatRequest) -> Offence:
    return {} if request.body.get("reasoning_effort") and not request.thinks else None


def _nameless_result(request: ChatRequest) -> Offence:
    return next(({} for message in request.messages if message["role"] == "tool" and not message.get("name")), None)


def _signature(message: Mapping[str, Any]) -> Any:
    """Of calls side by side the first one is signed."""
    extra = message["tool_calls"][0].get("extra_content") or {}
    return (extra.get("google") or {}).get("thought_signature")


def _over_input_limit(request: ChatRequest) -> Offence:
    """OpenAI's input limit leaves room for the greatest output."""
    limit = request.family.window - request.family.maximum
    return {"tokens": request.prompt_tokens, "limit": limit} if request.prompt_tokens > limit else None


def no_room(request: ChatRequest) -> Offence:
    """Prompt and output do not fit the window together."""
    budget, window = request.budget or 0, request.family.window
    total = request.prompt_tokens + budget
    result = {"tokens": request.prompt_tokens, "budget": budget, "total": total, "window": window}
    return result if total > window else None


# -- their words


OPENAI = Family(
    "openai",
    "gpt-5.6-terra",
    (
        Rule("unknown field", _unknown, "Unrecognized request argument supplied: {field}"),
        Rule(
            "old budget",
            _old_budget,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            "instead.",
            code="unsupported_parameter",
            param="max_tokens",
        ),
        Rule(
            "great budget",
            _great_budget,
            "max_tokens is too large: {budget}. This model supports at most {maximum} completion tokens, whereas you "
            "provided {budget}.",
            code="invalid_value",
            param="max_completion_tokens",
        ),
        Rule(
            "sampling",
            _sampling,
            "Unsupported value: 'temperature' does not support {value} with this model. Only the default (1) value is "
            "supported.",
            code="unsupported_value",
            param="temperature",
        ),
        Rule(
            "thinking with tools",
            _thinking_with_tools,
            "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use "
            "function tools, use /v1/responses or set reasoning_effort to 'none'.",
            param="reasoning_effort",
        ),
        Rule(
            "too long",
            _over_input_limit,
            "Input tokens exceed the configured limit of {limit} tokens. Your messages resulted in {tokens} tokens. "
            "Please reduce the length of the messages.",
            code="context_length_exceeded",
            param="messages",
        ),
    ),
    window=1_050_000,
    budgets=("max_completion_tokens",),
    reasoning="hidden",
    thinks=lambda body: body.get("reasoning_effort") != "none",
)
NO_NONE = Rule(
    "no none",
    _no_none,
    "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'low', "
    "'medium', 'high', 'xhigh', and 'max'.",
    code="unsupported_value",
    param="reasoning_effort",
)

DEEPSEEK = Family(
    "deepseek",
    "deepseek-flash",
    (
        Rule(
            "missing reasoning",
            _missing_reasoning,
            "The reasoning_content in the thinking mode must be passed back to the API.",
            code="invalid_request_error",
        ),
        Rule("forced tool", _forced, "Thinking mode does not support this tool_choice", code="invalid_request_error"),
        # deepseek-ai/DeepSeek-V3#1397, June 2026
        Rule("effort without thinking", _idle_effort, NO_EFFORT, code="invalid_request_error"),
        Rule(
            "no room",
            no_room,
            "This model's maximum context length is {window} tokens. However, you requested {total} tokens ({tokens} "
            "in the messages, {budget} in the completion). Please reduce the length of the messages or completion.",
            code="invalid_request_error",
        ),
    ),
    maximum=384_000,
    budgets=("max_tokens",),
    thinks=lambda body: (body.get("thinking") or {}).get("type") != "disabled",
    sees=False,
    words={
        "unseen image": "Failed to deserialize the JSON body into the target type: {path}: unknown variant "
        "`image_url`, expected `text`",
        "call without result": "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
    },
)

KIMI_FORCED = "tool_choice '{choice}' is incompatible with thinking enabled"
KIMI = Family(
    "kimi",
    "kimi-k3",
    (
        Rule(
            "missing reasoning",
            _missing_reasoning,
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}",
        ),
        Rule("forced tool", _named, KIMI_FORCED),
        Rule(
            "too long",
            too_long,
            "Invalid request: Your request exceeded model token limit: {window} (requested: {tokens})",
        ),
    ),
)

QWEN_SAYS = "<400> InternalError.Algo.InvalidParameter: "
QWEN = Family(
    "qwen",
    "qwen3.8-max",
    (
        Rule(
            "forced tool",
            _forced,
            QWEN_SAYS + "The tool_choice parameter does not support being set to required or object in thinking mode",
            code="invalid_parameter_error",
        ),
        Rule(
            "too long",
            too_long,
            QWEN_SAYS + "Range of input length should be [1, {window}]",
            code="invalid_parameter_error",
        ),
    ),
    window=991_000,
    thinks=lambda body: body.get("enable_thinking", True),
)


def _google_error(refusal: Refusal) -> Any:
    return [{"error": {"code": refusal.status, "message": refusal.message, "status": "INVALID_ARGUMENT"}}]


GEMINI = Family(
    "gemini",
    "gemini-4-argon",
    (
        Rule(
            "missing signature",
            _missing_signature,
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
            "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
            "function call `default_api:{name}` , position {at}. Please refer to "
            "https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
        ),
        Rule("wrong signature", _wrong_signature, "Thought signature is not valid"),
        # NousResearch/hermes-agent#16482, April 2026
        Rule("nameless result", _nameless_result, "Request contains an invalid argument."),
        Rule(
            "too long",
            too_long,
            "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).",
        ),
    ),
    window=1_048_576,
    maximum=65_536,
    reasoning="hidden",
    error=_google_error,
    signs_calls=True,
)


def _glm_error(refusal: Refusal) -> Any:
    return {"error": {"code": refusal.code or "1210", "message": refusal.message}}


GLM = Family(
    "glm",
    "glm-5.3",
    (
        Rule("forced tool", _forced, "Tool choice must be auto", code="1210"),
        Rule("too long", too_long, "Prompt exceeds max length", code="1261"),
    ),
    error=_glm_error,
)

MINIMAX = Family(
    "minimax",
    "MiniMax-M3",
    (Rule("too long", too_long, "invalid params, context window exceeds limit (2013)", type="bad_request_error"),),
    budgets=("max_completion_tokens",),
    reasoning="think",
)

CLOUDS = {
    family.name: family
    for family in (
        OPENAI,
        replace(OPENAI, name="openai-6.1", model="gpt-6.1-sol", rules=(NO_NONE, *OPENAI.rules)),
        DEEPSEEK,
        KIMI,
        replace(
            KIMI,
            name="kimi-k2",
            model="kimi-k2.6",
            rules=(Rule("forced tool", _forced, KIMI_FORCED), *KIMI.rules),
            window=262_144,
            thinks=DEEPSEEK.thinks,
        ),
        QWEN,
        GEMINI,
        GLM,
        MINIMAX,
    )
}
