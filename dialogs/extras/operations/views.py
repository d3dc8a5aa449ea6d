"""The operators' page, with the server's state and actions on stuck dialogs, and the page of costs."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext
from django.views.decorators.http import require_GET, require_POST

from dialogs.actions import interventions
from dialogs.errors import Refusal
from dialogs.extras.operations import costs
from dialogs.extras.operations import dashboard as server
from dialogs.pages.bar_chart import Chart, Words, format_number, stack
from dialogs.permissions import OPERATE, may
from dialogs.views.answers import PersonRequest, for_operators
from remediation.policies.registry import label_of
from remediation.spending import Spent, in_usd

ACTIONS: dict[str, Callable[..., None]] = {
    "interrupt": interventions.interrupt,
    "wake": interventions.wake,
    "fail": interventions.fail,
    "retry": interventions.retry,
}
DONE = {
    "interrupt": gettext_noop("Asked the worker to stop."),
    "wake": gettext_noop("Woken: a worker takes up the dialog now."),
    "fail": gettext_noop("The message was marked as failed; its owner sees that and can retry."),
    "retry": gettext_noop("The message is being answered again."),
    "finish": gettext_noop("The cleanup task is done."),
}


@for_operators
@require_GET
def dashboard(request: PersonRequest) -> HttpResponse:
    """Show the page; htmx fetches its inner part again every ten seconds."""
    template = "ops/_dashboard.html" if request.htmx else "ops/dashboard.html"
    recent = server.recent()
    context = {
        "cards": server.cards(recent),
        "recent": recent,
        "parts": server.parts(),
        "leases": server.held_leases(),
        "stuck": server.stuck_dialogs(),
        "failed": server.failed_dialogs(),
        "undelivered": server.list_undelivered(),
        "backing_off": server.backing_off(),
        "levels": stack(server.levels_by_hour(), Words(_("j M H:i"), label="H", every=4)),
        "compactions": stack(server.compactions_by_day(), Words(_("j M"), of_sum=_of_policy)),
        "context_events": server.context_events(),
        "tasks": server.cleanup_tasks(),
        "proposals": server.proposals(),
        "now": timezone.now(),
        "section": "ops",
    }
    return render(request, template, context)


MOST_LINES = 50  # lines of one table; names beyond them can still be typed into the address


class StatisticsForm(forms.Form):
    """The values by which the statistics are filtered. Invalid values are ignored."""

    day = forms.DateField(required=False)
    model = forms.CharField(max_length=201, required=False)
    agent = forms.CharField(max_length=64, required=False)
    person = forms.CharField(max_length=150, required=False)


@login_required
@require_GET
def statistics(request: PersonRequest) -> HttpResponse:
    """Show a person's costs; operators may also look at another person's, or everybody's.

    A bar or name leads to the same page with a further filter.
    """
    form = StatisticsForm(request.GET)
    form.is_valid()
    chosen = {by: str(form.cleaned_data[by]) for by in costs.KEYS if form.cleaned_data.get(by)}
    held = costs.narrow(request.user, chosen)
    result = costs.tables(held)
    days = costs.by_day(result[0])
    context = {
        "days": costs.DAYS,
        "zone": timezone.get_current_timezone_name(),
        "chosen": [
            (by, value, _narrowed_address({**chosen, by: ""}))
            for by, value in chosen.items()
            if value != costs.EVERYBODY
        ],
        "mine": _narrowed_address({**chosen, "person": ""}),
        "everybodys": _narrowed_address({**chosen, "person": costs.EVERYBODY}),
        "person": held.get("person", costs.EVERYBODY),
        "is_of_everybody": "person" not in held,
        "cost_chart": _by_day(
            [(day, {"cost": float(cost.cost_usd)}) for day, cost in days],
            chosen,
            _in_dollars,
            0,
            _unpriced_title(dict(days)),
        ),
        "cost_caption": _cost_caption(sum(cost.unpriced for _, cost in days)),
        "token_chart": _by_day([(day, _tokens(cost)) for day, cost in days], chosen, format_number, 2),
        "tables": [_first_lines(table, chosen) for table in result if "person" not in held or table.by != "person"],
        "dialogs": costs.dialogs(request.user, held) if chosen else [],
        "calls": costs.calls(request.user, held),
        "is_operator": may(request.user, OPERATE),
        "section": "statistics",
    }
    return render(request, "ops/statistics.html", context)


def _narrowed_address(chosen: costs.Chosen) -> str:
    wanted = urlencode({by: chosen[by] for by in costs.KEYS if chosen.get(by)})
    return reverse("statistics") + (f"?{wanted}" if wanted else "")


def _of_policy(number: float, name: str) -> str:
    return f"{number:,.0f} {_(label_of(name))}" if name else format_number(number, name)


def _by_day(
    table: list[tuple[datetime, dict[str, float]]],
    chosen: costs.Chosen,
    words: Callable[[float, str], str],
    least: float,
    rest: Callable[[datetime], str] = lambda day: "",
) -> Chart:
    several = sum(any(sums.values()) for _, sums in table) > 1

    def address(day: datetime) -> str:
        return _narrowed_address({**chosen, "day": day.date().isoformat()}) if several else ""

    return stack(table, Words(_("j M"), of_sum=words, rest=rest), least=least, address=address)


def _unpriced_title(days: dict[datetime, costs.Cost]) -> Callable[[datetime], str]:
    """Return a function for the title of a day's bar that names the calls which are not in it."""

    def rest(day: datetime) -> str:
        result = Spent(days[day].cost_usd, days[day].unpriced)
        if result.is_unknown:
            return _("unknown price")
        left_out = ngettext("{:,} call of unknown price", "{:,} calls of unknown price", result.unpriced)
        return left_out.format(result.unpriced) if result.unpriced else ""

    return rest


