"""The panel behind the ring: the last reported prompt by category, the last change to it, and how long its room will
last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop as noop
from django.utils.translation import ngettext, pgettext

from dialogs.context.sent import Sent, sizes_of, split_by_chars
from health.forecast import LAST_GROWTHS, answers_until, growth_per_answer
from health.levels import Level

ANSWERS = LAST_GROWTHS + 1  # the newest that ended well: nothing here depends on earlier ones
BAR = 100
FAR = 100  # answers, from which on a number would only seem exact
NUMBERS = "no one two three four five six seven eight nine ten eleven twelve".split()
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
    lead: str = ""  # whether there is anything to do, in one sentence; empty where that is unknown
    parts: tuple[Part, ...] = ()  # none while nothing was reported
    forecast: str = ""
    growth: int = 0  # tokens an answer, where there is a forecast
    change: str = ""  # signed tokens, since the answer before
    cause: str = ""  # the rewrite or round that came between, if any


def meter_of(health: dict[str, Any], tokens: int | None, snapshots: Sequence[Any]) -> Meter:
    """Build the meter. ``tokens`` are of the last prompt, and ``snapshots``, oldest first, tell what requests held."""
    if tokens is None or not snapshots:
        parts = parts_of({}, tokens, 0, health["model_context_limit"]) if tokens is not None else ()
        return Meter(_standing(health, tokens), parts)
    newest = snapshots[-1]
    sent = Sent.of(newest.generation__sent)
    base = newest.generation__base
    alike = [*takewhile(lambda row: row.generation__base == base, reversed(snapshots))][::-1]
    growth = growth_per_answer([row.prompt_tokens for row in alike])
    clauses = _forecast(health, tokens, growth) if growth else []
    change, cause = _change(snapshots[-2:])
    return Meter(
        lead=_sentence(clauses[:1]) or _standing(health, tokens),
        parts=parts_of(_split(sent, tokens), tokens, sent.output or 0, health["model_context_limit"]),
        forecast=_sentence(clauses),
        growth=round(growth or 0) if clauses else 0,
        change=change,
        cause=cause,
    )


def _standing(health: dict[str, Any], tokens: int | None) -> str:
    """Return the state of things if there is nothing to forecast, or an empty text if it is unknown."""
    return _(STANDINGS[health["level"]]) if tokens is not None and health["level"] in STANDINGS else ""


def _split(sent: Sent, tokens: int) -> dict[str, int]:
    return {category.value: share for category, share in split_by_chars(sizes_of(sent), tokens).items()}


def parts_of(split: Mapping[str, int], tokens: int, reserve: int, window: int | None) -> tuple[Part, ...]:
    """Return the parts by category, then the reserve for the answer, and the rest of the window if it is known."""
    named = {**(split or {PROMPT: tokens}), RESERVE: reserve, FREE: max(0, (window or 0) - tokens - reserve)}
    whole, upto, parts = window or tokens + reserve, 0, list[Part]()
    for name, size in named.items():
        if size:
            x, upto = min(upto, whole), upto + size
            left, right = x * BAR / whole, min(upto, whole) * BAR / whole
            kind = "reserve" if name == RESERVE else name.replace(" ", "-")
            parts.append(Part(name, kind, size, round(left, 2), round(right - left, 2)))
    return tuple(parts)


def _forecast(health: dict[str, Any], tokens: int, growth: float) -> list[str]:
    """Return a clause for each level ahead, the nearer first, or nothing for a level that is unknown or the last."""
    optimal, critical = health["optimal_max_tokens"], health["critical_max_tokens"]
    if health["level"] not in (Level.HEALTHY, Level.CAUTION) or not critical:
        return []
    ahead = [("Caution", optimal)] if tokens <= optimal < critical else []
    clauses = list[str]()
    for label, threshold in (*ahead, ("Critical", critical)):
        answers = answers_until(threshold, tokens, growth)
        about, level = _about(answers), _(label)
        if clauses:
            clauses.append(_("{about} until {level}").format(about=about, level=level))
        else:
            first = ngettext("{about} answer until {level}", "{about} answers until {level}", answers)
            clauses.append(first.format(about=about, level=level))
        if answers > FAR:
            break
    return clauses


def _sentence(clauses: list[str]) -> str:
    if not clauses:
        return ""
    sentence = pgettext("between two clauses", ", ").join(clauses)
    return f"{sentence[0].upper()}{sentence[1:]}{pgettext('end of a sentence', '.')}"


def _about(answers: int) -> str:
    if answers > FAR:
        return _("more than {number}").format(number=FAR)
    return _("about {number}").format(number=_(NUMBERS[answers]) if answers < len(NUMBERS) else answers)


def _change(last: Sequence[Any]) -> tuple[str, str]:
    if len(last) < 2:
        return "", ""
    before, after = last
    if None in (before.prompt_tokens, after.prompt_tokens) or before.prompt_tokens == after.prompt_tokens:
        return "", ""
    change = f"{after.prompt_tokens - before.prompt_tokens:+,}".replace("-", "−")
    (round_before, _colon, run_before), (number, _colon, run) = (row.generation__base.partition(":") for row in last)
    if number != round_before:
        return change, _("a new round")
    return change, _("a rewrite or its undo") if run != run_before else ""
