"""Ollama: chat completions, and its own API, which tells a running model's window and whether it takes images.

Ollama silently cuts the start of a prompt that is longer than the window, so the window must be known before. No
parameter of ``/v1``, such as ``num_ctx``, changes it.
"""

import re
from typing import Any

from dominds.llm.models.model import LimitUnavailable, LoadedLimit, ProviderKind
from dominds.llm.providers import openai_chat
from dominds.llm.providers.server_window import list_entries, read, root_of, tokens_in

NAME = "Ollama"
NUM_CTX = re.compile(r"^num_ctx\s+(\d+)\s*$", re.M)


def loaded_limit(base_url: str, model: str, key: str = "") -> LoadedLimit | LimitUnavailable:
    """Return the window of the running model, or the one that its file sets, not the longest that it could have."""
    entries = list_entries(f"{root_of(base_url)}/api/ps", key, NAME, "models")
    if isinstance(entries, str):
        return LimitUnavailable(entries)
    tokens = running_window(entries, model)
    if tokens is not None:
        return LoadedLimit(tokens, "context_length, /api/ps")
    shown = read(f"{root_of(base_url)}/api/show", key, NAME, {"model": model})
    tokens = set_window(shown.document)
    if tokens is not None:
        return LoadedLimit(tokens, "num_ctx, /api/show")
    return LimitUnavailable(
        f"Ollama does not run '{model}' now, and its file sets no num_ctx. Its window is known from its first answer "
        "on."
    )


def running_window(entries: tuple[dict[str, Any], ...], model: str) -> int | None:
    """Return the window of a running model. A name without a tag means the tag ``latest``."""
    names = {model, f"{model}:latest"} if ":" not in model else {model}
    entry = next((entry for entry in entries if {entry.get("name"), entry.get("model")} & names), None)
    return tokens_in(entry.get("context_length")) if entry else None


def set_window(shown: Any) -> int | None:
    parameters = shown.get("parameters") if isinstance(shown, dict) else None
    match = NUM_CTX.search(parameters) if isinstance(parameters, str) else None
    return tokens_in(int(match.group(1))) if match else None


def sees(base_url: str, model: str, key: str = "") -> bool | None:
    """Check whether the model takes images. Older versions name no capabilities."""
    shown = read(f"{root_of(base_url)}/api/show", key, NAME, {"model": model}).document
    capabilities = shown.get("capabilities") if isinstance(shown, dict) else None
    return "vision" in capabilities if isinstance(capabilities, list) else None


OLLAMA = ProviderKind(
    "ollama",
    openai_chat.connect,
    label="Ollama",
    is_local=True,
    can_force=False,  # it does not read tool_choice
    takes_several_system=True,
    embeds=True,
    loaded_window=loaded_limit,
    sees=sees,
    modalities=("text", "image"),
)
