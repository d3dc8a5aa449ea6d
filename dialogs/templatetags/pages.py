"""Tags and filters of the pages: numbers, times, icons."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import Any

from django import template
from django.template.base import Parser, TextNode, Token
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.dateformat import format as date_format
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dialogs.context import connected, limits
from dialogs.pages.chip import Chip
from dialogs.pages.dialog_page import state_label
from dialogs.pages.markdown import render
from dialogs.pages.meter import Part
from dialogs.pages.story import beginning_of
from dialogs.state import State
from dialogs.store import json_shapes
from dominds.budgets import ATTACHMENT_BYTES, ATTACHMENTS
from dominds.llm.models.model import ModelInfo, Thinking
from dominds.llm.models.prices import price_of
from health.levels import Level
from health.models import HealthSnapshot
from remediation.spending import Spent, in_usd

register = template.Library()

FOLDED_CHARS, FOLDED_LINES = 800, 12
MINUTE, HOUR, DAY = 60, 3600, 86400


@register.tag
def icon(parser: Parser, token: Token) -> TextNode:
    """Draw the icon of this name in ``icons.svg``. Screen readers skip it, since words stand beside it.

    The HTML is made when the template is compiled, because a turn has three or four icons.
    """
    _tag, name = token.split_contents()
    html = '<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>'
    return TextNode(format_html(html, static("icons.svg"), name.strip("\"'")))


@register.simple_tag
def form_to(view: str, *args: object, question: str = "") -> SafeString:
    """Write the attributes of a form that htmx sends without leaving the page, and browsers without scripts as usual.

    htmx asks the ``question`` first, if there is one.
    """
    address = reverse(view, args=args)
    asks = format_html(' hx-confirm="{}"', question) if question else ""
    return format_html('method="post" action="{0}" hx-post="{0}" hx-swap="none"{1}', address, asks)


@register.inclusion_tag("dialogs/_attach.html")
def attach_files(may_send: bool) -> dict[str, Any]:
    """Return what a form for messages needs to take files, next to a label for ``attachments``."""
    return {
        "may_send": may_send,
        "bytes": ATTACHMENT_BYTES,
        "files": ATTACHMENTS,
        "too_long": ATTACHMENT_BYTES.sentence("It has"),
        "too_many": ATTACHMENTS.sentence("There would be"),
    }


@register.simple_tag
def model_link(provider: str, model: str, before: str = "") -> SafeString:
    """Write a model's name, with a link to its page if the catalog still has it."""
    known = known_model(provider, model)
    if known is None:
        return format_html("{}{}", before, model)
    return format_html('<a href="{}">{}{}</a>', reverse("model", args=[provider, model]), before, display_name(known))


@register.simple_tag
def model_name(provider: str, model: str = "") -> str:
    """Return the name of a model, or its id if the catalog does not have it. ``provider`` alone may be of the form
    ``provider/model``.
    """
    if not model:
        provider, _slash, model = provider.partition("/")
    return display_name(known_model(provider, model), model)


@register.simple_tag
def known_model(provider: str, model: str) -> ModelInfo | None:
    """Return a model as the catalog has it."""
    return limits.catalog().models.get((provider, model))


@register.filter
def with_provider(model: str) -> str:
    """Return the name of a model given as ``provider/model``, with its provider, since several may have the model."""
    return f"{model_name(model)} ({model.partition('/')[0]})"


@register.filter
def display_name(model: ModelInfo | None, unknown: str = "") -> str:
    """Return a model's name. The names of the demo agents' models say what they do, and are translated."""
    if model is None:
        return unknown
    return _(model.name) if model.provider_id == "demo" else model.name


@register.simple_tag
def marks() -> dict[str, Any]:
    """Return the meanings of the pages' marks: states of dialogs, and levels of contexts."""
    return {"states": [(state.value, state_label(state)) for state in State], "levels": [str(level) for level in Level]}


@register.filter
def blind(model: ModelInfo | None) -> str:
    """Write the attribute by which scripts know a model that certainly sees no images."""
    if model is None or "image" in model.modalities or not model.states_modalities:
        return ""  # the server may know what the catalog does not say
    return "data-blind"


