"""The fullness of a context, in words and as parts of a gauge. Numbers are reported ones, and unknown is never zero."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop as noop

REASONS = {
    "usage_unavailable": (noop("usage not reported"), noop("The provider reported no usage for the last answer.")),
    "limit_unknown": (
        noop("limit unknown"),
        noop("Neither the server nor the catalog names this model's context window, so nothing watches it."),
    ),
    "awaiting_report": (noop("awaiting report"), noop("How full the context is becomes known with the next answer.")),
    "truncation_suspected": (
        noop("truncation suspected"),
        noop("The reported prompt became smaller: the server may have dropped part of it."),
    ),
}
SOURCES = {
    "context_length": noop("the context length stated for the model"),
    "input_length": noop("the input length stated for the model, which names no context length"),
    "loaded_context_length": noop("the context length that LM Studio loaded the model with"),
}
GAUGE_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Chip:
    """A chip. ``fill`` and ``ticks`` are percentages of the gauge. An unknown ``fill`` is None, and an unknown
    threshold has no tick.
    """

    level: str
    tokens: int | None
    text: str
    notes: tuple[str, ...]
    fill: float | None
    ticks: Mapping[str, float]  # by the level that ends there
    thresholds: Mapping[str, str]  # a sentence about each tick, and about thresholds above the gauge


def chip_of_damaged() -> Chip:
    """Return the chip of a dialog whose health cannot be read."""
    return Chip("unknown", None, _("unknown · {reason}").format(reason=_("damaged")), (), None, {}, {})


def chip_of(health: dict[str, Any]) -> Chip:
    limit = health["model_context_limit"]
    shown = health["prompt_tokens"] if health["reason"] in (None, "limit_unknown", "truncation_suspected") else None
    fill = _part(shown, limit)
    ends = {"optimal": health["optimal_max_tokens"], "critical": health["critical_max_tokens"]}
    return Chip(
        level=health["level"],
        tokens=shown,
        text=_text(health, shown),
        notes=tuple(_notes(health)),
        fill=None if fill is None else min(fill, float(GAUGE_WIDTH)),
        ticks={level: tick for level, tokens in ends.items() if (tick := _part(tokens, limit)) and tick <= GAUGE_WIDTH},
        thresholds=_thresholds(**ends),
    )


def _thresholds(optimal: int, critical: int | None) -> dict[str, str]:
    caution = {"optimal": _("Caution above %(number)s tokens.") % {"number": f"{optimal:,}"}}
    if critical is None:
        return caution
    last = {"critical": _("Critical above %(number)s tokens.") % {"number": f"{critical:,}"}}
    return caution | last if optimal < critical else last


def _text(health: dict[str, Any], shown: int | None) -> str:
    limit, reason = health["model_context_limit"], health["reason"]
    if shown is None:
        return _("unknown · {reason}").format(reason=_(REASONS[reason][0]))
    if limit is None:
        return _("{number:,} tok · {reason}").format(number=shown, reason=_(REASONS["limit_unknown"][0]))
    words = _(REASONS[reason][0]) if reason else _(health["level"].capitalize())
    return _("{number:,} tok · {percent} of {limit:,} · {words}").format(
        number=shown, percent=percent(shown, limit), limit=limit, words=words
    )


def percent(tokens: int, limit: int) -> str:
    if 0 < tokens * 100 < limit:
        return _("under 1 %")
    return f"{tokens * 100 / limit:.0f} %"


def _notes(health: dict[str, Any]) -> list[str]:
    reason = health["reason"]
    notes = [_(REASONS[reason][1]) if reason else _("Prompt tokens of the last answer, as reported.")]
    if limit := health["model_context_limit"]:
        source = health["limit_source"]
        source = _(SOURCES[source]) if source in SOURCES else source
        notes.append(_("Window: {limit:,} tokens ({source}).").format(limit=limit, source=source))
    return notes


def _part(tokens: int | None, limit: int | None) -> float | None:
    return None if tokens is None or not limit else round(tokens * GAUGE_WIDTH / limit, 2)
