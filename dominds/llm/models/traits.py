"""Traits of a model that shape its requests. They are stored as text, since the catalog's may change later."""

from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from dominds.llm.json_text import dump, parse
from dominds.llm.models.model import Echo, ImageBounds, ModelInfo, Thinking
from dominds.version import VERSION

TRAITS = (
    "supports_tool_choice",
    "forced_tool",
    "is_bound",
    "max_tokens_field",
    "output_length",
    "alternates",
    "nine_ids",
    "description_chars",
    "most_tools",
)
CHOICES: dict[str, Any] = {
    "thinking": Thinking,
    "echo": Echo,
    "modalities": tuple,
    "image_bounds": lambda bounds: ImageBounds(**bounds),
}
PARAMS = ("model_params", "thinking_off")


@lru_cache(maxsize=256)
def traits_of(model: ModelInfo) -> str:
    named = {name: getattr(model, name) for name in (*TRAITS, *CHOICES)}
    params = {name: dict(getattr(model, name)) for name in PARAMS}
    return dump({"by": VERSION, "kind": model.kind.name, **named, **params}).decode()


def with_traits(model: ModelInfo, text: str) -> ModelInfo:
    """Return the model as it was when its traits were stored. Traits that the text leaves out stay as they are now."""
    traits = parse(text)
    stored = {name: traits[name] for name in TRAITS if name in traits}
    stored |= {name: kind(traits[name]) for name, kind in CHOICES.items() if name in traits}
    stored |= {name: MappingProxyType(traits[name]) for name in PARAMS if name in traits}
    return replace(model, **stored)


def version_in(text: str) -> str:
    """Return the version of Dominds that stored the traits."""
    return str(parse(text)["by"])


def kind_in(text: str) -> str:
    """Return the name of the kind of provider."""
    return str(parse(text)["kind"])
