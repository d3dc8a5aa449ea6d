"""The fields of ``llm.yaml``: which there are, what each may hold, and what is reported of any other value."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

API_TYPES = ("openai", "openai-compatible", "anthropic", "anthropic-compatible", "lmstudio", "scripted")
MAX_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file that is not used, and why; ``path`` leads to it inside the file."""

    file: str
    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.path}: {self.reason}" if self.path else f"{self.file}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Entries:
    """The sound fields of a file's providers under their YAML names, and what was wrong with the others."""

    providers: Mapping[str, Mapping[str, Any]]
    problems: tuple[Problem, ...] = ()


class Bad(ValueError):
    """A value that is not used; the text says what was found and expected."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Bad(f"expected text, found {_shown(value)}")
    return value.strip()


def _tokens(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_TOKENS:
        raise Bad(f"expected a whole number of tokens above 0, found {_shown(value)}")
    return value


def _generations(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1000:
        raise Bad(f"expected a whole number of generations from 1 to 1000, found {_shown(value)}")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Bad(f"expected true or false, found {_shown(value)}")
    return value


def _url(value: Any) -> str:
    text = _text(value)
    try:
        parts = urlsplit(text)
        is_web_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_web_address = False
    if not is_web_address:
        raise Bad(f"expected an address that begins with http:// or https://, found {_shown(value)}")
    return text


def _environment_name(value: Any) -> str:
    text = _text(value)
    if not text.isidentifier():
        # The usual slip is to put the key itself here, so the value is not shown.
        raise Bad("expected the name of an environment variable, such as OPENAI_API_KEY; keys do not belong here")
    return text


def _kind(value: Any) -> str:
    if value != "lmstudio":
        raise Bad(f"expected lmstudio, found {_shown(value)}")
    return "lmstudio"


Field = Callable[[Any], Any]

PROVIDER_FIELDS: dict[str, Field] = {
    "name": _text,
    "apiType": _text,  # an unknown one makes the provider unusable, which the catalog says
    "baseUrl": _url,
    "apiKeyEnvVar": _environment_name,
}
MODEL_FIELDS: dict[str, Field] = {
    "name": _text,
    "context_length": _tokens,
    "input_length": _tokens,
    "output_length": _tokens,
    "optimal_max_tokens": _tokens,
    "critical_max_tokens": _tokens,
    "caution_remediation_cadence_generations": _generations,
    "supports_tool_choice": _truth,
    "script": _text,
    "kind": _kind,
    "tokenizer": _text,
}


class _Reading:
    """Collects the problems of one file while its fields are read."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def report(self, path: str, reason: str) -> None:
        self.problems.append(Problem(self.file, path, reason))

    def mapping(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        """The entries of a mapping whose keys are text; numbers become text, since YAML reads ``1.5:`` as one."""
        if not isinstance(value, Mapping):
            if value is not None:
                self.report(path, f"expected a mapping, found {_shown(value)}")
            return
        for key, item in value.items():
            if isinstance(key, str | int | float) and not isinstance(key, bool):
                yield str(key), item
            else:
                self.report(path, f"expected text as key, found {_shown(key)}")

    def fields(self, value: Any, path: str, known: Mapping[str, Field]) -> dict[str, Any]:
        """The sound fields of one entry. A field without a value counts as not stated."""
        sound: dict[str, Any] = {}
        for key, item in self.mapping(value, path):
            here = f"{path}.{key}"
            if key not in known:
                self.report(here, f"the key means nothing here; known are {', '.join(known)}")
            elif item is not None:
                try:
                    sound[key] = known[key](item)
                except Bad as bad:
                    self.report(here, str(bad))
        return sound


def entries_of(document: Any, file: str) -> Entries:
    """Check a document's fields one by one: a bad one is reported and left out, the others hold."""
    reading = _Reading(file)
    providers: dict[str, Mapping[str, Any]] = {}
    for key, value in reading.mapping(document, "the file"):
        if key != "providers":
            reading.report(key, "the key means nothing here; known is providers")
            continue
        for provider_id, entry in reading.mapping(value, "providers"):
            providers[provider_id] = _provider(reading, entry, f"providers.{provider_id}")
    return Entries(providers, tuple(reading.problems))


def _provider(reading: _Reading, entry: Any, path: str) -> dict[str, Any]:
    models = entry.get("models") if isinstance(entry, Mapping) else None
    rest = {key: item for key, item in entry.items() if key != "models"} if isinstance(entry, Mapping) else entry
    sound = reading.fields(rest, path, PROVIDER_FIELDS)
    if sound.get("apiType", API_TYPES[0]) not in API_TYPES:
        expected = ", ".join(API_TYPES)
        reading.report(f"{path}.apiType", f"expected one of {expected}, found {sound['apiType']!r}; it is unusable")
    sound["models"] = {
        model_id: reading.fields(model, f"{path}.models.{model_id}", MODEL_FIELDS)
        for model_id, model in reading.mapping(models, f"{path}.models")
    }
    return sound


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
