"""Parameters that people set for a model: how they are checked, merged and translated to the model's wire format.

``llm.yaml`` states a model's parameters under the names of its wire format. An agent's settings have sections:
``general``, with the same names for every format, and one for each kind of provider. Parameters below ``extra``, which
only one server knows, are not checked.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dominds.llm.models.dialects import EFFORTS, MOST, Dialect, Fault, Params, effort_within, mapping, table
from dominds.llm.models.model import ModelInfo
from dominds.yaml_fields import Bad, Field, number, one_of, quote_value, whole_number

MAX_TOKENS_FIELDS = ["max_tokens", "max_completion_tokens", "max_output_tokens"]
# The fields of a request that Dominds writes itself.
OUR_PARAMS = {
    "model",
    "messages",
    "input",
    "instructions",
    "system",
    "stream",
    "stream_options",
    "store",
    "include",
    "tools",
    "tool_choice",
    "prompt_cache_key",
    *MAX_TOKENS_FIELDS,
}
GENERAL, EXTRA = "general", "extra"
NOTHING: Params = MappingProxyType({})

GENERAL_FIELDS: dict[str, Field] = {
    "effort": one_of(EFFORTS),
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "max_tokens": whole_number(16, MOST),
}


def check(model: ModelInfo, params: Params) -> tuple[dict[str, Any], list[Fault]]:
    """Return the parameters that the model takes, and the faults in the others."""
    faults = [*_faults_of_fields(params, model.kind.params.fields)]
    sound = _without(params, faults)
    refused = [*model.kind.params.refused(model, sound)]
    return _without(sound, refused), faults + refused


def _without(params: Params, faults: list[Fault]) -> dict[str, Any]:
    wrong = {name for name, _ in faults}
    return {name: value for name, value in params.items() if name not in wrong}


def _faults_of_fields(params: Params, known: Mapping[str, Field]) -> Iterator[Fault]:
    for name, value in params.items():
        try:
            _read(name, value, known)
        except Bad as bad:
            yield name, str(bad)


def _read(name: str, value: Any, known: Mapping[str, Field]) -> None:
    if name in MAX_TOKENS_FIELDS:
        raise Bad(
            f"{name} is written by Dominds itself: set output_length of the model, or general.max_tokens of an agent"
        )
    if name in OUR_PARAMS:
        raise Bad(f"{name} is written by Dominds itself and cannot be set here")
    if name == EXTRA:
        if ours := sorted(OUR_PARAMS & set(mapping(value))):
            raise Bad(f"{ours[0]} is written by Dominds itself and cannot be set here")
    elif name not in known:
        raise Bad(f"{name} means nothing here; known are {', '.join(known)}, and anything below {EXTRA}")
    else:
        known[name](value)


def faults_of_settings(model: ModelInfo | None, settings: Params, dialects: Mapping[str, Dialect]) -> list[Fault]:
    """Return the faults in the sections of an agent's settings. ``dialects`` are those of all kinds, by name."""
    faults: list[Fault] = []
    for section, params in settings.items():
        if section != GENERAL and section not in dialects:
            faults.append((section, f"there is no such section; known are {', '.join((GENERAL, *dialects))}"))
        elif not isinstance(params, Mapping):
            faults.append((section, f"expected a mapping, found {quote_value(params)}"))
        elif section == GENERAL:
            try:
                table(GENERAL_FIELDS)(params)
            except Bad as bad:
                faults.append((section, str(bad)))
        else:
            wrong = _faults_of_fields(params, dialects[section].fields)
            faults += [(f"{section}.{name}", reason) for name, reason in wrong]
    if faults or model is None:
        return faults
    return check(model, _merge(model, settings))[1]


# Use


def in_body(params: Params) -> dict[str, Any]:
    """Return the parameters as a request holds them: those below ``extra`` beside the others."""
    return {**{name: value for name, value in params.items() if name != EXTRA}, **params.get(EXTRA, {})}


def turn_thinking_off(body: dict[str, Any], off: Params) -> None:
    """Turn thinking off in a request's body by these parameters. Any effort is removed, since DeepSeek refuses both."""
    if off:
        body.pop("reasoning_effort", None)
        config = {name: value for name, value in body.pop("output_config", {}).items() if name != "effort"}
        body.update({**({"output_config": config} if config else {}), **off})


def tune(model: ModelInfo, settings: Params, asked: Params = NOTHING) -> ModelInfo:
    """Return the model with an agent's settings laid over its own, and the request's own parameters over both.

    The request's parameters have the names of chat completions. Parameters that the model does not take are left out:
    they were checked before, but the dialog may have changed its model since.
    """
    if not settings and not asked:
        return model
    merged = _laid_over(_merge(model, settings), _in_own_words(model, asked)[0])
    return replace(model, model_params=MappingProxyType(check(model, merged)[0]))


def faults_of_asked(model: ModelInfo, settings: Params, asked: Params) -> list[Fault]:
    """Return the fields of a request, named as in chat completions, that the model cannot honour for an agent."""
    own, names, faults = _in_own_words(model, asked)
    refused = check(model, _laid_over(_merge(model, settings), own))[1]
    return faults + [(names[name], reason) for name, reason in refused if name in names]


def _in_own_words(model: ModelInfo, asked: Params) -> tuple[Params, dict[str, str], list[Fault]]:
    """Translate a request's parameters to the model's wire format.

    Returns the translated parameters, the original name of each, and the faults of those that cannot be translated.
    """
    words, own = model.kind.params.of_chat, NOTHING
    names: dict[str, str] = {}
    faults: list[Fault] = []
    for name, value in asked.items():
        try:
            if name not in words:
                raise Bad(
                    f"{model.model_id} is called by an API ({model.kind.name}) that has nothing for it: leave it out"
                )
            translated = words[name](model, value)
        except Bad as bad:
            faults.append((name, str(bad)))
        else:
            own, names = _laid_over(own, translated), {**names, **dict.fromkeys(translated, name)}
    return own, names, faults


def most_output(settings: Params, asked: Params = NOTHING) -> int | None:
    """Return the lowest limit on an answer's tokens in an agent's settings and the request, or None."""
    stated = [_section(settings, GENERAL).get("max_tokens"), *(asked.get(name) for name in MAX_TOKENS_FIELDS)]
    whole = [value for value in stated if isinstance(value, int) and not isinstance(value, bool) and value > 0]
    return min(whole, default=None)


def _merge(model: ModelInfo, settings: Params) -> Params:
    general = _section(settings, GENERAL)
    effort = general.get("effort")
    merged: Params = model.model_params
    for params in (
        model.kind.params.of_effort(model, effort_within(model, effort)) if effort in EFFORTS else {},
        {name: general[name] for name in ("temperature", "top_p") if name in general},
        _section(settings, model.kind.name),
    ):
        merged = _laid_over(merged, params)
    return merged


def _laid_over(below: Params, params: Params) -> Params:
    """Return the parameters ``below`` with others laid over them.

    Mappings are merged name by name, so that setting an effort does not remove another part of ``reasoning``.
    """
    merged = dict(below)
    for name, value in params.items():
        under = merged.get(name)
        both = isinstance(under, Mapping) and isinstance(value, Mapping)
        merged[name] = {**under, **value} if both and under else value
    return merged


def _section(settings: Params, name: str) -> Params:
    section = settings.get(name)
    return section if isinstance(section, Mapping) else {}
