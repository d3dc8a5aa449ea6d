"""Gateways that speak chat completions: OpenRouter and LiteLLM, each with its own list of models and their windows."""

from collections.abc import Mapping
from typing import Any

from tests.doubles.brains import Brain, echo
from tests.doubles.chat import ChatDouble
from tests.doubles.chat_rules import Family
from tests.doubles.rules import Rule, too_long
from tests.doubles.serving import Answer, Exchange

TOO_LONG = Rule(
    "too long",
    too_long,
    "This endpoint's maximum context length is {window} tokens. However, you requested about {tokens} tokens. Please "
    "reduce the length of either one.",
)
NO_KEY = Answer({"error": {"message": "No auth credentials found", "code": 401}}, 401)


class OpenRouterDouble(ChatDouble):
    """Its list states what the model could hold, and what the provider that it is routed to does."""

    paths = ("/api/v1/chat/completions", "/chat/completions")

    def __init__(self, brain: Brain = echo, *, window: int = 32_768, longest: int = 131_072, **traits: Any) -> None:
        family = Family("openrouter", "qwen/qwen3-14b", (TOO_LONG,), needs_key=True)
        super().__init__(family, brain, window=window, **traits)
        self.longest = longest
        self.routes["GET", "/api/v1/models"] = self.list_models

    def model_fields(self) -> Mapping[str, Any]:
        served = {"context_length": self.family.window, "max_completion_tokens": None, "is_moderated": False}
        return {"canonical_slug": self.model, "context_length": self.longest, "top_provider": served}


class LiteLLMDouble(ChatDouble):
    """Its list in OpenAI's words names no window; its own one, for those with a key, does."""

    def __init__(self, brain: Brain = echo, *, window: int = 32_768, **traits: Any) -> None:
        super().__init__(Family("litellm", "house-model", (TOO_LONG,), needs_key=True), brain, window=window, **traits)
        self.routes["GET", "/model/info"] = self._info

    def model_fields(self) -> Mapping[str, Any]:
        return {"created": 1, "owned_by": "openai"}

    def _info(self, record: Exchange) -> Answer:
        if not record.account:
            return NO_KEY
        told = {"max_input_tokens": self.family.window, "max_output_tokens": 4_096, "mode": "chat"}
        return Answer({"data": [{"model_name": self.model, "litellm_params": {}, "model_info": told}]})
