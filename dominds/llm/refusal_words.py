"""Words and codes of providers' refusals, by which each class of refusal is recognised.

``tests/wordings`` holds whole messages, with their sources.
"""

import re

RATE_LIMIT_CODES = {
    "rate_limit_exceeded",
    "rate_limit_error",
    "rate_limit_reached_error",
    "resource_exhausted",
    "throttling",
    "throttling.ratequota",
    "throttlingexception",
    "too_many_requests",
    "tokens",
}
OVERFLOW_CODES = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
    "context_window_exceeded",
    "context_window_exceeded_error",
    "prompt_too_long",
    "prompt_tokens_too_long",
    "request_too_large",
    "1261",
}
AUTH_CODES = {"authentication_error", "invalid_api_key", "unauthenticated"}
ACCESS_CODES = {"permission_error", "permission_denied"}
OVERLOAD_CODES = {
    "overloaded_error",
    "server_error",
    "api_error",
    "internal_server_error",
    "internal_error",
    "unavailable",
    "engine_overloaded_error",
    "service_unavailable",
}
BUSY_CODES = {"overloaded_error", "unavailable", "engine_overloaded_error", "service_unavailable"}
BUSY_STATUSES = (409, 424, 425, 503, 529)  # 424: Bedrock, when the model itself failed
REFUSAL_CODES = {
    "invalid_request_error",
    "invalid_argument",
    "content_filter",
    "invalid_prompt",
    "badrequesterror",  # vLLM, DeepInfra
    "datainspectionfailed",  # DashScope
    "data_inspection_failed",
}
FINAL_CODES = {
    "insufficient_quota",
    "billing_error",
    "model_not_found",
    "not_found_error",
    "not_found",
    "model_not_available",
    "model_deprecated",
    "account_deactivated",
    "arrearage",
    "budget_exceeded",
    "exceeded_current_quota_error",
    "1113",
}
# The server could not read a call, or JSON, that its model wrote. The next answer may be better.
GARBLED_CODES = {"tool_use_failed", "output_parse_failed", "json_validate_failed"}
STALE_CODES = {"invalid_encrypted_content"}
TIMEOUT_CODES = {"timeout_error", "deadline_exceeded"}

