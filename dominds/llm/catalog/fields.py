"""The fields of ``llm.yaml``: which there are, what each may hold, and what is reported of any other value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dominds.yaml_fields import Bad, Field, Problem, Reading, one_of, shown, text, truth, whole_number

API_TYPES = ("openai", "openai-compatible", "anthropic", "anthropic-compatible", "lmstudio", "scripted")
MAX_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Entries:
    """The sound fields of a file's providers under their YAML names, and what was wrong with the others."""

    providers: Mapping[str, Mapping[str, Any]]
    problems: tuple[Problem, ...] = ()


def _tokens(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_TOKENS:
        raise Bad(f"expected a whole number of tokens above 0, found {shown(value)}")
    return value


def _url(value: Any) -> str:
    address = text(value)
    try:
        parts = urlsplit(address)
        is_web_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_web_address = False
    if not is_web_address:
        raise Bad(f"expected an address that begins with http:// or https://, found {shown(value)}")
    return address


def _environment_name(value: Any) -> str:
    name = text(value)
    if not name.isidentifier():
        # The usual slip is to put the key itself here, so the value is not shown.
        raise Bad("expected the name of an environment variable, such as OPENAI_API_KEY; keys do not belong here")
    return name


PROVIDER_FIELDS: dict[str, Field] = {
    "name": text,
    "apiType": text,  # an unknown one makes the provider unusable, which the catalog says
    "baseUrl": _url,
    "apiKeyEnvVar": _environment_name,
}
MODEL_FIELDS: dict[str, Field] = {
    "name": text,
    "context_length": _tokens,
    "input_length": _tokens,
    "output_length": _tokens,
    "optimal_max_tokens": _tokens,
    "critical_max_tokens": _tokens,
    "caution_remediation_cadence_generations": whole_number(1, 1000),
    "supports_tool_choice": truth,
    "script": text,
    "kind": one_of(["lmstudio"]),
    "tokenizer": text,
}


def entries_of(reading: Reading) -> Entries:
    """Check a document's fields one by one: a bad one is reported and left out, the others hold."""
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
    sound = reading.fields(rest, path, PROVIDER_FIELDS)
    if sound.get("apiType", API_TYPES[0]) not in API_TYPES:
        expected = ", ".join(API_TYPES)
        reading.report(f"{path}.apiType", f"expected one of {expected}, found {sound['apiType']!r}; it is unusable")
    sound["models"] = {
        model_id: reading.fields(model, f"{path}.models.{model_id}", MODEL_FIELDS)
        for model_id, model in reading.entries(models, f"{path}.models")
    }
    return sound
