from typing import Any

import pytest

from dominds.llm.errors import complaint_of_payload, complaint_of_response, error_of, readable, retry_after_seconds
from dominds.llm.json_text import dumped
from dominds.llm.provider import (
    AuthFailed,
    ContextOverflow,
    ForcingRefused,
    OutputBudgetTooLarge,
    Overloaded,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    RefusedForGood,
    RequestRefused,
    StaleReasoning,
    SystemRefused,
    TooLargeForRate,
)


def of_response(status: int, body: Any) -> ProviderError:
    content = body if isinstance(body, bytes) else dumped(body)
    return error_of(complaint_of_response(status, {}, content), "a.host")


def openai_error(message: str, code: str | None = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": "messages", "code": code}}


# Whole messages as the vendors send them.
OVERFLOWS: list[tuple[str, int, Any]] = [
    ("OpenAI, by code", 400, openai_error("Anything.", "context_length_exceeded")),
    ("OpenAI Responses", 400, openai_error("Your input exceeds the context window of this model. Please adjust.")),
    (
        "vLLM",
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    ("vLLM, prompt", 400, {"message": "The decoder prompt (length 9) is longer than the maximum model length of 8."}),
    ("DeepSeek", 400, openai_error("This model's maximum context length is 131072 tokens. However, you requested 2.")),
    (
        "Anthropic",
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8"}},
    ),
    (
        "Anthropic, with max_tokens",
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
            },
        },
    ),
    ("Anthropic, 413", 413, {"type": "error", "error": {"type": "request_too_large", "message": "Too large"}}),
    (
        "Google",
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1200000) exceeds the maximum number of tokens allowed "
                    "(1048576).",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
    ),
    (
        "llama.cpp",
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 5000,
                "n_ctx": 4096,
            }
        },
    ),
    ("llama-cpp-python", 400, openai_error("Requested tokens (5000) exceed context window of 4096", None)),
    (
        "LM Studio",
        400,
        {
            "error": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded "
            "with context length of only 4096 tokens, which is not enough."
        },
    ),
    ("Ollama", 400, openai_error("the input length exceeds the context length", None, "api_error")),
    ("Mistral", 400, {"message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768"}),
    ("xAI", 400, {"code": "x", "error": "This model's maximum prompt length is 131072 but the request contains 5."}),
    ("Groq", 400, openai_error("Please reduce the length of the messages or completion.", "context_length_exceeded")),
    ("Cerebras", 400, {"message": "Please reduce the length of the messages or completion. Current length is 9"}),
    ("Moonshot", 400, openai_error("Invalid request: Your request exceeded model token limit: 8192")),
    ("MiniMax", 400, openai_error("invalid params, context window exceeds limit (2013)", None, "bad_request_error")),
    ("Zhipu", 400, {"error": {"code": "1261", "message": "Prompt 超长"}}),
    ("DashScope", 400, openai_error("Range of input length should be [1, 30720]", "invalid_parameter_error")),
    ("Volcano", 400, openai_error("Total tokens of image and text exceed max message tokens", "InvalidParameter")),
    ("SGLang", 400, {"message": "The input (5000 tokens) is longer than the model's context length (4096 tokens)."}),
    ("OpenRouter", 400, {"error": {"message": "This endpoint's maximum context length is 9 tokens.", "code": 400}}),
    ("Bedrock", 400, {"message": "Input is too long for requested model."}),
    ("TGI", 422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097", "type": "x"}),
    (
        "LM Studio, n_keep",
        400,
        {
            "error": "The number of tokens to keep from the initial prompt is greater than the context length "
            "(n_keep: 5000>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter "
            "input."
        },
    ),
    ("LM Studio, cannot truncate", 400, {"error": "Cannot truncate prompt with n_keep (5000) >= n_ctx (4096)"}),
    ("vLLM, no room at all", 400, openai_error("max_tokens must be at least 1, got -904.", None, "BadRequestError")),
    (
        "Ollama's cloud",
        400,
        openai_error("prompt too long; exceeded max context length by 1200 tokens", None, "api_error"),
    ),
    ("vLLM behind a gateway", 400, openai_error("Input length 9000 exceeds the maximum length 8192.")),
    ("a gateway", 400, openai_error("Request exceeds max context window: 200000 tokens.")),
    (
        "SGLang, with the output",
        400,
        {
            "message": "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested "
            "a total of 5200 tokens: 4200 tokens from the input messages and 1000 tokens for the completion."
        },
    ),
    (
        "llama.cpp, with numbers",
        400,
        openai_error("request (5000 tokens) exceeds the available context size (4096 tokens)"),
    ),
    (
        "OpenAI, as an event",
        400,
        {
            "type": "error",
            "error": {
                "code": "context_length_exceeded",
                "message": "Your input exceeds the context window of this model. Please adjust your input.",
                "param": "input",
            },
        },
    ),
    ("llama.cpp, older", 500, {"error": {"code": 500, "message": "the request exceeds the available context size"}}),
]


