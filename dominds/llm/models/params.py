"""Parameters that people set for a model: which there are in each wire format, what each may hold, and what a model refuses.

``llm.yaml`` states those of a model in its format's own words. An agent's have sections: ``general``, in the same words for
every format, and one by the name of a kind of provider. Below ``extra`` stands what only one server knows; it is not checked.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dominds.llm.models.dialects import EFFORTS, MOST, Dialect, Fault, Params, mapping, table
from dominds.llm.models.model import ModelInfo
from dominds.yaml_fields import Bad, Field, number, one_of, shown, whole_number

MAX_TOKENS_FIELDS = ["max_tokens", "max_completion_tokens", "max_output_tokens"]
# The parts of a request that are ours to write.
OUR_PARAMS = {"model", "messages", "input", "instructions", "system", "stream", "stream_options", "store", "include",
              "tools", "tool_choice", "prompt_cache_key", *MAX_TOKENS_FIELDS}  # fmt: skip
GENERAL, EXTRA = "general", "extra"

GENERAL_FIELDS: dict[str, Field] = {
    "effort": one_of(EFFORTS),
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "max_tokens": whole_number(16, MOST),
}


def checked(model: ModelInfo, params: Params) -> tuple[dict[str, Any], list[Fault]]:
    """The parameters that the model takes, and what is wrong with the others."""
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
    """What is wrong with an agent's sections; ``dialects`` are those of all kinds of providers, by name."""
    faults: list[Fault] = []
    for section, params in settings.items():
        if section != GENERAL and section not in dialects:
            faults.append((section, f"there is no such section; known are {', '.join((GENERAL, *dialects))}"))
        elif not isinstance(params, Mapping):
            faults.append((section, f"expected a mapping, found {shown(params)}"))
        elif section == GENERAL:
            try:
                table(GENERAL_FIELDS)(params)
            except Bad as bad:
                faults.append((section, str(bad)))
        else:
            found = _faults_of_fields(params, dialects[section].fields)
            faults += [(f"{section}.{name}", reason) for name, reason in found]
    if faults or model is None:
        return faults
    return checked(model, _merged(model, settings))[1]


# Use


def in_body(params: Params) -> dict[str, Any]:
    """As they stand in a request."""
    return {**{name: value for name, value in params.items() if name != EXTRA}, **params.get(EXTRA, {})}


def tuned(model: ModelInfo, settings: Params) -> ModelInfo:
    """The model with an agent's settings laid over its own. What it does not take is left out: since the settings were
    checked, the dialog may have gone to another model."""
    if not settings:
        return model
    return replace(model, model_params=MappingProxyType(checked(model, _merged(model, settings))[0]))


def most_output(settings: Params) -> int | None:
    """The longest answer in tokens that an agent is to give, where it says so."""
    found = _section(settings, GENERAL).get("max_tokens")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _merged(model: ModelInfo, settings: Params) -> dict[str, Any]:
    """A mapping is laid over a mapping name by name: an effort leaves the wish for a summary as it is."""
    general = _section(settings, GENERAL)
    effort = general.get("effort")
    result = dict(model.model_params)
    for params in (
        model.kind.params.of_effort(model, effort) if effort in EFFORTS else {},
        {name: general[name] for name in ("temperature", "top_p") if name in general},
        _section(settings, model.kind.name),
    ):
        for name, value in params.items():
            below = result.get(name)
            both = isinstance(below, Mapping) and isinstance(value, Mapping)
            result[name] = {**below, **value} if both and below else value
    return result


def _section(settings: Params, name: str) -> Params:
    found = settings.get(name)
    return found if isinstance(found, Mapping) else {}
