"""Prepared rewrites, made while a dialog rests. One is used only if all that it was made from is unchanged."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from uuid import UUID

import structlog
from django.db.models import QuerySet

from dialogs.context.sizes import Sizes
from dialogs.context.units import unit_from_json, unit_to_json
from dialogs.errors import UNREADABLE
from dialogs.models import Dialog
from dominds.db.prepared import Select
from remediation.context import Rewritten, StrategyStep, Unit, Units, total_tokens
from remediation.models import PreparedRewrite
from remediation.policies.laws import broken_law
from remediation.strategies.carrying import removed_from

log = structlog.get_logger(__name__)

NOTE = "prepared while the dialog rested"


@dataclass(frozen=True, slots=True)
class Made:
    """A rewrite that was made, and the versions of the prompts that wrote it, by name."""

    rewritten: Rewritten
    prompts: dict[str, str]


def is_wanted(dialog: Dialog) -> bool:
    """Check whether to prepare rewrites: only for people. A program's next request follows at once, or never."""
    agent = dialog.agent
    return agent.prepare_rewrites and agent.kind.prepares_rewrites and dialog.origin == Dialog.Origin.PERSON


def is_known(dialog: Dialog, policy: str, sizes: Sizes) -> bool:
    """Check whether this rewrite was prepared already, or tried in vain."""
    return _row_in_force(dialog, policy, sizes) is not None


def prepared_for(dialog: Dialog, policy: str, sizes: Sizes) -> Made | None:
    """Return the prepared rewrite, followed by the units since then; None if there is none, or it frees too little."""
    row = _row_in_force(dialog, policy, sizes)
    if row is None or row.content is None:
        return None
    try:
        result = Made(_from_json(row.content, sizes, row.covers), dict(row.prompts))
    except UNREADABLE as error:
        log.warning("prepared_rewrite_unreadable", dialog_id=str(dialog.pk), error=repr(error))
        return None
    rewritten = result.rewritten
    pays = sizes.budget.beside + rewritten.est_after <= sizes.budget.settled
    if not pays or broken_law(sizes.units, rewritten.units):
        return None
    return result


def columns_of(dialog: Dialog, policy: str, sizes: Sizes, made: Made | None) -> dict[str, Any]:
    """Return the columns of the row that keeps the rewrite, or notes that it was tried in vain.

    Call it before the dialog's row is locked: it reads all units.
    """
    return {
        "key": _key(dialog, policy, sizes, sizes.units),
        "covers": len(sizes.units),
        "content": None if made is None or made.rewritten.failure else _to_json(made.rewritten, sizes.units),
        "prompts": made.prompts if made else {},
    }


def _row_in_force(dialog: Dialog, policy: str, sizes: Sizes) -> PreparedRewrite | None:
    row = _row.first(dialog.pk)
    if row is None or row.key != _key(dialog, policy, sizes, sizes.units[: row.covers]):
        return None
    return row


@Select
def _row(dialog_id: UUID) -> QuerySet[PreparedRewrite]:
    return PreparedRewrite.objects.filter(dialog_id=dialog_id)


def _key(dialog: Dialog, policy: str, sizes: Sizes, units: Units) -> str:
    """Return the key, which changes with an undo, a clear or another rewrite, with settings, and with messages."""
    made_from = (
        dialog.pk.hex,
        dialog.history_version,
        policy,
        dialog.provider_id,
        dialog.model_id,
        sizes.limit,
        sizes.config,
        [(unit.id, unit.kind.value, unit.priority, unit.messages) for unit in units],
    )
    return sha256(repr(made_from).encode(errors="replace")).hexdigest()


def _to_json(rewritten: Rewritten, before: Units) -> dict[str, Any]:
    standing = {unit.id: unit.messages for unit in before}
    return {
        "view": [
            {"stays": unit.id} if standing.get(unit.id) == unit.messages else unit_to_json(unit, original=False)
            for unit in rewritten.units
        ],
        "steps": [{**step.as_json(), "touched": sorted(step.touched)} for step in rewritten.steps],
        "summary": rewritten.summary,
        "ledger": list(rewritten.ledger),
        "recovered": rewritten.recovered,
        "millis": rewritten.millis,
    }


def _from_json(content: Mapping[str, Any], sizes: Sizes, covers: int) -> Rewritten:
    """Read a rewrite that was made of the first ``covers`` units, and add the units that follow them."""
    by_id = {unit.id: unit for unit in sizes.units}
    head = (
        by_id[item["stays"]] if "stays" in item else _count(unit_from_json(item), sizes) for item in content["view"]
    )
    units = (*head, *sizes.units[covers:])
    steps = [StrategyStep(**{**step, "touched": frozenset(step["touched"])}) for step in content["steps"]]
    if steps:
        steps[-1] = replace(steps[-1], note="; ".join(part for part in (steps[-1].note, NOTE) if part))
    return Rewritten(
        units=units,
        removed=removed_from(sizes.units, units),
        est_before=total_tokens(sizes.units),
        est_after=total_tokens(units),
        steps=tuple(steps),
        summary=content["summary"],
        ledger=tuple(content["ledger"]),
        recovered=content["recovered"],
        millis=content["millis"],
    )


def _count(unit: Unit, sizes: Sizes) -> Unit:
    return replace(unit, est_tokens=sizes.count(unit.messages))