# A quota of tokens per time is a rate limit even where it calls the request too large (OpenAI, Groq).
RATE_LIMIT_TEXT = re.compile(
    r"rate.?limit|too many requests|(tokens|requests|input tokens) per (second|minute|hour|day)|\b[TRI]P[MD]\b", re.I
)
# This one request exceeds such a quota, so that waiting does not help (OpenAI, Groq).
RATE_SIZE_TEXT = re.compile(r"request too large|requested tokens exceed|must be reduced|reduce your message size", re.I)
# A field of the request is longer than allowed.
FIELD_CODES = {"string_above_max_length", "array_above_max_length", "string_too_long"}
FIELD_TEXT = re.compile(
    r"(string|array) too long|(string|list|array) should have at most|longer than the maximum length", re.I
)
# The fields that become shorter only if the conversation does.
CONVERSATION = re.compile(
    r"^(messages|input|contents|prompt|system|instructions)"
    r"(\[\d+\]|\.\d+)?(\.(content|parts|output|text|input_text)(\[\d+\]|\.\d+)?(\.\w*text)?)?$"
)
IMAGE_TEXT = re.compile(r"\bimages?\b.{0,80}(exceed|too large|too big|maximum|larger)|too much media", re.I | re.S)
# The model sees no images: vLLM (twice), OpenAI, LM Studio and Ollama, OpenRouter, llama.cpp (twice), DeepSeek.
SIGHT_TEXT = re.compile(
    r"at most 0 image|is not (a )?multi-?modal\b|image_url is only supported by certain models"
    r"|does not support images?( inputs?)?(?= *($|[.,;:()\"'`\\}]))|no endpoints found that support image input"
    r"|image input is not supported|unsupported content part type: *\W*image_url|unknown variant .?image_url",
    re.I,
)
# The requested answer is longer than the model's greatest, which the number tells.
MAXIMUM_TEXTS = tuple(
    re.compile(pattern, re.I | re.S)
    for pattern in (
        r"max\w*tokens\w* is too large.{0,80}at most (?P<most>\d[\d,]*)",  # OpenAI
        r"`?max_tokens`?: \d+ > (?P<most>\d[\d,]*), which is the maximum",  # Anthropic
        r"max_(output|completion)_tokens.{0,60}above maximum value.{0,60}<= (?P<most>\d[\d,]*)",  # OpenAI Responses
        r"max_(completion_)?tokens`? must be less than or equal to `?(?P<most>\d[\d,]*)",  # Groq
        r"valid range of max_tokens is \[\d+, ?(?P<most>\d[\d,]*)\]",  # DeepSeek
        r"range of max_tokens should be \[\d+, ?(?P<most>\d[\d,]*)\]",  # Alibaba
        r"maximum tokens you requested exceeds the model limit of (?P<most>\d[\d,]*)",  # Bedrock
        # Google
        r"maxOutputTokens value of \d+ but the supported range is from 1 \(inclusive\) to (?P<beyond>\d[\d,]*) \(excl",
    )
)
# No request succeeds until somebody acts: another model has to be chosen, or the account restored.
FINAL_TEXT = re.compile(
    r"\bmodel\b.{0,120}(does not exist|not found|has been (retired|deprecated|shut down|removed)|is no longer available"
    r"|decommissioned|reached its end of life)|(account|organization) (is|has been) (disabled|deactivated|suspended)",
    re.I | re.S,
)
FORCING_TEXT = re.compile(r"\btool[_ ]choice\b", re.I)
FORCING_WRONG = re.compile(  # in a message that also matches FORCING_TEXT
    r"not support|unsupported|incompatible|not compatible|invalid|not allowed|not permitted|may not|cannot"
    r"|unrecogni[sz]ed|unexpected|unknown"
    r"|(only|must be) .{0,20}auto",
    re.I,
)
SYSTEM_TEXT = re.compile(
    "|".join(
        (
            r"system message must be at the beginning",  # templates of Qwen 3.5 and later, on any local server
            r"role '?system'? is not supported on this model",  # Anthropic before Opus 4.8
            r"messages\.\d+: .{0,40}system.{0,40}must (follow|precede)",  # Anthropic, about the place of such messages
        )
    ),
    re.I,
)
# The model's template cannot write this conversation, so that another try fails as well: llama.cpp, LM Studio, vLLM.
TEMPLATE_TEXT = re.compile(
    r"\bjinja|\braise_exception\b|templateerror|conversation roles must alternate|at row \d+, column \d+"
    r"|prefill is incompatible with",
    re.I,
)
STALE_TEXT = re.compile(
    "|".join(
        (
            # Anthropic: the reasoning was changed, or belongs to another conversation
            r"invalid `?signature`? in `?thinking`? block",
            r"bound to a different (conversation|account)",
            r"expected `?thinking`? or `?redacted_thinking`?",  # Anthropic, for models that think within a budget
            r"blocks in the latest assistant message cannot be modified",
            r"without its required (following item|'?reasoning'? item|.{0,20}reasoning)",  # OpenAI Responses
            r"encrypted content .{0,80}could not be (verified|decrypted)",
            r"thought.?signature",  # Google: missing, or not valid
            # DeepSeek, in both of its wire formats; Kimi
            r"(reasoning_content|content\[\]\.thinking).{0,60}(must be passed back|is missing)",
        )
    ),
    re.I | re.S,
)

# The model's answer could not be parsed: Groq; Ollama; llama.cpp; gpt-oss on any server; exo, which quotes the call.
GARBLED_TEXT = re.compile(
    r"failed_generation|error parsing tool call|failed to parse (input at pos|tool call)"
    r"|harmonyerror|unexpected tokens remaining in message header|^\W*<\|tool_calls?_(section_)?begin\|>",
    re.I,
)
AUTH_TEXT = re.compile(r"api.?key (is )?(not valid|invalid|expired)", re.I)  # Google, with HTTP 400
# LM Studio, with HTTP 400: the next request loads the model again.
UNLOADED_TEXT = re.compile(
    r"model (has )?(crashed|(is |was )?(unloaded|reloaded))\b|failed to load model.{0,160}cancel", re.I
)

