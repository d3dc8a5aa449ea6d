"""Windows that servers state in their lists of models, whichever software they run."""

from typing import Any

from dominds.llm.models.model import LimitUnavailable, LoadedLimit
from dominds.llm.providers.server_window import list_entries, root_of, tokens_in

NAME = "the server"
LIST_SECONDS = 600.0  # lifetime of a cached list: a vendor's is long and hardly changes
# The paths to the window in an entry of a list. The window of a running model comes before its greatest one.
FIELDS = (
    ("max_model_len",),  # vLLM and SGLang
    ("meta", "n_ctx"),  # llama.cpp; its n_ctx_train is not the window with which it runs
    ("n_ctx",),
    ("top_provider", "context_length"),  # OpenRouter: that of the provider it would call
    ("context_length",),
    ("context_window",),  # Groq
    ("max_input_tokens",),  # Anthropic
)
LITELLM_FIELDS = (("model_info", "max_input_tokens"), ("model_info", "max_tokens"))


def listed_window(base_url: str, model: str, key: str = "") -> LoadedLimit | LimitUnavailable:
    """Read a model's window from its server's list of models, or from LiteLLM's second list."""
    entries = list_entries(f"{base_url.rstrip('/')}/models", key, NAME, "data", LIST_SECONDS)
    if isinstance(entries, str):
        return LimitUnavailable(entries)
    limit = limit_in(entries, model)
    if isinstance(limit, LoadedLimit):
        return limit
    more = list_entries(f"{root_of(base_url)}/model/info", key, NAME, "data", LIST_SECONDS)
    entry = None if isinstance(more, str) else next((one for one in more if one.get("model_name") == model), None)
    return (_stated_window(entry, LITELLM_FIELDS) if entry else None) or limit


def anthropic_window(base_url: str, model: str, key: str = "") -> LoadedLimit | LimitUnavailable:
    """Read a model's window from a list in Anthropic's format. ``limit`` asks for one page instead of pages of 20."""
    url = f"{base_url.rstrip('/')}/v1/models?limit=1000"
    entries = list_entries(url, key, NAME, "data", LIST_SECONDS, is_anthropic=True)
    return LimitUnavailable(entries) if isinstance(entries, str) else limit_in(entries, model)


def limit_in(entries: tuple[dict[str, Any], ...], model: str) -> LoadedLimit | LimitUnavailable:
    """Return the window that a list states for a model, or the reason why there is none."""
    entry = next((entry for entry in entries if entry.get("id") == model), None)
    if entry is None:
        known = ", ".join(sorted(str(entry.get("id")) for entry in entries)[:10]) or "none"
        return LimitUnavailable(f"The server does not serve the model '{model}' (it lists: {known}).")
    unsaid = (
        f"The server's list names no window of '{model}'. "
        "State it on the model's page, or in the server's configuration."
    )
    return _stated_window(entry, FIELDS) or LimitUnavailable(unsaid)


def _stated_window(entry: dict[str, Any], fields: tuple[tuple[str, ...], ...]) -> LoadedLimit | None:
    for path in fields:
        value: Any = entry
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if tokens := tokens_in(value):
            return LoadedLimit(tokens, path[-1])
    return None
