"""From a model's metadata to the provider that talks to it."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.http.endpoint import Endpoint
from dominds.llm.provider import AuthFailed, Provider, ProviderError, RequestRefused
from dominds.llm.providers.anthropic_messages import AnthropicMessages
from dominds.llm.providers.openai_chat import OpenAIChat
from dominds.llm.providers.openai_responses import OpenAIResponses
from dominds.llm.providers.scripted import Scripted
from dominds.redaction import remember


def connect(model: ModelInfo, *, environ: Mapping[str, str] = os.environ) -> Provider:
    """The provider for a model. Sends nothing; raises ``RequestRefused`` or ``AuthFailed`` when it cannot be called."""
    if model.unusable:
        raise RequestRefused(model.unusable)
    return _connected(model, key_of(model, environ))


def load_sdks(models: Iterable[ModelInfo], environ: Mapping[str, str] = os.environ) -> None:
    """Import what calls to these models need. An SDK takes a second, which the first person to ask would wait for."""
    for model in models:
        with suppress(ProviderError):  # it cannot be called, and says so when somebody tries
            match connect(model, environ=environ):
                case OpenAIChat() | OpenAIResponses():
                    import_module("openai")
                case AnthropicMessages():
                    import_module("anthropic")


def key_of(model: ModelInfo, environ: Mapping[str, str] = os.environ) -> str:
    """The key from the environment, or nothing for a provider that names no variable. Raises ``AuthFailed``."""
    if not model.api_key_env:
        return ""
    key = environ.get(model.api_key_env, "").strip()
    if not key:
        raise AuthFailed(
            f"The provider '{model.provider_id}' needs a key, and the environment variable {model.api_key_env} is "
            f"not set. Set it and start again, or choose another model."
        )
    if not key.isascii() or not key.isprintable():
        raise AuthFailed(f"The environment variable {model.api_key_env} holds characters that no key has. Correct it.")
    remember(key)  # whatever its variable is called: from now on no log line shows it
    return key


@lru_cache(maxsize=1024)
def _connected(model: ModelInfo, key: str) -> Provider:
    endpoint = Endpoint(model.base_url, key)
    match model.api_type:
        case "scripted":
            return Scripted(Path(model.script))
        case "openai":
            return OpenAIResponses(endpoint, model.provider_id, model.supports_tool_choice)
        case "openai-compatible" | "lmstudio":
            return OpenAIChat(endpoint, model.supports_tool_choice)
        case "anthropic" | "anthropic-compatible":
            return AnthropicMessages(
                endpoint,
                model.provider_id,
                output_length=model.output_length,
                supports_tool_choice=model.supports_tool_choice,
                is_anthropic=model.api_type == "anthropic",
            )
        case unknown:
            raise RequestRefused(f"The apiType '{unknown}' of '{model.provider_id}' is not known. Correct llm.yaml.")
