"""Tokens of a dialog's model calls, as reported, and of its next request, as estimated."""

from typing import Any

from django.db.models import Count, Q, Sum

from dialogs.models import Dialog, Generation
from dialogs.models.known_costs import COST_IS_KNOWN, COST_IS_UNKNOWN
from dialogs.runtime.materials import materials_of
from dialogs.runtime.next_call import next_prompt
from dialogs.store import json_shapes
from dominds.llm.catalog.catalog import UnknownModel


def statistics_of(dialog: Dialog) -> dict[str, Any]:
    """Return the tokens of the dialog's calls.

    ``reported`` sums what providers reported, discarded calls included. ``unreported`` counts calls without a report,
    and ``unpriced`` those that ``cost_usd`` leaves out. ``next_request`` is estimated, and null if the policy counts no
    tokens.
    """
    over = dialog.generations.exclude(outcome=Generation.Outcome.RUNNING)
    purposes = over.values("purpose").annotate(**_SUMS).order_by("purpose")
    return {
        "reported": _sums_of(over.aggregate(**_SUMS)),
        "by_purpose": {row["purpose"]: _sums_of(row) for row in purposes},
        "next_request": _next_request(dialog),
    }


_SUMS: dict[str, Any] = {
    "generations": Count("pk"),
    "unreported": Count("pk", filter=Q(prompt_tokens=None)),
    "input_tokens": Sum("prompt_tokens"),
    "output_tokens": Sum("completion_tokens"),
    "total_tokens": Sum("total_tokens"),
    "cache_read_tokens": Sum("cache_read_tokens"),
    "cache_write_tokens": Sum("cache_write_tokens"),
    "reasoning_tokens": Sum("reasoning_tokens"),
    # Stands before the sum ``cost_usd``, which would hide the column of that name.
    "unpriced": Count("pk", filter=COST_IS_UNKNOWN & ~Q(outcome=Generation.Outcome.FAILED)),
    "cost_usd": Sum("cost_usd", filter=COST_IS_KNOWN),
}


def _sums_of(row: Any) -> dict[str, Any]:
    return {**{name: row[name] for name in _SUMS}, "cost_usd": json_shapes.usd(row["cost_usd"])}


def _next_request(dialog: Dialog) -> dict[str, Any] | None:
    try:
        materials = materials_of(dialog)
    except UnknownModel:
        return None
    if not materials.served.policy.counts:
        return None
    sizes = materials.sizes.own
    prompt = next_prompt(dialog, materials, sizes)
    return {
        "est_input_tokens": prompt,
        "est_output_room": sizes.budget.answer,
        "est_total_tokens": prompt + sizes.budget.answer,
        "est_source": sizes.source,
        "limit": sizes.limit,
    }