QUOTA_TEXT = re.compile(
    r"insufficient.?(quota|balance)|exceeded your current quota|credit balance is too low|budget has been exceeded"
    r"|余额不足|欠费",
    re.I,
)

OVERFLOW_TEXT = re.compile(
    "|".join(
        (
            r"maximum context length",  # OpenAI (older), vLLM, DeepSeek, OpenRouter, SGLang
            r"exceeds the context window|exceed(s)? context window",  # OpenAI Responses; llama-cpp-python
            r"prompt is too long",  # Anthropic
            r"exceed context limit",  # Anthropic, input plus max_tokens
            r"input token count .{0,40}exceeds the maximum",  # Google
            r"exceeds the available context size",  # llama.cpp
            r"context the overflows|context length of only|context overflow",  # LM Studio (its own spelling)
            r"exceeds the context length|exceeds maximum context",  # Ollama
            r"longer than the (maximum model length|model's context length)",  # vLLM; SGLang
            r"maximum prompt length",  # xAI
            r"prompt contains \d+ tokens",  # Mistral
            r"exceeded model token limit",  # Moonshot
            r"context window exceeds limit",  # MiniMax
            r"prompt exceeds max length|prompt 超长",  # Zhipu
            r"range of input length should be",  # Alibaba DashScope
            r"exceed max message tokens",  # Volcano Ark
            r"reduce the length of (the|your) (messages|prompt|input)",  # Cerebras, Groq
            r"input is too long|too many input tokens",  # Bedrock
            r"inputs. tokens \+ .max_new_tokens. must be",  # Text Generation Inference, Together
            r"total number of tokens in the prompt cannot exceed",  # Cohere
            r"prompt token count of \d+ exceeds",  # GitHub Copilot
            r"tokens to keep from the initial prompt is greater than the context length",  # LM Studio
            r"cannot truncate prompt with n_keep",  # LM Studio
            r"max_tokens must be at least 1, got -\d",  # vLLM: the prompt alone is longer than the window
            r"exceeded max context length by",  # Ollama's cloud
            r"input length \d+ exceeds the maximum length",  # vLLM of some gateways
            r"exceeds max context window|ContextWindowExceeded",  # gateways; LiteLLM
            r"input token count is \d+ but model only supports",  # Google
            r"context size has been exceeded",  # LM Studio
            r"model's context length is only \d",  # vLLM
            r"tokens.{0,40} exceeds? (the )?(max\w* )?context length \d",  # Databricks, AI21, StepFun
            r"prompt length.{0,60}should not exceed max_num_tokens|default_max_tokens \(-\d",  # TensorRT-LLM
            r"greater than the model's max sequence length",  # mistral.rs
            r"`inputs` must have less than \d+ tokens",  # Text Generation Inference
            r"(input length|prompt tokens) too long",  # Tencent, Baidu
            r"exceeds (the )?maximum allowed input length",  # Poolside, through OpenRouter
            r"total message size \d+ exceeds limit",  # Moonshot, in bytes
            r"input tokens exceed the configured limit",  # OpenAI
            r"tokens, but the configured context size is",  # ds4
            # In many servers' words: the prompt, its tokens or the like are more than the context's size.
            r"\b(prompt|input|request|messages?|conversation|tokens)\b[^.]{0,80}\b(exceed\w*|"
            r"(longer|larger|greater) than|too (long|large) for)\b[^.]{0,40}\bcontext (length|window|size)",
        )
    ),
    re.I,
)

