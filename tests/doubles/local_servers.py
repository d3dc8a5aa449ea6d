"""Servers on one's own machine that speak chat completions: LM Studio, llama.cpp, vLLM, SGLang and Ollama.

Each tells its real window where the real one does. ``alternates`` loads a model whose template wants user and assistant
in turn, as Mistral's and Gemma's do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from tests.doubles import chat_templates
from tests.doubles.brains import Brain, Message, Prompt, Reply, echo
from tests.doubles.chat import ChatDouble
from tests.doubles.chat_families import no_room
from tests.doubles.chat_rules import ChatRequest, Family, Reasoning
from tests.doubles.counting import Unit, count_text
from tests.doubles.rules import Offence, Refusal, Rule, too_long
from tests.doubles.serving import Answer, Exchange, UsageMode
from tests.doubles.streams import data

MAXIMUM_WINDOW = 131_072  # what the model was trained for, which says nothing of how it was loaded
RUBBISH = "the the the of of, and and"


def _string_error(refusal: Refusal) -> Any:
    return {"error": refusal.message}


def _numbered_error(refusal: Refusal) -> Any:
    error = {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.status}
    return {"error": {**error, **refusal.more}}


def _sglang_error(refusal: Refusal) -> Any:
    error = {"message": refusal.message, "type": "BadRequestError", "param": refusal.param, "code": refusal.status}
    return {"object": "error", **error}


# -- what offends


def _object_choice(request: ChatRequest) -> Offence:
    return {} if isinstance(request.body.get("tool_choice"), dict) else None


def _late_system(request: ChatRequest) -> Offence:
    return {} if any(message["role"] == "system" for message in request.messages[1:]) else None


def _exceeding(request: ChatRequest) -> Offence:
    result = too_long(request)
    return result and {**result, "more": {"n_prompt_tokens": result["tokens"], "n_ctx": result["window"]}}


def _nothing_left(request: ChatRequest) -> Offence:
    """vLLM gives what is left of the window where no budget is asked for."""
    left = request.family.window - request.prompt_tokens
    return {"left": left} if request.budget is None and left < 1 else None


def _over_window(request: ChatRequest) -> Offence:
    excess = request.prompt_tokens - request.family.window
    return {"excess": excess} if excess > 0 else None


LMStudioOverflow = Literal["n_keep", "truncate", "keep_first", "exceeded", "rubbish"]
TOO_LONG_WORDS: Mapping[LMStudioOverflow, str] = {
    "n_keep": "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: "
    "{tokens}>= n_ctx: {window}). Try to load the model with a larger context length, or provide a shorter input.",
    "truncate": "Cannot truncate prompt with n_keep ({tokens}) >= n_ctx ({window})",
    "keep_first": "Trying to keep the first {tokens} tokens when context the overflows. However, the model is loaded "
    "with context length of only {window} tokens, which is not enough. Try to load the model with a larger context "
    "length, or provide a shorter input.",
    "exceeded": "Context size has been exceeded.",  # without any size
}
OBJECT_CHOICE = Rule(
    "object choice", _object_choice, "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"
)
LATE_SYSTEM = Rule(
    "late system", _late_system, "Error rendering prompt with jinja template: System message must be at the beginning."
)
EXCEEDING = Rule(
    "too long",
    _exceeding,
    "request ({tokens} tokens) exceeds the available context size ({window} tokens), try increasing it",
    type="exceed_context_size_error",
)
NO_PROJECTOR = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
VLLM_RULES = (
    Rule(
        "nothing left",
        _nothing_left,
        "max_tokens must be at least 1, got {left}.",
        type="BadRequestError",
        param="max_tokens",
    ),
    Rule(
        "no room",
        no_room,
        "This model's maximum context length is {window} tokens. However, you requested {budget} output tokens and "
        "your prompt contains at least {tokens} input tokens, for a total of at least {total} tokens. Please reduce "
        "the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, "
        "value={tokens})",
        type="BadRequestError",
        param="input_tokens",
    ),
)
SGLANG_RULES = (
    Rule(
        "too long", too_long, "The input ({tokens} tokens) is longer than the model's context length ({window} tokens)."
    ),
    Rule(
        "no room",
        no_room,
        "Requested token count exceeds the model's maximum context length of {window} tokens. You requested a total of "
        "{total} tokens: {tokens} tokens from the input messages and {budget} tokens for the completion. Please reduce "
        "the number of tokens in the input messages or the completion to fit within the limit.",
    ),
)
CLOUD_RULE = Rule("too long", _over_window, "prompt too long; exceeded max context length by {excess} tokens")


class LocalDouble(ChatDouble):
    """``window`` is what the model is loaded with. ``reasoning="think"``: no parser takes it out of the content.

    ``sees``: the model takes images, as its server says where the real one does. ``by_template``: prompts and answers
    are counted by the published chat template and vocabulary of the model's family, and hold no images.
    """

    kind: Family

    def __init__(
        self,
        brain: Brain = echo,
        *,
        model: str | None = None,
        sees: bool = True,
        window: int = 32_768,
        usage: UsageMode = "whole",
        weight: float = 1,
        reasoning: Reasoning | None = None,
        calls_as_text: bool = False,
        alternates: bool = False,
        by_template: bool = False,
        rules: tuple[Rule, ...] | None = None,
    ) -> None:
        family = replace(self.kind, sees=sees, alternates=alternates, rules=self.kind.rules if rules is None else rules)
        traits: dict[str, Any] = {"usage": usage, "weight": weight, "reasoning": reasoning}
        super().__init__(family, brain, model=model, window=window, calls_as_text=calls_as_text, **traits)
        self.by_template = by_template

    def count(self, text: str) -> int:
        return chat_templates.count_text(self.model, text) if self.by_template else super().count(text)

    def count_prompt(self, request: ChatRequest, units: Sequence[Unit]) -> int:
        if not self.by_template:
            return super().count_prompt(request, units)
        return round(chat_templates.count_prompt(self.model, dict(request.body)) * self.weight)

    def load(self, window: int) -> None:
        """Load the model anew, as an operator does."""
        self.family = replace(self.family, window=window)

    def serve_json(self, method: str, path: str, body: Callable[[], Any]) -> None:
        def route(record: Exchange) -> Answer:
            return Answer(body())

        self.routes[method, path] = route


def _local(name: str, model: str, **traits: Any) -> Family:
    return Family(name, model, maximum=MAXIMUM_WINDOW, needs_key=False, **traits)


class LMStudioDouble(LocalDouble):
    """``overflow``: the words of a refusal, or ``rubbish``: status 200 and nonsense, the middle of the prompt cut out.

    ``tells_window``: its listings say what the model was loaded with.
    """

    kind = _local("lmstudio", "qwen3-14b", error=_string_error)

    def __init__(
        self,
        brain: Brain = echo,
        *,
        window: int = 4_096,
        overflow: LMStudioOverflow = "n_keep",
        is_loaded: bool = True,
        tells_window: bool = True,
        **traits: Any,
    ) -> None:
        self.is_loaded, self.tells_window, self.overflow = is_loaded, tells_window, overflow
        refuses = () if overflow == "rubbish" else (Rule("too long", too_long, TOO_LONG_WORDS[overflow]),)
        super().__init__(brain, window=window, rules=(OBJECT_CHOICE, LATE_SYSTEM, *refuses), **traits)
        self.serve_json("GET", "/api/v0/models", self._v0)
        self.serve_json("GET", "/api/v1/models", self._v1)

    def fit(self, request: ChatRequest, prompt: Prompt) -> Prompt:
        if prompt.prompt_tokens <= self.family.window:
            return prompt
        kept = (prompt.messages[0], prompt.messages[-1])
        return replace(prompt, messages=kept, prompt_tokens=self.family.window // 2)

    def garble(self, request: ChatRequest, reply: Reply) -> Reply:
        is_cut = request.prompt_tokens > self.family.window
        return replace(reply, text=RUBBISH, calls=(), reasoning="") if is_cut else reply

    def _v0(self) -> Any:
        entry: dict[str, Any] = {"id": self.model, "object": "model", "type": "vlm" if self.family.sees else "llm"}
        entry |= {"max_context_length": MAXIMUM_WINDOW, "state": "loaded" if self.is_loaded else "not-loaded"}
        loaded = {"loaded_context_length": self.family.window} if self.is_loaded and self.tells_window else {}
        return {"object": "list", "data": [{**entry, **loaded}]}

    def _v1(self) -> Any:
        config = {"context_length": self.family.window} if self.tells_window else {}
        instance = {"id": self.model, "config": config}
        entry: dict[str, Any] = {"type": "llm", "key": self.model, "max_context_length": MAXIMUM_WINDOW}
        entry["capabilities"] = {"vision": self.family.sees, "trained_for_tool_use": True}
        return {"models": [{**entry, "loaded_instances": [instance] if self.is_loaded else []}]}


class LlamaCppDouble(LocalDouble):
    """``overflow_status`` 200: the refusal is the only event of the stream, or the whole body, as some builds do.

    ``is_router``: it starts a server for each model, and tells the window of one that is loaded and asked for by name.
    """

    kind = _local("llamacpp", "qwen3-14b", error=_numbered_error, words={"unseen image": NO_PROJECTOR})

    def __init__(
        self,
        brain: Brain = echo,
        *,
        overflow_status: Literal[400, 500, 200] = 400,
        is_router: bool = False,
        is_loaded: bool = True,
        **traits: Any,
    ) -> None:
        self.overflow_status, self.is_router, self.is_loaded = overflow_status, is_router, is_loaded
        super().__init__(brain, rules=(EXCEEDING,), **traits)
        self.routes["GET", "/props"] = self._props

    def refused(self, refusal: Refusal, record: Exchange) -> Answer:
        if refusal.type != EXCEEDING.type:
            return super().refused(refusal, record)
        refusal = replace(refusal, status=self.overflow_status)
        body = {"error": {**self.family.error(refusal)["error"], "code": 500 if self.overflow_status == 500 else 400}}
        is_stream = self.overflow_status == 200 and record.body.get("stream")
        return Answer(events=[data(body)]) if is_stream else Answer(body, self.overflow_status)

    def model_fields(self) -> Mapping[str, Any]:
        return {"owned_by": "llamacpp", "meta": {"n_ctx_train": MAXIMUM_WINDOW}}

    def _props(self, record: Exchange) -> Answer:
        model = parse_qs(urlsplit(record.path).query).get("model")
        if self.is_router and model is None:
            none = {"params": None, "n_ctx": 0}
            return Answer({"role": "router", "max_instances": 4, "default_generation_settings": none})
        if self.is_router and (model != [self.model] or not self.is_loaded):
            error = {"code": 400, "message": "model is not loaded", "type": "invalid_request_error"}
            return Answer({"error": error}, 400)
        modalities = {"vision": self.family.sees, "audio": False}
        slot = {"n_ctx": self.family.window}
        return Answer({"default_generation_settings": slot, "total_slots": 1, "modalities": modalities})


class VLLMDouble(LocalDouble):
    """Prompt and output must fit the window together."""

    kind = _local(
        "vllm",
        "Qwen/Qwen3-14B",
        rules=VLLM_RULES,
        reasoning="reasoning",
        error=_numbered_error,
        words={"unseen image": "At most 0 image(s) may be provided in one prompt."},
    )

    def model_fields(self) -> Mapping[str, Any]:
        return {"owned_by": "vllm", "max_model_len": self.family.window}


class SGLangDouble(LocalDouble):
    kind = _local("sglang", "Qwen/Qwen3-14B", rules=SGLANG_RULES, error=_sglang_error)

    def __init__(self, brain: Brain = echo, **traits: Any) -> None:
        super().__init__(brain, **traits)
        self.serve_json("GET", "/get_server_info", self._info)

    def model_fields(self) -> Mapping[str, Any]:
        return {"owned_by": "sglang", "max_model_len": self.family.window}

    def _info(self) -> Any:
        return {"model_path": self.model, "context_length": self.family.window}


class OllamaDouble(LocalDouble):
    """Cuts the start of what is too long, keeps what fits half of the window, and reports that as the prompt.

    ``is_cloud``: refuses it, as its hosted models do. ``num_ctx`` and ``tool_choice`` are read by nobody here.
    """

    kind = _local("ollama", "qwen3:14b", reasoning="reasoning")

    def __init__(self, brain: Brain = echo, *, window: int = 4_096, is_cloud: bool = False, **traits: Any) -> None:
        super().__init__(brain, window=window, rules=(CLOUD_RULE,) if is_cloud else (), **traits)
        self.serve_json("GET", "/api/ps", self._running)
        self.serve_json("GET", "/api/tags", self._pulled)
        self.serve_json("POST", "/api/show", self._shown)

    def fit(self, request: ChatRequest, prompt: Prompt) -> Prompt:
        prompt = replace(prompt, required_tools=())
        if prompt.prompt_tokens <= self.family.window:
            return prompt
        half, tokens, kept = self.family.window // 2, 0, list[Message]()
        for message in reversed(prompt.messages):
            size = round(count_text(message.text) * self.weight)
            if tokens + size > half and kept:
                break
            tokens += size
            kept.insert(0, message)
        return replace(prompt, messages=tuple(kept), prompt_tokens=min(tokens, half))

    def _running(self) -> Any:
        return {"models": [{"name": self.model, "model": self.model, "context_length": self.family.window}]}

    def _pulled(self) -> Any:
        return {"models": [{"name": self.model, "model": self.model, "size": 1, "digest": "0" * 64, "details": {}}]}

    def _shown(self) -> Any:
        info = {"general.architecture": "qwen3", "qwen3.context_length": MAXIMUM_WINDOW}
        sight = ["vision"] if self.family.sees else []
        return {"model_info": info, "capabilities": ["completion", *sight, "tools", "thinking"]}
