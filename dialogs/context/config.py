"""Context breaking's configuration: ``context.yaml``, overlaid by what an operator edited on the settings page."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from dominds.db.prepared import Select
from dominds.yaml_fields import Problem, Reading
from dominds.yaml_file import BadYaml, parse_yaml
from remediation import prompts
from remediation.config import ContextConfig
from remediation.config_file import FILE, limits_below_floor, parse_context_config
from remediation.models import ContextSettings


def current_config() -> ContextConfig:
    """Return the configuration in force; bad fields have their defaults."""
    return parse_context_config(_merge(_file()))[0]


def prompts_folder() -> Path:
    """Return the folder of the operator's own prompts."""
    return settings.MINDS_DIR / "prompts"


def problems() -> list[Problem]:
    """Return what is wrong with the file, the edits, or the prompts, by path and reason."""
    return [
        *_problems_of_file(),
        *(Problem(f"prompts/{name}", "", why) for name, why in prompts.problems(prompts_folder())),
    ]


def _problems_of_file() -> list[Problem]:
    reading = _file()
    if not reading.usable:
        return reading.problems
    config, faults = parse_context_config(_merge(reading), reading.file)
    return [*reading.problems, *faults, *limits_below_floor(config, reading.file)]


def save_edits(content: dict[str, Any]) -> list[Problem]:
    """Keep an operator's edits if they are valid as a whole; otherwise keep nothing and return the problems."""
    config, faults = parse_context_config(_laid_over(_content(_file()), content))
    faults += limits_below_floor(config)
    if not faults:
        ContextSettings.objects.update_or_create(singleton=True, defaults={"config": content})
    return faults


def with_settings(written: str) -> tuple[ContextConfig, list[Problem]]:
    """Return the configuration in force overlaid by unsaved settings as in ``context.yaml``, and their problems.

    Raises ``BadYaml``.
    """
    document = parse_yaml(written.encode()).document
    if document is not None and not isinstance(document, dict):
        raise BadYaml("is no mapping of settings to values")
    content = (document or {}).get("context_config", document or {})
    return parse_context_config(_laid_over(_merge(_file()), content))


def _merge(reading: Reading) -> dict[str, Any]:
    edits = _edits.first()
    return _laid_over(_content(reading), edits if isinstance(edits, dict) else {})


@Select
def _edits() -> QuerySet[ContextSettings, Any]:
    return ContextSettings.objects.order_by("pk").values_list("config", flat=True)[:1]


def _file() -> Reading:
    return Reading.of(settings.MINDS_DIR / FILE)


def _content(reading: Reading) -> dict[str, Any]:
    document = reading.document
    content = document.get("context_config", document) if isinstance(document, dict) else None
    return content if isinstance(content, dict) else {}


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        mine = merged.get(key)
        merged[key] = _laid_over(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return merged
