"""The kinds of providers, by their names in ``apiType``. A new kind needs a module with its wrapper and a line here."""

from dataclasses import replace

from dominds.llm.models.model import ModelInfo, ProviderKind
from dominds.llm.provider import Provider, RequestRefused
from dominds.llm.providers.anthropic_messages import ANTHROPIC, ANTHROPIC_COMPATIBLE
from dominds.llm.providers.llamacpp import LLAMACPP
from dominds.llm.providers.lmstudio import LMSTUDIO
from dominds.llm.providers.ollama import OLLAMA
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE
from dominds.llm.providers.openai_responses import OPENAI
from dominds.llm.providers.scripted import SCRIPTED
from dominds.llm.providers.vllm import VLLM

KINDS = {
    kind.name: kind
    for kind in (
        OPENAI_COMPATIBLE,
        OPENAI,
        ANTHROPIC,
        ANTHROPIC_COMPATIBLE,
        LMSTUDIO,
        OLLAMA,
        LLAMACPP,
        VLLM,
        SCRIPTED,
    )
}


def kind_named(name: str) -> ProviderKind:
    """Return the kind of this name. One of an unknown name raises ``RequestRefused`` when it connects."""
    return KINDS.get(name) or ProviderKind(name, _refuse)


def _refuse(model: ModelInfo, key: str) -> Provider:
    raise RequestRefused(
        f"The apiType '{model.kind.name}' of '{model.provider_id}' is not known. Correct the server's configuration."
    )


def with_window_rules_of(kind: ProviderKind, other: ProviderKind) -> ProviderKind:
    """Return a kind with the window rules of another one, for scripts that play its models."""
    return replace(kind, needs_limit=other.needs_limit, overruns=other.overruns, plays=other.name)
