"""A report on the context as the model would see it now, for the context panel, the API's dry run and the archive.

All sizes are estimates.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left

from dialogs.actions.rewrite_requests import policy_with
from dialogs.context.retrieval import search
from dialogs.context.retrieval.recall import Recall
from dialogs.context.sizes import Sizes
from dialogs.context.view import view_of
from dialogs.errors import UNREADABLE, Refusal
from dialogs.models import Dialog
from dialogs.queries import facts
from dialogs.runtime import rewrite_job
from dialogs.runtime.materials import Materials, materials_of
from dialogs.runtime.next_call import next_prompt, next_recall
from dialogs.store.json_shapes import usd, when
from dominds.llm.catalog.catalog import UnknownModel
from dominds.llm.messages import Message, Role, chars_of
from remediation.context import Unit, UnitKind, UnitRole
from remediation.models import RemediationRun, RemovedUnit
from remediation.strategies.importance import score_parts
from remediation.strategies.stand_ins import without_heading

TEXT_SHOWN = 400
NOT_STORED = 0  # stands for the seq of a message that is not stored; seqs begin at 1


def context_of(dialog: Dialog, preview: str = "") -> dict[str, Any]:
    """Return the view with sizes and scores of importance. ``preview`` is the verb of a rewrite: with it, the report
    also tells what that rewrite would remove.
    """
    materials = materials_of(dialog)
    policy = materials.served.policy
    sizes = materials.sizes.under(policy_with(preview) if preview else policy)
    recalled = next_recall(dialog, materials, sizes)
    body = {
        "policy": policy.name,
        "est_tokens": sizes.prompt + recalled.est_tokens,
        "est_source": sizes.source,
        "limit": sizes.limit,
        "est_fixed": sizes.budget.frame,
        "recalled": _recalled_json(recalled),
        "units": _units(sizes),
    }
    if preview:
        body["preview"] = _preview(dialog, materials, preview)
    return body


def recalled_for(dialog: Dialog, text: str) -> dict[str, Any]:
    """Return the text that would be recalled for a message with this text if it were sent now."""
    view = view_of(dialog)
    message = Message(Role.USER, text)
    newest = Unit("newest", UnitKind.MESSAGE, UnitRole.USER, (message,), source=(NOT_STORED,))
    view = replace(
        view,
        units=(*view.units, newest),
        messages=(*view.messages, message),
        chars=view.chars + chars_of((message,)),
    )
    materials = materials_of(dialog, view)
    return _recalled_json(next_recall(dialog, materials, materials.sizes.own))


def _recalled_json(recalled: Recall) -> dict[str, Any]:
    return {"est_tokens": recalled.est_tokens, "turns": list(recalled.turns), "text": recalled.text}


def _units(sizes: Sizes) -> list[dict[str, Any]]:
    total = len(sizes.units)
    scores = [score_parts(unit, index, total, sizes.config.retention.weights) for index, unit in enumerate(sizes.units)]
    return [
        {
            **_unit_json(unit),
            "priority": unit.priority,
            "pinned": unit.pinned,
            "score": round(points.total, 1),
            "points": {cause: round(float(part), 1) for cause, part in points._asdict().items()},
        }
        for unit, points in zip(sizes.units, scores, strict=True)
    ]


def _preview(dialog: Dialog, materials: Materials, verb: str) -> dict[str, Any]:
    policy = policy_with(verb)
    result = rewrite_job.preview(dialog, materials, verb)
    sizes = materials.sizes.under(policy)
    before = next_prompt(dialog, materials, sizes)
    standing = {unit.id for unit in result.units}
    shows_scores = policy.by_hand is not None and policy.by_hand.shows_scores
    points = {unit["id"]: unit["points"] for unit in _units(sizes)} if shows_scores else {}
    return {
        "kind": verb,
        "limit": sizes.limit,
        "est_before": before,
        "est_after": before if result.failure else rewrite_job.est_after(dialog, materials, sizes, result, before),
        "summary": "" if result.failure else without_heading(result.summary).strip(),
        "shortened": sum(unit.id in standing for unit in result.removed),
        "removed": [_unit_json(unit) | {"points": points.get(unit.id, {})} for unit in result.removed],
        "problem": result.failure or None,
    }


def previews_of(dialog: Dialog, verbs: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the outcome that each rewrite would have now, by verb."""
    materials = materials_of(dialog)
    return {verb: _preview(dialog, materials, verb) for verb in verbs}


def next_size(dialog: Dialog) -> int | None:
    """Return the estimated tokens of the request that would be sent now. None if the dialog is damaged or its model
    unknown.
    """
    try:
        materials = materials_of(dialog)
        return next_prompt(dialog, materials, materials.sizes.own)
    except (UnknownModel, Refusal, *UNREADABLE):
        return None


def _unit_json(unit: Unit) -> dict[str, Any]:
    return {
        "id": unit.id,
        "kind": unit.kind.value,
        "role": unit.role.value,
        "est_tokens": unit.est_tokens,
        "source": list(unit.source),
        "text": unit.text[:TEXT_SHOWN],
    }


def remediation_json(run: RemediationRun) -> dict[str, Any]:
    return {
        "id": run.pk,
        "round": run.round_number,
        "policy": run.policy,
        "reason": run.reason,
        "strategies": [step["strategy"] for step in run.steps],
        "steps": run.steps,
        "est_before": run.est_before,
        "est_after": run.est_after,
        "removed": run.removed,
        "prompts": run.prompts,
        "summary": run.summary,
        "recovered": run.recovered,
        "saving_usd": usd(run.saving_usd),
        "reread_usd": usd(run.reread_usd),
        "undone": run.undone_at is not None,
        "created_at": when(run.created_at),
    }


def whole_remediation_json(run: RemediationRun) -> dict[str, Any]:
    """Return a rewrite with the units that it removed, the view after it, and the fate of the facts that it removed."""
    units = RemovedUnit.objects.filter(run=run).order_by("pk").defer("text").annotate(start=Left("text", TEXT_SHOWN))
    return {
        **remediation_json(run),
        "before": [{**removed_json(unit), "text": unit.start} for unit in units],
        "after": run.view,
        "facts": facts.measure(run.pk),
    }


def removed_json(row: RemovedUnit) -> dict[str, Any]:
    return {
        "id": row.pk,
        "remediation": row.run_id,
        "unit": row.unit_id,
        "kind": row.kind,
        "role": row.role,
        "est_tokens": row.est_tokens,
    }


def archive(dialog: Dialog) -> QuerySet[RemovedUnit]:
    """Return the units that rewrites removed from the model's sight, newest first."""
    return RemovedUnit.objects.filter(dialog=dialog).order_by("-id")


def found_in_archive(dialog: Dialog, query: str, most: int) -> list[tuple[RemovedUnit, search.Hit]]:
    """Return units that contain a word of the query in any form, best first."""
    hits = [hit for hit in search.in_removed_units(dialog.pk, query, most) if hit.text.is_match]
    rows = archive(dialog).in_bulk([hit.text.number for hit in hits])
    return [(rows[hit.text.number], hit) for hit in hits]