def _cost_caption(unpriced: int) -> str:
    left_out = ngettext(
        "Not in the bars: {:,} call of unknown price.", "Not in the bars: {:,} calls of unknown price.", unpriced
    ).format(unpriced)
    return " ".join([_("A bar leads to its day."), *([left_out] if unpriced else [])])


def _in_dollars(cost: float, kind: str) -> str:
    """Write a sum in short form at the axis, where all numbers are round."""
    words = in_usd(Decimal(str(cost)))
    return words if kind else words.rstrip("0").rstrip(".")


def _tokens(cost: costs.Cost) -> dict[str, float]:
    fresh = max(0, cost.prompt_tokens - cost.cache_read_tokens)
    return {"prompt": fresh, "from cache": cost.cache_read_tokens, "completion": cost.completion_tokens}


def _first_lines(table: costs.Table, chosen: costs.Chosen) -> tuple[str, list[tuple[str, costs.Cost, float, str]], int]:
    """Return a table's name, its first lines, and the number of others."""
    lines = _lines(table, chosen)
    return table.by, lines, len(table.rows) - len(lines)


def _lines(table: costs.Table, chosen: costs.Chosen) -> list[tuple[str, costs.Cost, float, str]]:
    """Return each line with its percentage of the greatest, and the address behind its name, if there is one.

    Percentages are by cost if any cost is known, and otherwise by tokens.
    """
    sizes = [float(cost.cost_usd) for _, cost in table.rows]
    sizes = sizes if any(sizes) else [float(cost.tokens) for _, cost in table.rows]
    most = max(sizes, default=0) or 1
    return [
        (
            name,
            cost,
            round(100 * size / most, 1),
            _narrowed_address({**chosen, table.by: name}) if len(table.rows) > 1 else "",
        )
        for (name, cost), size in zip(table.rows[:MOST_LINES], sizes, strict=False)
    ]


@for_operators
@require_POST
def intervene(request: PersonRequest, dialog_id: Any, action: str) -> HttpResponse:
    if action not in ACTIONS:
        raise Http404
    return _do(request, action, lambda: ACTIONS[action](dialog_id, request.user))


@for_operators
@require_POST
def finish_task(request: PersonRequest, task_id: int) -> HttpResponse:
    return _do(request, "finish", lambda: interventions.finish_task(task_id, request.user))


def _do(request: PersonRequest, action: str, act: Callable[[], None]) -> HttpResponse:
    try:
        act()
    except Refusal as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, _(DONE[action]))
    return redirect("ops")