@register.simple_tag
def model_facts(model: ModelInfo) -> str:
    """Return a line about a model for people who choose one: its window, its abilities, and its present price."""
    marks = [_("{number} tokens").format(number=f"{model.limit[0]:,}")] if model.limit[0] else []
    is_ones_own = model.kind.is_local or model.provider_id in connected.connected()
    if "image" in model.modalities and (model.states_modalities or not is_ones_own):
        marks.append(_("sees images"))  # of a person's own server this is only assumed until the server says so
    if model.thinking not in (Thinking.UNKNOWN, Thinking.NEVER):
        marks.append(_("can think"))
    if price := price_of(0, model.prices, timezone.now()):
        words = _("${input} in, ${output} out per million tokens")
        marks.append(words.format(input=price.input, output=price.output))
    return " · ".join(marks)


@register.simple_tag
def term(anchor: str, words: str) -> SafeString:
    """Mark words that the glossary explains."""
    return format_html('<a class="term" href="{}#{}">{}</a>', reverse("glossary"), anchor, words)


@register.filter
def tokens(number: int | str | None) -> str:
    """Write a number with its thousands apart, or "unknown" for None and for "", Django's value of a missing row."""
    return f"{number:,}" if isinstance(number, int) else _("unknown")


@register.filter
def used(snapshot: HealthSnapshot) -> str:
    """Write what a request and its answer took."""
    sizes = {"prompt_tokens": snapshot.prompt_tokens, "completion_tokens": snapshot.completion_tokens}
    words = {name: tokens(size) for name, size in sizes.items()}
    return _("%(prompt_tokens)s prompt / %(completion_tokens)s completion") % words


@register.filter
def tok(snapshot: HealthSnapshot | None) -> str:
    """Write the size of a request, as far as it was reported."""
    if snapshot is None or snapshot.prompt_tokens is None:
        return _("usage not reported")
    return _("%(number)s tok") % {"number": tokens(snapshot.prompt_tokens)}


@register.filter
def usd(cost: Decimal | str | None) -> SafeString | str:
    """Write dollars for people, with all digits in the element's value for programs."""
    if not isinstance(cost, Decimal):
        return _("unknown price")
    return format_html('<data value="{}">{}</data>', json_shapes.usd(cost), in_usd(cost))


@register.simple_tag
def spent(cost: Decimal, unpriced: int, budget: Decimal | None = None) -> SafeString | str:
    """Write the cost of several calls, some of which may have no known price."""
    result = Spent(cost, unpriced)
    if result.is_unknown:
        return _("unknown price")
    of = (
        format_html(' <span class="muted">{}</span>', format_html(_("of {}"), usd(budget)))
        if budget is not None
        else ""
    )
    left_out = ngettext("and {:,} call of unknown price", "and {:,} calls of unknown price", unpriced).format(unpriced)
    rest = format_html(' <span class="muted rest">{}</span>', left_out) if unpriced else ""
    return format_html("{}{}{}", usd(cost), of, rest)


@register.filter
def percent(ratio: float | str | None) -> str:
    return f"{ratio * 100:.1f} %" if isinstance(ratio, int | float) else _("unknown")


register.filter("beginning", beginning_of)


@register.filter
def spans(numbers: Sequence[int]) -> str:
    """Write ascending numbers, consecutive ones as a span: 1–3, 7. After six spans, an ellipsis stands for the rest."""
    runs = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    groups = [[number for _, number in run] for _, run in runs]
    written = [f"{group[0]}–{group[-1]}" if len(group) > 1 else str(group[0]) for group in groups[:6]]
    return ", ".join(written) + ("…" if len(groups) > 6 else "")


@register.filter
def at(value: Mapping[int, object], position: int) -> object | None:
    """Return the value under this number, if there is one."""
    return value.get(position)


@register.filter
def chart_width(points: list[dict[str, float]]) -> float:
    """Return the width of the chart. If there are few bars, they stand at its right."""
    return points[-1]["x"] + 8


