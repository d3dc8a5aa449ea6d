"""Workers that vanish, in this process: they leave behind exactly the rows that a killed one would."""

from contextlib import AbstractContextManager
from datetime import timedelta

from django.db.models.functions import Now

from dialogs.context.request import prepare
from dialogs.models import Dialog
from dialogs.runtime import attempts
from dialogs.runtime.situation import situation_of
from dialogs.store.lease import Lease, claim, keeper
from remediation.decisions import Proceed
from remediation.guidance import CLEAR_MIND
from remediation.policies import decide

_claims: list[AbstractContextManager[Lease | None]] = []  # kept, for a forgotten claim would be given back


def take_and_vanish(dialog: Dialog) -> Lease:
    """Claim the dialog and never look at it again. Its lease is over at once."""
    claimed = claim(dialog.pk)
    lease = claimed.__enter__()
    assert lease is not None, "nothing to claim"
    _claims.append(claimed)
    keeper.remove(lease)
    expire(dialog)
    return lease


def expire(dialog: Dialog) -> None:
    """As another worker's: this process may just be renewing what it held when it last looked."""
    Dialog.objects.filter(pk=dialog.pk).update(lease_owner="vanished", lease_until=Now() - timedelta(seconds=1))


def call_and_vanish(dialog: Dialog) -> Lease:
    """Claim the dialog, begin the model call that it owes, and vanish in the middle of it."""
    lease = take_and_vanish(dialog)
    situation = situation_of(Dialog.objects.select_related("agent").get(pk=dialog.pk))
    plan = decide(situation.policy, situation.context)
    assert isinstance(plan, Proceed), plan
    tools = [tool.spec for tool in situation.tools.values()]
    required = CLEAR_MIND if plan.clear_only else ""
    prepared = prepare(
        situation.dialog, situation.view, situation.model, tools, guidance=plan.guidance, required_tool=required
    )
    attempts.begin(
        lease,
        situation.model,
        prepared,
        situation.thresholds,
        forced=plan.clear_only,
        counted=situation.counted(),
    )
    return lease