@pytest.mark.parametrize(("status", "body"), [row[1:] for row in OVERFLOWS], ids=[row[0] for row in OVERFLOWS])
def test_each_vendors_words_for_too_long_are_known(status: int, body: Any) -> None:
    assert isinstance(of_response(status, body), ContextOverflow)
    if status < 500:
        assert isinstance(error_of(complaint_of_payload(body), "a.host"), ContextOverflow), "also inside a stream"


NOT_OVERFLOWS: list[tuple[str, int, Any, type[ProviderError]]] = [
    (
        "OpenAI, tokens per minute",
        429,
        openai_error(
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.",
            "rate_limit_exceeded",
            "tokens",
        ),
        TooLargeForRate,
    ),
    (
        "Groq, 413 for tokens per minute",
        413,
        openai_error(
            "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000, please reduce "
            "your message size and try again.",
            "rate_limit_exceeded",
            "tokens",
        ),
        TooLargeForRate,
    ),
    ("Anthropic, input tokens per minute", 429, {"error": {"type": "rate_limit_error", "message": "x"}}, RateLimited),
    ("Google, quota", 429, [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x"}}], RateLimited),
    ("no money", 429, openai_error("You exceeded your current quota", "insufficient_quota"), RefusedForGood),
    ("no money, DeepSeek", 402, openai_error("Insufficient Balance"), RefusedForGood),
    (
        "max_tokens too large",
        400,
        openai_error("max_tokens: 9000 > 8192, the allowed number of output"),
        RequestRefused,
    ),
    ("unknown model", 404, openai_error("The model `x` does not exist", "model_not_found"), RefusedForGood),
    ("bad key", 401, openai_error("Incorrect API key provided", "invalid_api_key"), AuthFailed),
    ("forbidden", 403, {"error": {"type": "permission_error", "message": "no"}}, AuthFailed),
    ("validation", 422, {"detail": [{"msg": "field required"}]}, RequestRefused),
    ("redirect", 302, b"", RequestRefused),
    ("request timeout", 408, b"", ProviderTimeout),
    ("gateway timeout", 504, b"<html>", ProviderTimeout),
    ("server error", 500, openai_error("The server had an error", None, "server_error"), Overloaded),
    ("bad gateway", 502, b"<html><head><title>502 Bad Gateway</title></head><body>x</body></html>", Overloaded),
    ("overloaded", 529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Overloaded),
    ("not JSON", 400, b"\xff\xfe\x00", RequestRefused),
    ("empty", 503, b"", Overloaded),
]


@pytest.mark.parametrize(
    ("status", "body", "kind"), [row[1:] for row in NOT_OVERFLOWS], ids=[row[0] for row in NOT_OVERFLOWS]
)
def test_everything_else_has_its_own_kind(status: int, body: Any, kind: type[ProviderError]) -> None:
    assert type(of_response(status, body)) is kind


# A whole message, and the window, prompt and output in it.
BUDGETS: list[tuple[str, str, tuple[int, int, int]]] = [
    (
        "vLLM",
        "This model's maximum context length is 32768 tokens. However, you requested 8192 output tokens and your "
        "prompt contains at least 24577 input tokens, for a total of at least 32769 tokens. Please reduce the length.",
        (32768, 24577, 8192),
    ),
    (
        "DeepSeek, and vLLM before",
        "This model's maximum context length is 131072 tokens. However, you requested 135000 tokens (127000 in the "
        "messages, 8000 in the completion). Please reduce the length of the messages or completion.",
        (131072, 127000, 8000),
    ),
    (
        "SGLang",
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of "
        "5000 tokens: 4000 tokens from the input messages and 1000 tokens for the completion. Please reduce the "
        "number.",
        (4096, 4000, 1000),
    ),
    (
        "Anthropic",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or "
        "`max_tokens` and try again",
        (200000, 188240, 21333),
    ),
    (
        "TGI",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens and "
        "1000 `max_new_tokens`",
        (4097, 4000, 1000),
    ),
]


@pytest.mark.parametrize(("message", "numbers"), [row[1:] for row in BUDGETS], ids=[row[0] for row in BUDGETS])
def test_a_refusal_that_less_output_would_satisfy_names_its_numbers(
    message: str, numbers: tuple[int, int, int]
) -> None:
    error = of_response(400, openai_error(message))
    assert isinstance(error, OutputBudgetTooLarge)
    assert (error.window, error.prompt_tokens, error.output_tokens) == numbers
    assert error.room == numbers[0] - numbers[1]
    assert (copied := error.reworded("other words")).room == error.room
    assert str(copied) == "other words"


def test_less_output_does_not_help_a_prompt_that_fills_the_window_alone() -> None:
    message = BUDGETS[0][1].replace("24577", "32760")
    assert type(of_response(400, openai_error(message))) is ContextOverflow


# As they were seen; each of them with HTTP 400.
REFUSALS: list[tuple[str, str, type[ProviderError]]] = [
    ("Anthropic", 'tool_choice: type "tool" and "any" are not supported for this model.', ForcingRefused),
    ("DeepSeek", "Thinking mode does not support this tool_choice", ForcingRefused),
    ("Zhipu", "Tool choice must be auto", ForcingRefused),
    ("Kimi", "tool_choice 'specified' is incompatible with thinking enabled", ForcingRefused),
    (
        "Qwen",
        "The tool_choice parameter does not support being set to required or object in thinking mode",
        ForcingRefused,
    ),
    ("LM Studio", "Invalid tool_choice type: 'object'. Supported string values: none, auto, required", ForcingRefused),
    (
        "vLLM, llama.cpp, LM Studio",
        "Error rendering prompt with jinja template: System message must be at the beginning.",
        SystemRefused,
    ),
    ("Anthropic, before Opus 4.8", "role 'system' is not supported on this model", SystemRefused),
    (
        "Anthropic, binding",
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different "
        "conversation. "
        'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
        StaleReasoning,
    ),
    (
        "Anthropic, a budget",
        "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        StaleReasoning,
    ),
    (
        "OpenAI, an orphan",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        StaleReasoning,
    ),
    (
        "OpenAI, a call",
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
        StaleReasoning,
    ),
    ("Google, missing", "Function call is missing a thought_signature in functionCall parts.", StaleReasoning),
    ("Google, another key", "Thought signature is not valid", StaleReasoning),
    (
        "DeepSeek",
        "The reasoning_content in the thinking mode must be passed back to the API.",
        StaleReasoning,
    ),
    (
        "DeepSeek, in Anthropic's dress",
        "The `content[].thinking` in the thinking mode must be passed back to the API.",
        StaleReasoning,
    ),
    (
        "Kimi",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        StaleReasoning,
    ),
    ("retired", "The model `claude-3` has been retired. Use a newer model.", RefusedForGood),
    ("decommissioned", "The model `mixtral` has been decommissioned and is no longer supported.", RefusedForGood),
    ("no money", "Your credit balance is too low to access the API.", RefusedForGood),
    ("disabled", "This organization has been disabled.", RefusedForGood),
    ("another field", '"thinking.type.disabled" is not supported for this model.', RequestRefused),
    (
        "a tool's schema",
        "Invalid schema for function 'choose': 'tool_choices' is not of type 'object'.",
        RequestRefused,
    ),
]


@pytest.mark.parametrize(("message", "kind"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_a_refusal_says_what_would_have_to_be_otherwise(message: str, kind: type[ProviderError]) -> None:
    assert type(of_response(400, openai_error(message))) is kind


def test_encrypted_content_that_cannot_be_read_is_stale() -> None:
    assert type(of_response(400, openai_error("Anything.", "invalid_encrypted_content"))) is StaleReasoning


def test_the_field_that_a_server_names_counts_as_its_words() -> None:
    error = {"error": {"message": "Value 'named' is not supported.", "param": "tool_choice", "code": "invalid_value"}}
    assert type(of_response(400, error)) is ForcingRefused


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Overloaded),
        ({"type": "error", "error": {"type": "authentication_error", "message": "x"}}, AuthFailed),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}, RequestRefused),
        ({"error": {"code": 429, "message": "slow down"}}, RateLimited),
        ({"error": {"code": 502, "message": "upstream"}}, Overloaded),
        ({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}}, Overloaded),
        (
            {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "x"}}},
            RateLimited,
        ),
        ({"type": "error", "code": "context_length_exceeded", "message": "x"}, ContextOverflow),
        ({"error": "something unheard of"}, Overloaded),
        ("text", Overloaded),
        ({"error": None, "message": "x"}, Overloaded),
    ],
)
def test_errors_inside_a_stream_are_told_apart(payload: Any, kind: type[ProviderError]) -> None:
    assert type(error_of(complaint_of_payload(payload), "a.host")) is kind