@register.simple_tag
def bars(points: list[dict[str, Any]]) -> SafeString:
    """Draw the bars of the chart, up to sixty, after each answer.

    A loop in the template took most of the time of rendering the end of an answer.
    """
    reported = escape(_("{number:,} prompt tokens"))
    levels = {level: escape(_(level)) for level in Level}
    return mark_safe(  # nosec B308 B703  numbers, and words that are escaped here
        "".join(
            f'<rect x="{point["x"]}" y="{point["y"]}" width="8" height="{point["height"]}" '
            f'data-level="{escape(row.level)}">'
            f"<title>{_size(row.prompt_tokens, reported)} · {levels[row.level]}</title></rect>"
            for point in points
            for row in (point["snapshot"],)
        )
    )


@register.simple_tag
def changed_lines(lines: Iterable[str]) -> SafeString:
    """Mark the lines of a diff that begin with "+" or "-" as added or removed, and write "…" for omitted ones."""
    marked = {"+": "<ins>{}</ins>\n", "-": "<del>{}</del>\n", "@": "…\n"}
    shown = [*lines][1:]  # each hunk begins with a line of numbers
    return format_html_join("", "{}", ((format_html(marked.get(line[:1], "{}\n"), line),) for line in shown))


@register.simple_tag
def meter_bar(parts: Iterable[Part], chip: Chip) -> SafeString:
    """Draw the parts of the meter's bar and the lines of the levels, in Python for the same reason as ``bars``."""
    drawn = [(f'data-kind="{part.kind}"', part.x, part.width) for part in parts]
    drawn += [(f'class="meter-tick" data-line="{level}"', x, 0.7) for level, x in chip.ticks.items()]
    rects = (f'<rect {what} x="{x}" width="{width}" height="10"/>' for what, x, width in drawn)
    return mark_safe("".join(rects))  # nosec B308 B703  numbers, and names of ours


def _size(prompt_tokens: int | None, reported: str) -> str:
    return escape(_("unknown") if prompt_tokens is None else reported.format(number=prompt_tokens))


@register.filter
def age(moment: datetime | None) -> str:
    """Return the time since then, in one unit."""
    if moment is None:
        return ""
    seconds = max(0, int((timezone.now() - moment).total_seconds()))
    if seconds < MINUTE:
        return _("just now")
    if seconds < HOUR:
        return _("{number} min").format(number=seconds // MINUTE)
    if seconds < DAY:
        return _("{number} h").format(number=seconds // HOUR)
    return _("{number} d").format(number=seconds // DAY)


@register.filter
def ago(moment: datetime) -> str:
    """Return the time since then, as a part of a sentence."""
    if (timezone.now() - moment).total_seconds() < MINUTE:
        return _("just now")
    return _("{age} ago").format(age=age(moment))


@register.filter
def markdown(text: str) -> SafeString:
    """Render a text in the form in which answers stand in their dialog."""
    return mark_safe(render(text))  # nosec B308 B703  it escapes and cleans


@register.filter
def is_long(text: str) -> bool:
    """Check whether a text of the archive is long enough to be folded."""
    return len(text) > FOLDED_CHARS or text.count("\n") >= FOLDED_LINES


@register.filter
def duration(millis: float | None) -> str:
    """Write a stretch of time for people, in milliseconds below a second."""
    if millis is None:
        return _("unknown")
    if millis < 1_000:
        return _("{number} ms").format(number=f"{millis:.0f}")
    return _("{number} s").format(number=f"{millis / 1_000:.1f}")


@register.filter
def iso(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat()


@register.simple_tag
def moment(value: datetime | None, form: str = "H:i") -> SafeString | str:
    """Write a time in the reader's zone, with its day where that is not today. The page's script then rewrites it in
    the manner of their country.
    """
    if value is None:
        return ""
    value = timezone.localtime(value)
    is_time = form == "H:i"
    form = _("j M Y H:i" if is_time and value.date() != timezone.localdate() else form)
    # Every turn has a time in the short form, so that is written without date_format.
    shown = f"{value:%H:%M}" if form == "H:i" else escape(date_format(value, form))
    return mark_safe(  # nosec B308 B703  numbers, a zone's name, and words that are escaped here
        f'<time datetime="{value.isoformat()}" data-form="{"time" if is_time else "date"}" '
        f'title="{value:%Y-%m-%d %H:%M:%S} ({escape(timezone.get_current_timezone_name())})">{shown}</time>'
    )
