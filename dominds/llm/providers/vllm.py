"""vLLM and SGLang: chat completions, with the window in the list of models."""

from dominds.llm.models.model import LimitUnavailable, LoadedLimit, ProviderKind
from dominds.llm.providers import openai_chat
from dominds.llm.providers.listed_window import limit_in
from dominds.llm.providers.server_window import list_entries

NAME = "vLLM"


def loaded_limit(base_url: str, model: str, key: str = "") -> LoadedLimit | LimitUnavailable:
    entries = list_entries(f"{base_url.rstrip('/')}/models", key, NAME, "data")
    return LimitUnavailable(entries) if isinstance(entries, str) else limit_in(entries, model)


VLLM = ProviderKind(
    "vllm",
    openai_chat.connect,
    label="vLLM or SGLang",
    is_local=True,
    takes_several_system=True,
    embeds=True,
    modalities=("text", "image"),
    loaded_window=loaded_limit,
)
