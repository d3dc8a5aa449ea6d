"""Context health in answers to programs: in headers, and in the last chunk under ``dominds``."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.urls import reverse

from dialogs.context import limits
from dialogs.context.sent import est_tokens_of
from dialogs.extras.v1.runs import Run
from dialogs.models import Dialog, Generation, Round
from dominds.db.prepared import Select
from remediation.models import RemediationRun

COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
SHARES = (
    ("prompt_tokens_details", "cached_tokens", "cache_read_tokens"),
    ("prompt_tokens_details", "cache_write_tokens", "cache_write_tokens"),
    ("completion_tokens_details", "reasoning_tokens", "reasoning_tokens"),
)
HEADERS = {
    "X-Dominds-Level": "level",
    "X-Dominds-Est-Prompt-Tokens": "est_prompt_tokens",
    "X-Dominds-Prompt-Tokens": "prompt_tokens",
}
WITHOUT_ANSWER = ("failed", "crashed", "running")

Report = dict[str, Any]


def calls_of(run: Run) -> QuerySet[Generation]:
    """Return the model calls of this answer. An earlier request may have made some, up to a client's tool."""
    return calls_for(run.dialog_id, run.seq, run.after_generation)


def calls_for(dialog_id: UUID, seq: int, after: int) -> QuerySet[Generation]:
    return Generation.objects.filter(dialog_id=dialog_id, answers_seq=seq, pk__gt=after)


def report_of(run: Run) -> Report:
    """Return the report while the answer is under way."""
    dialog = Dialog.objects.select_related("agent").get(pk=run.dialog_id)
    return report_with(run, dialog, calls_of(run).order_by("-pk"))


def report_with(run: Run, dialog: Dialog, calls: Iterable[Generation]) -> Report:
    """Report how full the context is, what was done about it since the request came, and what all ``calls`` took.

    ``calls`` begin with the newest.
    """
    health = limits.health_of(dialog)
    newest = next((call for call in calls if call.purpose == Generation.Purpose.REPLY), None)
    return {
        "level": health["level"],
        "reason": health["reason"],
        "est_prompt_tokens": newest and est_tokens_of(newest),
        "prompt_tokens": health["prompt_tokens"],
        "model_context_limit": health["model_context_limit"],
        "done": [entry for _, entry in sorted(_actions_taken(run, dialog), key=itemgetter(0))],
        "calls": _sums([call for call in calls if call.outcome not in WITHOUT_ANSWER]),
    }


def _actions_taken(run: Run, dialog: Dialog) -> Iterator[tuple[datetime, dict[str, Any]]]:
    """Yield rewrites and clears with their times, each with the address of its page."""
    for done in _rewrites(run.dialog_id, run.after_rewrite):
        sizes = {"policy": done.policy, "est_before": done.est_before, "est_after": done.est_after}
        address = reverse("archived-run", args=[run.dialog_id, done.pk])
        yield done.created_at, {"kind": "rewrite", **sizes, "address": address}
    if dialog.round_number == run.round_number:
        return
    for begun in Round.objects.filter(dialog=run.dialog_id, number__gt=run.round_number):
        address = reverse("dialog", args=[run.dialog_id])
        yield begun.created_at, {"kind": "clear", "round": begun.number, "cause": begun.cause, "address": address}


@Select
def _rewrites(dialog_id: UUID, after: int) -> QuerySet[RemediationRun, Any]:
    rewrites = RemediationRun.objects.filter(dialog_id=dialog_id, pk__gt=after, undone_at=None)
    return rewrites.values_list("pk", "created_at", "policy", "est_before", "est_after", named=True)


def _sums(calls: Sequence[Generation]) -> dict[str, Any]:
    """Sum counts. A sum is null when one of the calls reported nothing, and when there is no call."""
    is_known = calls and all(call.total_tokens is not None for call in calls)
    sums = {name: sum(getattr(call, name) or 0 for call in calls) if is_known else None for name in COUNTS}
    return {"count": len(calls), **sums}


def usage_of(calls: Iterable[Generation]) -> dict[str, Any] | None:
    """Return the report of the call that ended this answer, in OpenAI's shape."""
    own = (call for call in calls if call.purpose == Generation.Purpose.REPLY and call.outcome not in WITHOUT_ANSWER)
    last = next(own, None)
    if last is None or any(getattr(last, name) is None for name in COUNTS):
        return None
    usage: dict[str, Any] = {name: getattr(last, name) for name in COUNTS}
    for part, name, column in SHARES:
        if (tokens := getattr(last, column)) is not None:
            usage.setdefault(part, {})[name] = tokens
    return usage


def add_headers(answer: HttpResponseBase, report: Report) -> None:
    for header, name in HEADERS.items():
        if report[name] is not None:
            answer[header] = str(report[name])
    if report["done"]:
        answer["X-Dominds-Done"] = report["done"][-1]["address"]
