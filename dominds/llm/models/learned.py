"""Traits of models that were learned from refusals, by provider and model id. They apply at once, in this process.

The catalog knows the traits of the models that it names. For the same models behind a gateway, under any id, refusals
are the only source.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import structlog

from dominds.llm.models.model import MODALITIES, Echo, ModelInfo
from dominds.llm.provider import ContextOverflow, ImagesRefused, OutputAboveMaximum, ProviderError

log = structlog.get_logger(__name__)

_LESSONS: tuple[tuple[str, str, Any], ...] = (
    # DeepSeek, in both of its wire formats; Kimi
    (r"(reasoning_content|content\[\]\.thinking).{0,60}(must be passed back|is missing)", "echo", Echo.CALLS),
    (r"missing a thought_signature", "echo", Echo.SIGNATURES),  # Google
    # LM Studio, and validators that accept only a word
    (r"tool_choice\b.{0,80}(type: .?object|(should|must) be a (valid )?string)", "forced_tool", "required"),
    (r"bound to a different conversation", "is_bound", True),  # Anthropic
    (r"roles must alternate|must alternate between .?user.? and .?assistant", "alternates", True),  # chat templates
    # Mistral
    (r"tool call id.{0,120}length of 9|tool call ids? should be alphanumeric.{0,40}length 9", "nine_ids", True),
)
# Bounds on the tools, with the number in the refusal: OpenAI until May 2025, Azure, and gateways to either.
_BOUNDS = (
    (r"tools\S*\.description\b.{0,80}maximum length (?P<most>\d+)", "description_chars"),
    (r"tools\S*\.description\b.{0,40}at most (?P<most>\d+) char", "description_chars"),
    (r"['`]tools['`]?: array too long.{0,60}maximum length (?P<most>\d+)", "most_tools"),
    (r"\btools\b: list should have at most (?P<most>\d+) item", "most_tools"),
)
LESSONS = tuple((re.compile(words, re.I | re.S), trait, value) for words, trait, value in _LESSONS)
BOUNDS = tuple((re.compile(words, re.I | re.S), trait) for words, trait in _BOUNDS)


def _is_bound(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _are_modalities(value: Any) -> bool:
    return isinstance(value, list | tuple) and set(value) <= set(MODALITIES)


SOUND: Mapping[str, Callable[[Any], bool]] = {
    "echo": lambda value: value in list(Echo),
    "forced_tool": lambda value: value == "required",
    **dict.fromkeys(("is_bound", "alternates", "nine_ids"), lambda value: value is True),
    "modalities": _are_modalities,
    **dict.fromkeys(("context_length", "output_length", "description_chars", "most_tools"), _is_bound),
}
_traits: dict[tuple[str, str], tuple[tuple[str, Any], ...]] = {}


def learn(model: ModelInfo, error: ProviderError) -> bool:
    """Learn from a refusal. Return whether anything was new: if so, the same request may succeed in another form."""
    lessons = {trait: value for words, trait, value in LESSONS if words.search(str(error))}
    lessons |= {trait: int(found["most"]) for words, trait in BOUNDS if (found := words.search(str(error)))}
    if isinstance(error, OutputAboveMaximum) and error.most:
        lessons["output_length"] = error.most
    known = with_learned(model)
    if isinstance(error, ContextOverflow) and error.window and model.limit[0] is None:
        lessons["context_length"] = error.window
    if isinstance(error, ImagesRefused) and not model.states_modalities:
        lessons["modalities"] = tuple(one for one in known.modalities if one != "image")
    new = {trait: value for trait, value in lessons.items() if getattr(known, trait) != value}
    if new:
        key = (model.provider_id, model.model_id)
        _traits[key] = tuple({**dict(_traits.get(key, ())), **new}.items())
        log.info("trait_learned", provider=model.provider_id, model=model.model_id, traits=sorted(new))
    return bool(new)


def with_learned(model: ModelInfo) -> ModelInfo:
    """Return the model with its learned traits. Modalities that the operator states are kept."""
    traits = _traits.get((model.provider_id, model.model_id))
    return _with(model, traits) if traits else model


@lru_cache(maxsize=256)
def _with(model: ModelInfo, traits: tuple[tuple[str, Any], ...]) -> ModelInfo:
    return replace(
        model, **{name: value for name, value in traits if name != "modalities" or not model.states_modalities}
    )


def traits_of(model: ModelInfo) -> dict[str, Any]:
    """Return the learned traits of a model, as JSON values."""
    return dict(_traits.get((model.provider_id, model.model_id), ()))


def restore(provider_id: str, model_id: str, traits: Mapping[str, Any]) -> None:
    """Take over the traits that another process learned. Unknown traits and unsound values are ignored."""
    sound = {name: value for name, value in traits.items() if (is_sound := SOUND.get(name)) and is_sound(value)}
    if isinstance(echo := sound.get("echo"), str):
        sound["echo"] = Echo(echo)
    if "modalities" in sound:
        sound["modalities"] = tuple(sound["modalities"])
    if sound:
        _traits[provider_id, model_id] = tuple(sound.items())


def forget() -> None:
    _traits.clear()