NUMBER = r"(?P<{}>\d[\d,]*)"
WINDOW, PROMPT, OUTPUT = (NUMBER.format(name) for name in ("window", "prompt", "output"))
# Refusals that name the tokens of the prompt, of the requested output, and of the window.
BUDGET_TEXTS = tuple(
    re.compile(pattern, re.I | re.S)
    for pattern in (
        # vLLM
        rf"maximum context length is {WINDOW} tokens.{{0,60}}requested {OUTPUT} output tokens"
        rf".{{0,60}}at least {PROMPT} input",
        # OpenAI (older), DeepSeek, vLLM (older)
        rf"maximum context length is {WINDOW} tokens.{{0,80}}\({PROMPT} in (?:the|your) (?:messages|prompt)"
        rf".{{0,60}}?{OUTPUT} in the completion",
        # vLLM
        rf"passed {PROMPT} input tokens and requested {OUTPUT} output tokens.{{0,60}}context length is only {WINDOW}",
        # Databricks
        rf"prompt tokens \({PROMPT}\) \+ max_tokens \({OUTPUT}\) exceeds? context length {WINDOW}",
        # OpenRouter, which names the total instead of the prompt
        rf"maximum context length is {WINDOW} tokens.{{0,40}}requested about (?P<total>\d[\d,]*) tokens"
        rf".{{0,60}}? {OUTPUT} in the output",
        # SGLang
        rf"maximum context length of {WINDOW} tokens.{{0,80}}: {PROMPT} tokens from the input"
        rf".{{0,30}} and {OUTPUT} tokens",
        # Anthropic up to 4.1
        rf"`max_tokens` exceed context limit: {PROMPT} \+ {OUTPUT} > {WINDOW}",
        # Text Generation Inference
        rf"`max_new_tokens` must be <= {WINDOW}\. Given: {PROMPT} `inputs` tokens and {OUTPUT} `max_new_tokens`",
    )
)
# Refusals that name the tokens of the prompt and mostly of the window, but not of the output.
SIZE_TEXTS = tuple(
    re.compile(pattern, re.I | re.S)
    for pattern in (
        rf"prompt is too long: {PROMPT} tokens > {WINDOW}",  # Anthropic
        rf"exceed context limit: {PROMPT} \+ \d+ > {WINDOW}",  # Anthropic, whose prompt alone is too long
        rf"input token count \({PROMPT}\) exceeds the maximum number of tokens allowed \({WINDOW}",  # Google
        rf"input token count is {PROMPT} but model only supports up to {WINDOW}",  # Google
        rf"n_keep:? ?\(?{PROMPT}\)? ?>= n_ctx:? ?\(?{WINDOW}",  # LM Studio
        # LM Studio
        rf"keep the first {PROMPT} tokens when context the overflows.{{0,80}}context length of only {WINDOW}",
        rf"request \({PROMPT} tokens\) exceeds the available context size \({WINDOW}",  # llama.cpp
        rf"input \({PROMPT} tokens\) is longer than the model's context length \({WINDOW}",  # SGLang
        rf"context length of {WINDOW} tokens.{{0,80}}: {PROMPT} tokens from the input messages",  # SGLang
        rf"passed {PROMPT} input tokens.{{0,90}}context length is only {WINDOW}",  # vLLM
        rf"prompt \(length {PROMPT}\) is longer than the maximum model length of {WINDOW}",  # vLLM
        rf"prompt contains {PROMPT} tokens.{{0,60}}model with {WINDOW}",  # Mistral
        rf"maximum prompt length is {WINDOW} but the request contains {PROMPT}\b",  # xAI
        rf"prompt tokens \(?{PROMPT}\)? exceeds? context length {WINDOW}",  # Databricks, AI21
        rf"prompt token count of {PROMPT} exceeds the limit of {WINDOW}",  # GitHub Copilot
        rf"input length {PROMPT} exceeds the maximum length {WINDOW}",  # gateways
        rf"must have less than \d+ tokens\. Given: {PROMPT}",  # Text Generation Inference
        rf"input length {PROMPT} exceeds the maximum allowed input length of {WINDOW}",  # Poolside
        rf"input length \({PROMPT}\) exceeds (?:the )?model's maximum context length \({WINDOW}",  # gateways
        rf"prompt has {PROMPT} tokens, but the configured context size is {WINDOW}",  # ds4
        rf"configured limit of {WINDOW} tokens.{{0,40}}resulted in {PROMPT} tokens",  # OpenAI
    )
)
