"""The catalog of models: shipped metadata under ``.minds/llm.yaml``, field by field."""

import difflib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dominds.llm.catalog import fields
from dominds.llm.models import params
from dominds.llm.models.model import DEFAULT_CADENCE_GENERATIONS, Echo, ModelInfo, ProviderKind, Thinking
from dominds.llm.providers.kinds import KINDS, kind_named, with_window_rules_of
from dominds.llm.providers.script_file import BadScript, load_script
from dominds.llm.providers.scripted import SCRIPTS
from dominds.yaml_fields import Problem, Reading
from dominds.yaml_file import BadYaml, stamp_of

__all__ = ["Catalog", "ModelInfo", "ProviderInfo", "UnknownModel", "current_catalog", "load_catalog", "retirement_of"]

DEFAULTS_FILE = Path(__file__).parent / "defaults.yaml"
FILE_NAME = "llm.yaml"
FOREWARNING = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """A provider's entry. ``unusable`` says why none of its models can be called, or is empty."""

    provider_id: str
    name: str
    kind: ProviderKind
    base_url: str = ""
    api_key_env: str = ""
    api_key: str = field(default="", repr=False)
    unusable: str = ""


class UnknownModel(LookupError):
    """The catalog has no such model."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """All providers and models, with the problems of the files.

    ``in_file`` maps a provider's id to the fields that the operator's file states. ``named`` are the ids of providers
    that the file or the page names; all others are only shipped.
    """

    providers: Mapping[str, ProviderInfo]
    models: Mapping[tuple[str, str], ModelInfo]
    problems: tuple[Problem, ...] = ()
    in_file: Mapping[str, frozenset[str]] = field(default_factory=dict)
    named: frozenset[str] = frozenset()

    def model(self, provider_id: str, model_id: str) -> ModelInfo:
        """Return a model. Raises ``UnknownModel``, whose message suggests similar names."""
        found = self.models.get((provider_id, model_id))
        if found is None:
            raise UnknownModel(self._not_found(provider_id, model_id))
        return found

    def _not_found(self, provider_id: str, model_id: str) -> str:
        if provider_id not in self.providers:
            return _unknown("provider", provider_id, list(self.providers))
        return _unknown(f"model of '{provider_id}'", model_id, [key[1] for key in self.models if key[0] == provider_id])


def _unknown(what: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"Near it: {', '.join(near)}. " if near else ""
    return f"There is no {what} named '{name}'. {hint}Choose a known one, or add it to the server's configuration."


# Reading and merging


Entry = Mapping[str, Any]
Connected = Mapping[str, Entry]  # providers that were connected on the page, by id; only these may hold an ``apiKey``
NONE: Connected = MappingProxyType({})


def load_catalog(minds_dir: Path, connected: Connected = NONE) -> Catalog:
    """Load the shipped providers, lay those of the page over them, and then those of ``.minds/llm.yaml``.

    Mistakes in the file become problems of the catalog, and are never raised.
    """
    shipped, own = _shipped_entries(), fields.entries_of(Reading.of(minds_dir / FILE_NAME))
    entries = lay_over(lay_over(shipped.providers, connected), own.providers)
    catalog = _catalog_of(entries, minds_dir, shipped.problems + own.problems)
    in_file = {provider_id: frozenset(entry) for provider_id, entry in own.providers.items()}
    return replace(catalog, in_file=in_file, named=frozenset({*connected, *in_file}))


@cache
def _shipped_entries() -> fields.Entries:
    return fields.entries_of(Reading.of(DEFAULTS_FILE))


def lay_over(below: Mapping[str, Entry], above: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return the providers ``below`` with those ``above`` laid over them, field by field, as well as their models."""
    merged = dict(below)
    for provider_id, entry in above.items():
        base = merged.get(provider_id, {})
        models = dict(base.get("models", {}))
        for model_id, model in entry.get("models", {}).items():
            models[model_id] = {**models.get(model_id, {}), **model}
        merged[provider_id] = {**base, **entry, "models": models}
    return merged


def _catalog_of(entries: Mapping[str, Entry], minds_dir: Path, problems: tuple[Problem, ...]) -> Catalog:
    providers = {provider_id: _provider(provider_id, entry) for provider_id, entry in entries.items()}
    models = {
        (provider_id, model_id): _model(providers[provider_id], model_id, model, minds_dir)
        for provider_id, entry in entries.items()
        for model_id, model in entry.get("models", {}).items()
    }
    for model in models.values():
        if model.model_params:
            sound, faults = params.check(model, model.model_params)
            models[model.provider_id, model.model_id] = replace(model, model_params=MappingProxyType(sound))
            place = f"providers.{model.provider_id}.models.{model.model_id}.model_params"
            problems += tuple(Problem(str(minds_dir / FILE_NAME), f"{place}.{name}", why) for name, why in faults)
    return Catalog(MappingProxyType(providers), MappingProxyType(models), problems)


def _provider(provider_id: str, entry: Entry) -> ProviderInfo:
    kind, base_url = kind_named(entry.get("apiType", "")), entry.get("baseUrl", "")
    return ProviderInfo(
        provider_id=provider_id,
        name=entry.get("name", provider_id),
        kind=kind,
        base_url=base_url,
        api_key_env=entry.get("apiKeyEnvVar", ""),
        api_key=entry.get("apiKey", ""),
        unusable=_why_unusable(provider_id, kind, base_url)
        or ("" if entry.get("apiKeyEnvVar") else entry.get("keyFault", "")),
    )


