"""Context breaking's configuration: ``context.yaml``, under the edits that an operator made on the settings page."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from dominds.db.prepared import Select
from dominds.yaml_fields import Problem
from dominds.yaml_file import BadYaml, read_yaml
from remediation import prompts
from remediation.config import ContextConfig, limits_below_floor
from remediation.config_file import parse_context_config
from remediation.models import ContextSettings

FILE = "context.yaml"


def current_config() -> ContextConfig:
    """The configuration in force; bad fields have their defaults."""
    return parse_context_config(_merged())[0]


def prompts_folder() -> Path:
    """Where operators keep their own prompts."""
    return Path(settings.MINDS_DIR) / "prompts"


def problems() -> list[Problem]:
    """What is wrong with the file, the edits, or the prompts, by path and reason."""
    return [
        *_problems_of_file(),
        *(Problem(f"prompts/{name}", "", why) for name, why in prompts.problems(prompts_folder())),
    ]


def _problems_of_file() -> list[Problem]:
    try:
        doubled = read_yaml(_path()).double_keys if _path().exists() else ()
    except BadYaml as error:
        return [Problem(FILE, "", f"{error}; using the defaults")]
    config, wrong = parse_context_config(_merged())
    found = [Problem(FILE, path, reason) for path, reason in wrong + limits_below_floor(config)]
    return found + [Problem(FILE, key, "occurs twice; the last one holds") for key in doubled]


def save_edits(content: dict[str, Any]) -> list[tuple[str, str]]:
    """Keep an operator's edits if they are valid as a whole; otherwise keep nothing and return the problems."""
    config, found = parse_context_config(_laid_over(_from_file(), content))
    found += limits_below_floor(config)
    if not found:
        ContextSettings.objects.update_or_create(singleton=True, defaults={"config": content})
    return found


def _merged() -> dict[str, Any]:
    edits = _EDITS.first()
    return _laid_over(_from_file(), edits if isinstance(edits, dict) else {})


def _edits() -> QuerySet[ContextSettings, Any]:
    return ContextSettings.objects.order_by("pk").values_list("config", flat=True)[:1]


_EDITS: Select[Any] = Select(_edits)


def _path() -> Path:
    return Path(settings.MINDS_DIR) / FILE


def _from_file() -> dict[str, Any]:
    try:
        document = read_yaml(_path()).document if _path().exists() else None
    except BadYaml:
        return {}
    content = document.get("context_config", document) if isinstance(document, dict) else None
    return content if isinstance(content, dict) else {}


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        mine = merged.get(key)
        merged[key] = _laid_over(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return merged
