"""The parameters of each wire format: what each may hold, and what a model refuses of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dominds.llm.json_text import dumped
from dominds.yaml_fields import Bad, Field, anything, number, one_of, shown, text, texts, truth, whole_number

Params = Mapping[str, Any]
Fault = tuple[str, str]  # name, reason

EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]
SAMPLING = ("temperature", "top_p", "top_k")
MOST = 1_000_000_000
# Tokens of thinking for an effort, where a model takes a budget alone.
BUDGETS = {"minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_576, "max": 32_000}


class Thinker(Protocol):
    """What the parameters need to know of a model: its ``thinking``, as the catalog has it, and what turns that off."""

    @property
    def model_id(self) -> str: ...

    @property
    def thinking(self) -> str: ...

    @property
    def thinking_off(self) -> Params: ...


def mapping(value: Any) -> Params:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise Bad(f"expected a mapping, found {shown(value)}")
    try:
        dumped(value)
    except TypeError as error:
        raise Bad(f"expected values that JSON knows ({error})") from error
    return dict(value)


def table(known: Mapping[str, Field]) -> Field:
    """A mapping of these fields and no others."""

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


def _text_or_texts(value: Any) -> Any:
    return text(value) if isinstance(value, str) else texts(value)


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """A wire format's parameters. ``of_effort`` says in its words how hard a model is to think, ``refused`` what of them a
    model does not take."""

    fields: Mapping[str, Field] = field(repr=False)
    of_effort: Callable[[Thinker, str], Params] = field(repr=False)
    refused: Callable[[Thinker, Params], Iterator[Fault]] = field(repr=False)


# Chat completions: what OpenAI named, and what vendors and local servers added


def _chat_effort(model: Thinker, effort: str) -> Params:
    return model.thinking_off if effort == "none" and model.thinking_off else {"reasoning_effort": effort}


def _chat_refused(model: Thinker, params: Params) -> Iterator[Fault]:
    yield from _effort_refused(model, "reasoning_effort", params.get("reasoning_effort"))


def _effort_refused(model: Thinker, name: str, effort: Any) -> Iterator[Fault]:
    if effort == "none" and model.thinking == "always":
        yield name, f"{model.model_id} always thinks: its effort cannot be none"
    elif effort not in (None, "none") and model.thinking == "never":
        yield name, f"{model.model_id} does not think: there is no effort to set"


CHAT = Dialect(
    {
        "reasoning_effort": one_of(EFFORTS),
        "verbosity": one_of(["low", "medium", "high"]),
        "temperature": number(0, 2),
        "top_p": number(0, 1),
        "top_k": whole_number(-1, MOST),
        "min_p": number(0, 1),
        "presence_penalty": number(-2, 2),
        "frequency_penalty": number(-2, 2),
        "repetition_penalty": number(0, 10),
        "repeat_penalty": number(0, 10),
        "seed": whole_number(-MOST, MOST),
        "stop": _text_or_texts,
        "logit_bias": mapping,
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
        "think": anything,  # Ollama, a truth or an effort
        "options": mapping,
        "keep_alive": anything,
        "ttl": whole_number(0, MOST),  # LM Studio
    },
    _chat_effort,
    _chat_refused,
)


# OpenAI's Responses


def _responses_refused(model: Thinker, params: Params) -> Iterator[Fault]:
    effort = params.get("reasoning", {}).get("effort")
    yield from _effort_refused(model, "reasoning", effort)
    if model.thinking not in ("", "never"):
        if effort == "minimal":  # of GPT-5 alone
            yield "reasoning", f"{model.model_id} does not know the effort minimal; its least is low"
        yield from _no_sampling(model, params)


def _no_sampling(model: Thinker, params: Params) -> Iterator[Fault]:
    for name in SAMPLING:
        if params.get(name) not in (None, 1):
            yield name, f"{model.model_id} does not take {name}: a model that thinks chooses by itself"


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
    },
    lambda model, effort: {"reasoning": {"effort": effort}},
    _responses_refused,
)


# Anthropic's Messages

THINKING_TYPES = {  # that a model takes, by when it thinks; any where that is not known
    "always": ("adaptive", "between_tools"),
    "default": ("adaptive", "between_tools", "disabled"),
    "budget": ("enabled", "disabled"),
}


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
    yield from _effort_refused(model, "output_config", params.get("output_config", {}).get("effort"))
    if model.thinking in ("always", "default", "adaptive"):
        yield from _no_sampling(model, params)
    elif kind == "enabled" and params.get("temperature", 1) != 1:
        yield "temperature", f"{model.model_id} takes no temperature but 1 while it thinks"


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
    },
    _messages_effort,
    _messages_refused,
)
