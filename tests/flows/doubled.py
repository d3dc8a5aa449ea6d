"""Dialogs of shipped models whose servers are the strict doubles of ``tests.doubles``."""

from collections.abc import Callable
from typing import Any

from dialogs.models import Dialog
from dominds.llm.catalog.catalog import current_catalog
from tests.dialogs.factories import make_dialog
from tests.doubles.brains import Brain
from tests.doubles.chat import ChatDouble
from tests.doubles.local_servers import LlamaCppDouble, LMStudioDouble, OllamaDouble, SGLangDouble, VLLMDouble
from tests.doubles.messages import MessagesDouble
from tests.doubles.responses import ResponsesDouble
from tests.doubles.serving import Double
from tests.flows.conftest import Minds

Start = Callable[..., Double]  # with a brain and a model


def messages(family: str) -> Start:
    return lambda brain, model, **traits: MessagesDouble(family, brain, model=model, **traits)


def responses(family: str) -> Start:
    return lambda brain, model, **traits: ResponsesDouble(family, brain, model=model, **traits)


def chat(family: str) -> Start:
    return lambda brain, model, **traits: ChatDouble(family, brain, model=model, **traits)


def local(server: Callable[..., Double], window: int) -> Start:
    return lambda brain, model, **traits: server(brain, model=model, **{"window": window, **traits})


DIALECTS: dict[str, Start] = {
    "anthropic/claude-opus-5-5": messages("anthropic-5.5"),
    "anthropic/claude-fable-5-2": messages("anthropic-5.5"),
    "anthropic/claude-sonnet-5-5": messages("anthropic-5.5-sonnet"),
    "anthropic/claude-haiku-5-5": messages("anthropic-5.5-haiku"),
    "anthropic/claude-opus-5": messages("anthropic-5"),
    "anthropic/claude-haiku-4-5": messages("anthropic-4"),
    "openai/gpt-5.6-terra": responses("openai-5.6"),
    "openai/gpt-6.1-sol": responses("openai-6.1"),
    "google/gemini-4-argon": chat("gemini"),
    "moonshot/kimi-k3": chat("kimi"),
    "deepseek/deepseek-flash": messages("deepseek"),
    "z.ai/glm-5.3": messages("glm"),
    "alibaba/qwen3.8-max": chat("qwen"),
    "minimax.io/MiniMax-M3": chat("minimax"),
    "lmstudio/qwen3-14b": local(LMStudioDouble, 131_072),
    "llamacpp/default": local(LlamaCppDouble, 131_072),
    "ollama/qwen3": local(OllamaDouble, 131_072),
    "vllm/qwen3-14b": local(VLLMDouble, 131_072),
    "sglang/qwen3-14b": local(SGLangDouble, 131_072),
}
# Servers that no shipped provider names, as an operator writes them: the API's type, and fields of the model.
WRITTEN: dict[str, tuple[str, Any]] = {
    "vllm": ("vllm", {}),
    "sglang": ("openai-compatible", {"context_length": 131_072, "output_length": 8_192}),
}


def start(name: str, brain: Brain, **traits: Any) -> Double:
    """The double of a shipped model's server, to be entered."""
    return DIALECTS[name](brain, name.split("/")[1], **traits)


def dialog_at(double: Double, minds: Minds, monkeypatch: Any, name: str, fields: Any = None, **agent: Any) -> Dialog:
    """A dialog of the shipped model ``name`` with its server at the double;
    ``fields`` are laid over the model's entry."""
    name_server(double, minds, monkeypatch, name, fields)
    provider, model = name.split("/")
    return make_dialog(provider=provider, model=model, **agent)


def name_server(double: Double, minds: Minds, monkeypatch: Any, name: str, fields: Any = None) -> None:
    """Let ``llm.yaml`` say that the double is the server of this model, with a key for it."""
    provider, model = name.split("/")
    api_type, written = WRITTEN.get(provider, ("", {}))
    models = {model: {**written, **(fields or {})}}
    if api_type:
        minds.providers[provider] = {"apiType": api_type, "baseUrl": f"{double.url}/v1", "models": models}
        minds.write()
        return
    shipped = current_catalog(minds.folder).providers[provider]
    is_chat = isinstance(double, ChatDouble)
    has_version = shipped.kind.name.startswith("anthropic") and not is_chat
    entry: dict[str, Any] = {"baseUrl": double.url if has_version else f"{double.url}/v1"}
    if is_chat and shipped.kind.name == "anthropic-compatible":
        entry["apiType"] = "openai-compatible"  # the other dialect of a vendor that speaks two
    minds.providers[provider] = {**entry, "models": models}
    minds.write()
    if shipped.api_key_env:
        monkeypatch.setenv(shipped.api_key_env, "k-stable-0123456789")
