"""System checks of the catalog: problems of ``llm.yaml``, and limits that contradict each other. Never fatal."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks

from dominds.llm.catalog.catalog import Catalog, ModelInfo, current_catalog
from dominds.yaml_fields import Severity, classes_of
from health.levels import stated_thresholds
from health.traps import chosen_traps

DETAILS = "`dominds check_files --details` lists each."


@checks.register("installation")
def catalog_is_sound(**_: Any) -> list[checks.CheckMessage]:
    catalog = current_catalog(Path(settings.MINDS_DIR))
    return [*_problems(catalog), *_traps(catalog.models.values())]


def _problems(catalog: Catalog) -> Iterator[checks.CheckMessage]:
    """Report one line for each class of problems, the unusable first, since a real file has hundreds of remarks."""
    for result in classes_of(catalog.problems):
        kind = checks.Info if result.severity is Severity.REMARK else checks.Warning
        hint = DETAILS if len(result.problems) > 1 else None
        yield kind(str(result), hint=hint, id="health.W001")


def _traps(models: Iterable[ModelInfo]) -> Iterator[checks.CheckMessage]:
    """Warn of contradictions that somebody's limits cause. A window below the default optimum is only a remark."""
    small: list[str] = []
    for model in models:
        name = f"{model.provider_id}/{model.model_id}"
        if model.kind.needs_limit and model.kind.loaded_window is not None:
            yield from _ignored_limit(model, name)
            continue
        thresholds = stated_thresholds(model)
        if model.optimal_max_tokens is None and not thresholds.has_caution_band:
            small.append(name)
        for trap in chosen_traps(thresholds, model.input_length):
            yield checks.Warning(f"{name}: {trap}", id="health.W002")
    if small:
        yield checks.Info(
            f"No caution band, since the window lies below the default optimum: {', '.join(small)}.",
            hint="Set optimal_max_tokens for these models in llm.yaml to be warned before they turn red.",
            id="health.I001",
        )


def _ignored_limit(model: ModelInfo, name: str) -> Iterator[checks.CheckMessage]:
    """Warn of a limit without effect: LM Studio's models have the length with which they were loaded."""
    if model.context_length is not None or model.input_length is not None:
        yield checks.Warning(
            f"{name}: context_length and input_length are ignored; the limit is what LM Studio loaded the model with.",
            id="health.W003",
        )
