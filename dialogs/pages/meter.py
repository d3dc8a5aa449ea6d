"""The panel behind the ring: the last reported prompt by category, and how long its room will last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop as noop
from django.utils.translation import ngettext, pgettext

from dialogs.context.sent import Category, Sent, sizes_of, split_by_chars
from health.forecast import LAST_GROWTHS, answers_until, growth_per_answer
from health.levels import Level

ANSWERS = LAST_GROWTHS + 1  # the newest answers, from which the growth follows
BAR = 100
FAR = 100  # answers; a larger number would only seem exact
STANDINGS = {
    Level.HEALTHY: noop("There is room: nothing to do."),
    Level.CAUTION: noop("The context is getting full: make room soon."),
    Level.CRITICAL: noop("The context is full: make room now."),
}
RESERVE, FREE, PROMPT = "reserve for the answer", "free", "prompt"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the bar. ``tokens`` are estimated; ``x`` and ``width`` are percents."""

    name: str
    kind: str
    tokens: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Meter:
    lead: str = ""  # a sentence on whether there is anything to do, or empty if that is unknown
    parts: tuple[Part, ...] = ()  # none while nothing was reported
    growth: int = 0  # tokens an answer, if the sentence is a forecast


def meter_of(health: dict[str, Any], tokens: int | None, snapshots: Sequence[Any]) -> Meter:
    """Build the meter. ``tokens`` are those of the last prompt, or None if not reported. ``snapshots`` are those of the
    newest answers, oldest first.
    """
    if tokens is None or not snapshots:
        parts = parts_of({}, tokens, 0, health["model_context_limit"]) if tokens is not None else ()
        return Meter(_standing(health, tokens), parts)
    newest = snapshots[-1]
    sent = Sent.of(newest.generation__sent)
    base = newest.generation__base
    alike = [*takewhile(lambda row: row.generation__base == base, reversed(snapshots))][::-1]
    growth = growth_per_answer([row.prompt_tokens for row in alike])
    forecast = _forecast(health, tokens, growth) if growth else ""
    return Meter(
        lead=forecast or _standing(health, tokens),
        parts=parts_of(split_by_chars(sizes_of(sent), tokens), tokens, sent.output or 0, health["model_context_limit"]),
        growth=round(growth or 0) if forecast else 0,
    )


def _standing(health: dict[str, Any], tokens: int | None) -> str:
    """Return a sentence about the level, or an empty text if the level is unknown."""
    return _(STANDINGS[health["level"]]) if tokens is not None and health["level"] in STANDINGS else ""


def parts_of(split: Mapping[Category, int], tokens: int, reserve: int, window: int | None) -> tuple[Part, ...]:
    """Return the parts by category, then the reserve for the answer, and the rest of the window if it is known."""
    held = {kind.value: size for kind, size in split.items()} or {PROMPT: tokens}
    named = {**held, RESERVE: reserve, FREE: max(0, (window or 0) - tokens - reserve)}
    whole, upto, parts = window or tokens + reserve, 0, list[Part]()
    for name, size in named.items():
        if size:
            x, upto = min(upto, whole), upto + size
            left, right = x * BAR / whole, min(upto, whole) * BAR / whole
            kind = "reserve" if name == RESERVE else name.replace(" ", "-")
            parts.append(Part(name, kind, size, round(left, 2), round(right - left, 2)))
    return tuple(parts)


def _forecast(health: dict[str, Any], tokens: int, growth: float) -> str:
    """Return when the next level is reached, in a sentence that is empty if the level is unknown or the last."""
    optimal, critical = health["optimal_max_tokens"], health["critical_max_tokens"]
    if health["level"] not in (Level.HEALTHY, Level.CAUTION) or not critical:
        return ""
    level, threshold = ("Caution", optimal) if tokens <= optimal < critical else ("Critical", critical)
    answers = answers_until(threshold, tokens, growth)
    about = (_("more than {number}") if answers > FAR else _("about {number}")).format(number=min(answers, FAR))
    words = ngettext("{about} answer until {level}", "{about} answers until {level}", answers)
    return f"{capfirst(words.format(about=about, level=_(level)))}{pgettext('end of a sentence', '.')}"
