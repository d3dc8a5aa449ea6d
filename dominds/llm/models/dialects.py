"""The parameters of each wire format: what each may hold, and which ones a model refuses."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from dominds.llm.json_text import dump
from dominds.yaml_fields import Bad, Field, anything, number, one_of, quote_value, text, texts, truth, whole_number

Params = Mapping[str, Any]
Fault = tuple[str, str]  # name, reason

EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]
VERBOSITIES = ["low", "medium", "high"]
SAMPLING = ("temperature", "top_p", "top_k")
MOST = 1_000_000_000
# Tokens of thinking for each effort, for models that take only a budget.
BUDGETS = {"minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_576, "max": 32_000}


class Thinker(Protocol):
    """The part of a model on which its parameters depend: when it thinks, how much, and how that is turned off."""

    @property
    def model_id(self) -> str: ...

    @property
    def thinking(self) -> str: ...

    @property
    def most_effort(self) -> str: ...

    @property
    def thinking_off(self) -> Params: ...


def mapping(value: Any) -> Params:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise Bad(f"expected a mapping, found {quote_value(value)}")
    try:
        dump(value)
    except TypeError as error:
        raise Bad(f"expected values that JSON knows ({error})") from error
    return dict(value)


def table(known: Mapping[str, Field]) -> Field:
    """Return a reader of a mapping of these fields and no others."""

    def read(value: Any) -> Params:
        for name, item in mapping(value).items():
            if name not in known:
                raise Bad(f"{name} means nothing here; known are {', '.join(known)}")
            try:
                known[name](item)
            except Bad as bad:
                raise Bad(f"{name}: {bad}") from None
        return dict(value)

    return read


def _stop(value: Any) -> Any:
    """Read one stop text or several. White space is valid."""
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list | tuple) or not all(isinstance(one, str) and one for one in stops):
        raise Bad(f"expected a text or a list of texts, found {quote_value(value)}")
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """The parameters of one wire format.

    ``of_effort`` translates an effort of thinking into the format's parameters. ``refused`` yields the parameters that
    a model does not take. ``of_chat`` translates the parameters of chat completions, as far as the format has any for
    them.
    """

    fields: Mapping[str, Field] = field(repr=False)
    of_effort: Callable[[Thinker, str], Params] = field(repr=False)
    refused: Callable[[Thinker, Params], Iterator[Fault]] = field(repr=False)
    of_chat: Mapping[str, "InOwnWords"] = field(repr=False)


InOwnWords = Callable[[Thinker, Any], Params]  # raises ``Bad``
FORMATS = ["text", "json_object", "json_schema"]


def _field_named(name: str) -> InOwnWords:
    return lambda _model, value: {name: value}


def _output_from(least: int) -> dict[str, InOwnWords]:
    """Check the requested length of an answer. The field itself is written with the rest of a request."""

    def read(_model: Thinker, value: Any) -> Params:
        whole_number(least, MOST)(value)
        return {}

    return {"max_tokens": read, "max_completion_tokens": read}


def _format_of(value: Any) -> tuple[str, Params]:
    """Return the kind of a ``response_format``, and the details of its schema."""
    stated = mapping(value)
    kind = one_of(FORMATS)(stated.get("type"))
    schema = mapping(stated.get("json_schema")) if kind == "json_schema" else {}
    if kind == "json_schema" and not isinstance(schema.get("schema"), Mapping):
        raise Bad("json_schema has no schema")
    return kind, schema


# Chat completions: OpenAI's parameters, and those that vendors and local servers added


def _chat_effort(model: Thinker, effort: str) -> Params:
    return model.thinking_off if effort == "none" and model.thinking_off else {"reasoning_effort": effort}


def _chat_format(_model: Thinker, value: Any) -> Params:
    return {} if _format_of(value)[0] == "text" else {"response_format": value}


def _chat_refused(model: Thinker, params: Params) -> Iterator[Fault]:
    yield from _effort_refused(model, "reasoning_effort", params.get("reasoning_effort"))


def _effort_refused(model: Thinker, name: str, effort: Any) -> Iterator[Fault]:
    if effort == "none" and model.thinking == "always":
        yield name, f"{model.model_id} always thinks: its effort cannot be none"
    elif effort not in (None, "none") and model.thinking == "never":
        yield name, f"{model.model_id} does not think: there is no effort to set"
    elif effort in EFFORTS and effort != effort_within(model, effort):
        yield name, f"{model.model_id} does not know the effort {effort}; its greatest is {model.most_effort}"


def effort_within(model: Thinker, effort: str) -> str:
    """Return the effort, or the greatest effort that the model takes if that is less."""
    return min(effort, model.most_effort or effort, key=EFFORTS.index)


_CHAT_PARAMS: dict[str, Field] = {
    "reasoning_effort": one_of(EFFORTS),
    "verbosity": one_of(VERBOSITIES),
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "top_k": whole_number(-1, MOST),
    "min_p": number(0, 1),
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "repetition_penalty": number(0, 10),
    "repeat_penalty": number(0, 10),
    "seed": whole_number(-(2**63), 2**63 - 1),
    "stop": _stop,
    "logit_bias": mapping,
    "logprobs": truth,
    "top_logprobs": whole_number(0, 20),
    "parallel_tool_calls": truth,
    "response_format": mapping,
    "service_tier": text,
    "user": text,
    "metadata": mapping,
    "reasoning": mapping,  # OpenRouter
    "reasoning_split": truth,  # MiniMax
    "thinking": mapping,  # DeepSeek, Moonshot, Zhipu
    "enable_thinking": truth,  # Alibaba
    "preserve_thinking": truth,
    "thinking_budget": whole_number(0, MOST),
    "extra_body": mapping,  # Google
    "chat_template_kwargs": mapping,  # vLLM, SGLang, llama.cpp
    "cache_prompt": truth,  # llama.cpp
    "think": anything,  # Ollama: true, false or an effort
    "options": mapping,
    "keep_alive": anything,
    "ttl": whole_number(0, MOST),  # LM Studio
}
# Fields that shape an answer of one server or gateway alone. What they may hold is left to that server.
_OF_ONE_SERVER = """
    add_bos allowed_token_ids bad_words ignore_eos include_stop_str_in_output length_penalty min_tokens priority
    skip_special_tokens spaces_between_special_tokens stop_token_ids thinking_token_budget
    guided_choice guided_decoding_backend guided_grammar guided_json guided_regex guided_whitespace_pattern
    structured_outputs
    ebnf no_stop_trim regex
    dry_allowed_length dry_base dry_multiplier dry_penalty_last_n dry_sequence_breakers dynatemp_exponent dynatemp_range
    grammar id_slot json_schema min_keep mirostat mirostat_eta mirostat_tau n_keep penalize_nl repeat_last_n
    reasoning_budget samplers tfs_z top_n_sigma typical_p xtc_probability xtc_threshold
    models plugins provider route top_a transforms
    prompt_mode random_seed safe_prompt
    enable_search search_options search_parameters do_sample