def _why_unusable(provider_id: str, kind: ProviderKind, base_url: str) -> str:
    if kind.name not in KINDS:
        problem = f"has the apiType '{kind.name}'" if kind.name else "has no valid apiType"
        known = ", ".join(fields.API_TYPES)
        return f"Provider '{provider_id}' {problem}. Set it to one of {known} in the server's configuration."
    if not base_url and kind.is_server:
        return f"Provider '{provider_id}' has no valid baseUrl. Set it in the server's configuration."
    return ""


AS_STATED = (
    "context_length",
    "input_length",
    "output_length",
    "optimal_max_tokens",
    "critical_max_tokens",
    "supports_tool_choice",
    "forced_tool",
    "most_effort",
    "image_tokens",
    "prices",
    "retires_on",
    "model_params",
    "thinking_off",
    "tokenizer",
)


def _model(provider: ProviderInfo, model_id: str, entry: Entry, minds_dir: Path) -> ModelInfo:
    script, script_fault = _script(provider, entry.get("script", ""), minds_dir)
    kind = provider.kind
    if not kind.is_server and "kind" in entry:
        kind = with_window_rules_of(kind, KINDS[entry["kind"]])
    return ModelInfo(
        provider_id=provider.provider_id,
        model_id=model_id,
        name=entry.get("name", model_id),
        kind=kind,
        base_url=provider.base_url,
        api_key_env=provider.api_key_env,
        api_key=provider.api_key,
        cadence=entry.get("caution_remediation_cadence_generations", DEFAULT_CADENCE_GENERATIONS),
        thinking=Thinking(entry.get("thinking", "")),
        is_bound=entry.get("bound_thinking", False),
        echo=Echo(entry.get("echo", kind.echo)),
        max_tokens_field=entry.get("max_tokens_field", kind.max_tokens_field),
        modalities=entry.get("modalities", kind.modalities),
        states_modalities="modalities" in entry,
        image_bounds=entry.get("image_bounds", kind.image_bounds),
        script=script,
        unusable=provider.unusable or script_fault,
        **{name: entry[name] for name in AS_STATED if name in entry},
    )


def retirement_of(model: ModelInfo, today: date) -> str:
    """Return a warning about a model that ends within 30 days or has ended, or an empty text."""
    if model.retires_on is None or today < model.retires_on - FOREWARNING:
        return ""
    name = f"{model.provider_id}/{model.model_id}"
    if today < model.retires_on:
        days = (model.retires_on - today).days
        return f"{name} retires on {model.retires_on}, in {days} day{'s' * (days != 1)}. Choose another model before."
    return f"{name} retired on {model.retires_on}. Choose another model."


def _script(provider: ProviderInfo, script: str, minds_dir: Path) -> tuple[str, str]:
    """Return the path of a scripted model's file, and the reason why it cannot be played."""
    if provider.kind.is_server:
        return "", ""
    if not script:
        return "", f"A model of '{provider.provider_id}' names no script. Set `script` in the server's configuration."
    path = script_path(script, minds_dir)
    if path is None:
        return "", (
            f"The script '{script}' is neither a file below {minds_dir} nor the name of a shipped one. "
            f"Correct `script` in the server's configuration."
        )
    try:
        load_script(path)
    except (BadScript, BadYaml) as error:
        return str(path), f"The script {path} cannot be played: {error}."
    return str(path), ""


def script_path(script: str, minds_dir: Path) -> Path | None:
    """Return the path of a script beside ``llm.yaml``, never outside its folder, or of a shipped script by its name."""
    home = minds_dir.resolve()
    for folder in (home, SCRIPTS.resolve()):
        for name in (script, f"{script}.yaml"):
            path = (folder / name).resolve() if "\0" not in name else folder
            if path.is_relative_to(folder) and path.is_file():
                return path
    return None


# The current catalog


@dataclass(frozen=True, slots=True)
class _Read:
    """A catalog with the state of its files at the time of reading."""

    catalog: Catalog
    connected: Connected
    files: tuple[str, ...]
    were: tuple[tuple[int, int], ...]

    def is_current(self, connected: Connected) -> bool:
        return self.connected is connected and self.were == tuple(map(stamp_of, self.files))


_current: dict[Path, _Read] = {}
_loading = threading.Lock()


def current_catalog(minds_dir: Path, connected: Connected = NONE) -> Catalog:
    """Return the cached catalog. It is read again if ``llm.yaml``, a script beside it or ``connected`` has changed.

    Checking that takes a few ``stat`` calls. ``connected`` counts as changed if it is another object.
    """
    known = _current.get(minds_dir)
    if known is not None and known.is_current(connected):
        return known.catalog
    with _loading:
        own = (str(minds_dir), str(minds_dir / FILE_NAME))
        were = tuple(map(stamp_of, own))  # before reading, so that a change in the meantime is noticed
        catalog = load_catalog(minds_dir, connected)
        named = {model.script for model in catalog.models.values() if model.script}
        # The shipped scripts never change.
        scripts = tuple(sorted(script for script in named if Path(script).is_relative_to(minds_dir.resolve())))
        _current[minds_dir] = _Read(catalog, connected, own + scripts, (*were, *map(stamp_of, scripts)))
        return catalog
