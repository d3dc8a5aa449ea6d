"""vLLM and SGLang: OpenAI's wire, with the window in the list of models."""

from typing import Any

from dominds.llm.models.model import LimitUnavailable, LoadedLimit, ProviderKind
from dominds.llm.providers import openai_chat
from dominds.llm.providers.server_window import listed, tokens_in

NAME = "vLLM"


def loaded_limit(base_url: str, model: str, key: str = "") -> LoadedLimit | LimitUnavailable:
    entries = listed(f"{base_url.rstrip('/')}/models", key, NAME, "data")
    return LimitUnavailable(entries) if isinstance(entries, str) else limit_in(entries, model)


def limit_in(entries: tuple[dict[str, Any], ...], model: str) -> LoadedLimit | LimitUnavailable:
    entry = next((entry for entry in entries if entry.get("id") == model), None)
    if entry is None:
        known = ", ".join(sorted(str(entry.get("id")) for entry in entries)[:10]) or "none"
        return LimitUnavailable(f"The server does not serve the model '{model}' (it lists: {known}).")
    tokens = tokens_in(entry.get("max_model_len"))
    if tokens is None:
        return LimitUnavailable(f"The server reports no max_model_len for '{model}'. State context_length in llm.yaml.")
    return LoadedLimit(tokens, "max_model_len")


VLLM = ProviderKind(
    "vllm",
    openai_chat.connected,
    label="vLLM or SGLang",
    takes_several_system=True,
    embeds=True,
    loaded_window=loaded_limit,
    can_force=True,
)
