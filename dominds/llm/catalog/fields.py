"""The fields of ``llm.yaml``: their names, their valid values, and the reports on invalid ones."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from dominds.llm.models.dialects import EFFORTS, MOST, mapping, table
from dominds.llm.models.model import FORCED_TOOL, MODALITIES, Echo, ImageBounds, Thinking
from dominds.llm.models.params import MAX_TOKENS_FIELDS, OUR_PARAMS
from dominds.llm.models.prices import WEEK, Hours, Price
from dominds.llm.providers.kinds import KINDS
from dominds.yaml_fields import (
    Bad,
    Field,
    Problem,
    Reading,
    Severity,
    environment_name,
    one_of,
    quote_value,
    text,
    texts,
    truth,
    web_address,
    whole_number,
)

API_TYPES = tuple(KINDS)
MAX_TOKENS = 1_000_000_000
MAX_USD = 10_000  # per million tokens
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Entries:
    """The sound fields of a file's providers under their YAML names, and the problems of the others."""

    providers: Mapping[str, Mapping[str, Any]]
    problems: tuple[Problem, ...] = ()


def _tokens(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_TOKENS:
        raise Bad(f"expected a whole number of tokens above 0, found {quote_value(value)}")
    return value


def _forced_tool(value: Any) -> str:
    """Read the field. YAML turns a plain yes or no into a boolean, which is turned back."""
    result: str = _FORCED_TOOL({True: "yes", False: "no"}[value] if isinstance(value, bool) else value)
    return result


_FORCED_TOOL = one_of(list(FORCED_TOOL))


def _true_or_auto(value: Any) -> bool | None:
    """Read true, false or ``auto``, which leaves the decision to ``forced_tool``."""
    return None if value == AUTO else truth(value)


def _day(value: Any) -> date:
    if isinstance(value, datetime) or not isinstance(value, date):
        raise Bad(f"expected a date such as 2026-11-30, found {quote_value(value)}")
    return value


def _modalities(value: Any) -> tuple[str, ...]:
    names = texts(value)
    if unknown := [name for name in names if name not in MODALITIES]:
        raise Bad(f"expected some of {', '.join(MODALITIES)}, found {quote_value(unknown[0])}")
    return tuple(names)


def _image_bounds(value: Any) -> ImageBounds:
    bounds = table({"images": whole_number(1, 100_000), "bytes": whole_number(1, MOST)})(value)
    return ImageBounds(most=bounds.get("images", 0), most_bytes=bounds.get("bytes", 0))


def _params(value: Any) -> Mapping[str, Any]:
    params = mapping(value)
    if ours := sorted(OUR_PARAMS & set(params)):
        raise Bad(f"{ours[0]} is written by Dominds itself and cannot be set here")
    return MappingProxyType(dict(params))


def _usd(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_USD:
        raise Bad(f"expected USD per million tokens, found {quote_value(value)}")
    return Decimal(str(value))


_DAY, _TIME = f"({'|'.join(WEEK)})", r"([01]\d|2[0-3]):([0-5]\d)"
_HOURS = re.compile(f"(?:{_DAY}(?:-{_DAY})? )?{_TIME}-{_TIME}")


def _hours(value: Any) -> tuple[Hours, ...]:
    matches = [_HOURS.fullmatch(one.strip()) for one in value.split(",")] if isinstance(value, str) else [None]
    hours = tuple(_hours_of(*one.groups()) for one in matches if one)
    if len(hours) < len(matches):
        raise Bad(f"expected hours in UTC such as 16:30-00:30, or mon-fri 01:00-04:00, found {quote_value(value)}")
    return hours


def _hours_of(first: str | None, last: str | None, *clock: str) -> Hours:
    hour, minute, end_hour, end_minute = map(int, clock)
    begin, end = timedelta(hours=hour, minutes=minute), timedelta(hours=end_hour, minutes=end_minute)
    if first is None:
        return Hours(begin, end)
    start = WEEK.index(first)
    more = (WEEK.index(last or first) - start) % len(WEEK)
    return Hours(begin, end, frozenset((start + day) % len(WEEK) for day in range(more + 1)))


PRICE_FIELDS: dict[str, tuple[str, Field]] = {
    "in": ("input", _usd),
    "out": ("output", _usd),
    "cached": ("cached", _usd),
    "write": ("write", _usd),
    "write_long": ("write_long", _usd),
    "above": ("above", _tokens),
    "since": ("since", _day),
    "until": ("until", _day),
    "hours": ("hours", _hours),
}


def _prices(value: Any) -> tuple[Price, ...]:
    if not isinstance(value, list):
        raise Bad(f"expected a list of prices, found {quote_value(value)}")
    return tuple(_price(entry) for entry in value)


def _price(value: Any) -> Price:
    if not isinstance(value, Mapping) or not {"in", "out"} <= set(value):
        raise Bad(f"expected a price with in and out, found {quote_value(value)}")
    if unknown := sorted(str(key) for key in value if key not in PRICE_FIELDS):
        raise Bad(f"{unknown[0]} means nothing in a price; known are {', '.join(PRICE_FIELDS)}")
    return Price(**{PRICE_FIELDS[key][0]: PRICE_FIELDS[key][1](item) for key, item in value.items()})


PROVIDER_FIELDS: dict[str, Field] = {
    "name": text,
    "apiType": text,  # an unknown type is reported below, since it makes the provider unusable
    "baseUrl": web_address,
    "apiKeyEnvVar": environment_name,
}
MODEL_FIELDS: dict[str, Field] = {
    "name": text,
    "context_length": _tokens,
    "input_length": _tokens,
    "output_length": _tokens,
    "optimal_max_tokens": _tokens,
    "critical_max_tokens": _tokens,
    "caution_remediation_cadence_generations": whole_number(1, 1000),
    "supports_tool_choice": _true_or_auto,
    "forced_tool": _forced_tool,
    "thinking": one_of([thinking.value for thinking in Thinking if thinking]),
    "most_effort": one_of(EFFORTS[1:]),
    "bound_thinking": truth,
    "echo": one_of([echo.value for echo in Echo]),
    "max_tokens_field": one_of(MAX_TOKENS_FIELDS),
    "modalities": _modalities,
    "image_tokens": _tokens,
    "image_bounds": _image_bounds,
    "prices": _prices,
    "retires_on": _day,
    "model_params": lambda value: MappingProxyType(dict(mapping(value))),  # checked once the model's kind is known
    "thinking_off": _params,
    "script": text,
    "kind": one_of([kind.name for kind in KINDS.values() if kind.needs_limit]),
    "tokenizer": text,
}


# Keys that only describe a provider or a model to people.
_REMARKS = dict.fromkeys(
    ("tech_spec_url", "api_mgmt_url", "model_param_options", "context_window", "optimization", "description"),
    Severity.REMARK,
)
_OF_PROVIDERS = {"apiType": Severity.UNUSABLE, "baseUrl": Severity.UNUSABLE, **_REMARKS}
_OF_MODELS = {"script": Severity.UNUSABLE, **_REMARKS}


def entries_of(reading: Reading) -> Entries:
    """Check a document's fields one by one. A bad field is reported and left out, and the others stay."""
    providers: dict[str, Mapping[str, Any]] = {}
    for key, value in reading.entries(reading.document, "the file"):
        if key != "providers":
            reading.report(key, "the key means nothing here; known is providers")
            continue
        for provider_id, entry in reading.entries(value, "providers"):
            providers[provider_id] = _provider(reading, entry, f"providers.{provider_id}")
    return Entries(providers, tuple(reading.problems))


def _provider(reading: Reading, entry: Any, path: str) -> dict[str, Any]:
    models = entry.get("models") if isinstance(entry, Mapping) else None
    rest = {key: item for key, item in entry.items() if key != "models"} if isinstance(entry, Mapping) else entry
    sound = reading.fields(rest, path, PROVIDER_FIELDS, "providers.*", _OF_PROVIDERS)
    if sound.get("apiType", API_TYPES[0]) not in API_TYPES:
        expected = ", ".join(API_TYPES)
        reason = f"expected one of {expected}, found {sound['apiType']!r}; its models cannot be called"
        reading.report(f"{path}.apiType", reason, f"providers.*.apiType={sound['apiType']}", Severity.UNUSABLE)
    sound["models"] = {
        model_id: reading.fields(model, f"{path}.models.{model_id}", MODEL_FIELDS, "providers.*.models.*", _OF_MODELS)
        for model_id, model in reading.entries(models, f"{path}.models")
    }
    return sound