""".split()


def _extra_named(name: str) -> InOwnWords:
    return lambda _model, value: {"extra": {name: value}}


CHAT = Dialect(
    _CHAT_PARAMS,
    _chat_effort,
    _chat_refused,
    {
        **{name: _field_named(name) for name in _CHAT_PARAMS if name != "metadata"},
        **{name: _extra_named(name) for name in _OF_ONE_SERVER},
        **_output_from(1),
        "reasoning_effort": lambda model, value: _chat_effort(model, one_of(EFFORTS)(value)),
        "response_format": _chat_format,
    },
)


# OpenAI's Responses


def _responses_refused(model: Thinker, params: Params) -> Iterator[Fault]:
    effort = params.get("reasoning", {}).get("effort")
    yield from _effort_refused(model, "reasoning", effort)
    if model.thinking not in ("", "never"):
        if effort == "minimal":  # GPT-5 alone takes this effort
            yield "reasoning", f"{model.model_id} does not know the effort minimal; its least is low"
        yield from _no_sampling(model, params)


def _no_sampling(model: Thinker, params: Params) -> Iterator[Fault]:
    for name in SAMPLING:
        if params.get(name) not in (None, 1):
            yield name, f"{model.model_id} does not take {name}: a model that thinks chooses by itself"


def _anthropic_refused(model: Thinker, params: Params) -> Iterator[Fault]:
    """Yield parameters that API version 2026-10-21 refuses for every model. A value of 1 has no effect and passes."""
    found = dict(_messages_refused(model, params))
    for name in SAMPLING:
        if params.get(name) not in (None, 1):
            found.setdefault(name, f"{model.model_id} does not take {name}: Anthropic's API refuses it of every model")
    yield from found.items()


def _responses_format(_model: Thinker, value: Any) -> Params:
    kind, schema = _format_of(value)
    return {} if kind == "text" else {"text": {"format": {"type": kind, **schema}}}


RESPONSES = Dialect(
    {
        "reasoning": table({"effort": one_of(EFFORTS), "summary": one_of(["auto", "concise", "detailed"])}),
        "text": mapping,
        "temperature": number(0, 2),
        "top_p": number(0, 1),
        "parallel_tool_calls": truth,
        "service_tier": text,
        "user": text,
        "metadata": mapping,
        "safety_identifier": text,
        "prompt_cache_retention": text,
        "prompt_cache_options": mapping,
        "logprobs": truth,  # by ``include``
        "top_logprobs": whole_number(0, 20),
    },
    lambda model, effort: {"reasoning": {"effort": effort}},
    _responses_refused,
    {
        **{
            name: _field_named(name)
            for name in (
                *("temperature", "top_p", "parallel_tool_calls", "service_tier", "user"),
                *("logprobs", "top_logprobs"),
            )
        },
        **_output_from(16),  # OpenAI refuses less
        "safety_identifier": _field_named("safety_identifier"),
        "reasoning_effort": lambda _model, value: {"reasoning": {"effort": value}},
        "verbosity": lambda _model, value: {"text": {"verbosity": one_of(VERBOSITIES)(value)}},
        "response_format": _responses_format,
    },
)


# Anthropic's Messages

# The types of thinking that a request may ask for, by when the model thinks. If that is unknown, any type is allowed.
THINKING_TYPES = {
    "always": ("adaptive", "between_tools"),
    "default": ("adaptive", "between_tools", "disabled"),
    "budget": ("enabled", "disabled"),
}
ONE_CALL = "disable_parallel_tool_use"  # a field of Anthropic's tool_choice
# Refused with HTTP 400 if thinking is disabled (platform.claude.com, "Prompting Claude Haiku 5.5", October 2026).
EFFORTS_THAT_THINK = ("xhigh", "max")


def _messages_effort(model: Thinker, effort: str) -> Params:
    if effort == "none":
        return {} if model.thinking in ("adaptive", "budget", "never") else {"thinking": {"type": "disabled"}}
    match model.thinking:
        case "budget":
            return {"thinking": {"type": "enabled", "budget_tokens": BUDGETS[effort]}}
        case "adaptive":
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    return {"output_config": {"effort": effort}}


def _messages_refused(model: Thinker, params: Params) -> Iterator[Fault]:
    kind = params.get("thinking", {}).get("type")
    if kind == "disabled" and model.thinking == "always":
        yield "thinking", f"{model.model_id} always thinks: that cannot be turned off"
    elif kind and kind not in (accepted := THINKING_TYPES.get(model.thinking, (kind,))):
        yield "thinking", f"{model.model_id} does not think as {kind}; known are {', '.join(accepted)}"
    effort = params.get("output_config", {}).get("effort")
    yield from _effort_refused(model, "output_config", effort)
    if kind == "disabled" and effort in EFFORTS_THAT_THINK:
        yield (
            "output_config",
            f"{model.model_id} takes the effort {effort} only while it thinks, and that is turned off",
        )
    if model.thinking in ("always", "default", "adaptive"):
        yield from _no_sampling(model, params)
    elif kind == "enabled" and params.get("temperature", 1) != 1:
        yield "temperature", f"{model.model_id} takes no temperature but 1 while it thinks"


def _messages_format(_model: Thinker, value: Any) -> Params:
    kind, schema = _format_of(value)
    if kind == "json_object":
        raise Bad("Anthropic's API knows no json_object; state a json_schema")
    return {} if kind == "text" else {"output_config": {"format": {"type": kind, "schema": schema["schema"]}}}


def _calls_at_once(_model: Thinker, value: Any) -> Params:
    return {} if truth(value) else {ONE_CALL: True}


MESSAGES = Dialect(
    {
        "thinking": table(
            {
                "type": one_of(["adaptive", "between_tools", "enabled", "disabled"]),
                "budget_tokens": whole_number(1_024, MOST),
                "display": one_of(["omitted", "summarized"]),
            }
        ),
        "output_config": table({"effort": one_of(EFFORTS[2:]), "format": mapping}),
        "temperature": number(0, 1),
        "top_p": number(0, 1),
        "top_k": whole_number(0, MOST),
        "stop_sequences": texts,
        "service_tier": text,
        "metadata": mapping,
        ONE_CALL: truth,
    },
    _messages_effort,
    _messages_refused,
    {
        **{name: _field_named(name) for name in ("temperature", "top_p", "top_k")},
        **_output_from(1),
        "stop": lambda _model, value: {"stop_sequences": [value] if isinstance(value, str) else value},
        "user": lambda _model, value: {"metadata": {"user_id": text(value)}},
        "parallel_tool_calls": _calls_at_once,
        "reasoning_effort": lambda model, value: _messages_effort(model, one_of(EFFORTS)(value)),
        "response_format": _messages_format,
    },
)
ANTHROPIC_MESSAGES = replace(MESSAGES, refused=_anthropic_refused)
