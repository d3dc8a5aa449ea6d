"""llama.cpp: chat completions, and its own API, which tells the running model's window and whether it takes images."""

from typing import Any
from urllib.parse import quote

from dominds.llm.models.model import Forcing, Form, LimitUnavailable, LoadedLimit, ProviderKind
from dominds.llm.providers import openai_chat
from dominds.llm.providers.server_window import read, root_of, tokens_in, truth_in

NAME = "llama.cpp"


def loaded_limit(base_url: str, model: str, key: str = "") -> LoadedLimit | LimitUnavailable:
    """Return the part of the window that one conversation may take.

    A plain server runs one model, whatever name is asked for. A router runs several, and is asked about the one
    without loading it.
    """
    address = f"{root_of(base_url)}/props"
    answer = read(address, key, NAME)
    if not answer.failure and is_router(answer.document):
        answer = read(f"{address}?model={quote(model, safe='')}&autoload=false", key, NAME)
    if answer.failure:
        return LimitUnavailable(answer.failure)
    tokens = window_in(answer.document)
    if tokens is None:
        return LimitUnavailable("llama.cpp reports no n_ctx at /props. Update it, or state the window here.")
    return LoadedLimit(tokens, "n_ctx")


def is_router(props: Any) -> bool:
    """Check for a router, which starts a server for each requested model and has no window of its own."""
    return isinstance(props, dict) and props.get("role") == "router"


def window_in(props: Any) -> int | None:
    """Return the window of one slot: the server divides its context among several conversations."""
    if not isinstance(props, dict):
        return None
    slot = props.get("default_generation_settings")
    return tokens_in(slot.get("n_ctx") if isinstance(slot, dict) else None) or tokens_in(props.get("n_ctx"))


def sees(base_url: str, model: str, key: str = "") -> bool | None:
    """Check whether the server was started with a projector for images."""
    address = f"{root_of(base_url)}/props"
    props = read(address, key, NAME).document
    if is_router(props):
        props = read(f"{address}?model={quote(model, safe='')}&autoload=false", key, NAME).document
    modalities = props.get("modalities") if isinstance(props, dict) else None
    return truth_in(modalities.get("vision")) if isinstance(modalities, dict) else None


LLAMACPP = ProviderKind(
    "llamacpp",
    openai_chat.connect,
    form=Form(anchored=True),
    label="llama.cpp",
    is_local=True,
    takes_several_system=True,
    embeds=True,
    loaded_window=loaded_limit,
    sees=sees,
    forcing=Forcing.REQUIRED,
)
