"""What an answer tells a program of its dialog's context: in headers, and in the last chunk under ``dominds``."""

from collections.abc import Iterator
from datetime import datetime
from operator import itemgetter
from typing import Any

from django.db.models import Count, F, Q, Sum
from django.http.response import HttpResponseBase
from django.urls import reverse

from dialogs.context import limits
from dialogs.models import Dialog, Generation, Round
from dialogs.openai_api.conversations import Run
from remediation.models import RemediationRun

COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
SHARES = {"prompt_tokens_details": ("cached_tokens", "cache_read_tokens"),
          "completion_tokens_details": ("reasoning_tokens", "reasoning_tokens")}  # fmt: skip
HEADERS = {"X-Dominds-Level": "level", "X-Dominds-Est-Prompt-Tokens": "est_prompt_tokens",
           "X-Dominds-Prompt-Tokens": "prompt_tokens"}  # fmt: skip
UNHEARD = ("failed", "crashed", "running")

Report = dict[str, Any]


def report_of(run: Run) -> Report:
    """How full the context is now, what was done about it since the request came, and what all calls took together."""
    dialog = Dialog.objects.select_related("agent").get(pk=run.dialog_id)
    health = limits.health_of(dialog)
    calls = Generation.objects.filter(dialog=dialog, answers_seq=run.seq, pk__gt=run.after_generation)
    newest = calls.filter(purpose=Generation.Purpose.REPLY).order_by("-pk").first()
    return {
        "level": health["level"],
        "reason": health["reason"],
        "est_prompt_tokens": newest and newest.est_prompt_tokens,
        "prompt_tokens": health["prompt_tokens"],
        "model_context_limit": health["model_context_limit"],
        "done": [told for _, told in sorted(_done(run), key=itemgetter(0))],
        "calls": _calls(calls.exclude(outcome__in=UNHEARD)),
    }


def _done(run: Run) -> Iterator[tuple[datetime, dict[str, Any]]]:
    """Rewrites and clears with their times, each with the address of its page."""
    rewrites = RemediationRun.objects.filter(dialog=run.dialog_id, pk__gt=run.after_rewrite, undone_at=None)
    for done in rewrites.only("created_at", "policy", "est_before", "est_after"):
        sizes = {"policy": done.policy, "est_before": done.est_before, "est_after": done.est_after}
        address = reverse("archived-run", args=[run.dialog_id, done.pk])
        yield done.created_at, {"kind": "rewrite", **sizes, "address": address}
    for begun in Round.objects.filter(dialog=run.dialog_id, number__gt=run.round_number):
        address = reverse("dialog", args=[run.dialog_id])
        yield begun.created_at, {"kind": "clear", "round": begun.number, "cause": begun.cause, "address": address}


def _calls(calls: Any) -> dict[str, Any]:
    """A sum is null when one of the calls reported nothing."""
    sums = calls.aggregate(
        count=Count("pk"), unreported=Count("pk", filter=Q(total_tokens=None)), **{name: Sum(name) for name in COUNTS}
    )
    is_known = not sums.pop("unreported")
    return {name: sums[name] if is_known or name == "count" else None for name in ("count", *COUNTS)}


def usage_of(run: Run) -> dict[str, Any] | None:
    """What the call that ended this answer reported, in OpenAI's shape; calls beside it count in the report alone."""
    calls = Generation.objects.filter(dialog=run.dialog_id, answers_seq=run.seq, pk__gt=run.after_generation)
    own = calls.filter(purpose=Generation.Purpose.REPLY).exclude(outcome__in=UNHEARD)
    shares = {column: F(column) for _, column in SHARES.values()}
    row = own.order_by("-pk").values(*COUNTS, *shares).first()
    if row is None or any(row[name] is None for name in COUNTS):
        return None
    known = {part: {name: row[column]} for part, (name, column) in SHARES.items() if row[column] is not None}
    return {**{name: row[name] for name in COUNTS}, **known}


def add_headers(answer: HttpResponseBase, report: Report) -> None:
    for header, name in HEADERS.items():
        if report[name] is not None:
            answer[header] = str(report[name])
    if report["done"]:
        answer["X-Dominds-Done"] = report["done"][-1]["address"]