def test_a_page_of_html_becomes_a_short_message() -> None:
    error = of_response(502, b"<html><head><title>502 Bad Gateway</title></head><body>" + b"<p>x</p>" * 999)
    assert str(error) == "a.host failed with HTTP 502: 502 Bad Gateway."


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (400, "refused the request with HTTP 400"),
        (401, "refused the request with HTTP 401"),
        (404, "refused the request with HTTP 404"),
        (408, "did not answer in time (HTTP 408)"),
        (413, "refused the request with HTTP 413"),
        (429, "refused the request with HTTP 429"),
        (500, "failed with HTTP 500"),
        (502, "failed with HTTP 502"),
        (503, "is overloaded or not available (HTTP 503)"),
        (504, "did not answer in time (HTTP 504)"),
        (520, "failed with HTTP 520"),
        (529, "is overloaded or not available (HTTP 529)"),
    ],
)
def test_a_provider_that_fails_has_refused_nothing(status: int, outcome: str) -> None:
    assert str(of_response(status, b'{"error": {"message": "x"}}')).startswith(f"a.host {outcome}: x.")


@pytest.mark.parametrize(
    ("payload", "outcome"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "is overloaded or not available"),
        ({"type": "error", "error": {"type": "api_error", "message": "x"}}, "failed"),
        ({"type": "error", "error": {"type": "timeout_error", "message": "x"}}, "did not answer in time"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}, "refused the request"),
    ],
)
def test_an_error_in_the_middle_of_an_answer_is_worded_by_its_class(payload: Any, outcome: str) -> None:
    assert str(error_of(complaint_of_payload(payload), "a.host")).startswith(f"a.host {outcome}: x.")


def test_messages_carry_no_keys_and_no_control_characters() -> None:
    text = readable("Incorrect API key provided: sk-proj-abcdefgh1234.\r\n\x1b[31mSee Bearer abc.def\x00")
    assert "abcdefgh" not in text
    assert "abc.def" not in text
    assert text.isprintable()
    assert len(readable("x" * 10_000)) == 500


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "20"}, 20),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "20"}, 0.25),
        ({"retry-after": "Fri, 21 Nov 2026 10:00:30 GMT", "date": "Fri, 21 Nov 2026 10:00:00 GMT"}, 30),
        ({"retry-after": "Fri, 21 Nov 2026 10:00:30 GMT"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_a_server_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


@pytest.mark.parametrize("status", [408, 429, 500, 503, 504, 529])
def test_no_error_promises_another_try(status: int) -> None:
    """Only the driver knows whether there is one: the same words stand under the last."""
    error = error_of(complaint_of_response(status, {}, b"busy"), "a.host")
    assert error.retryable
    assert "again" not in str(error)
