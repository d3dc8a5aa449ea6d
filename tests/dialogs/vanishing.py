"""Workers that vanish, in this process: they leave behind exactly the rows that a killed one would."""

from contextlib import AbstractContextManager
from datetime import timedelta

from django.db.models.functions import Now

from dialogs.context.model_calls import ModelCall
from dialogs.context.request import prepare
from dialogs.context.retrieval.recall import PushRecall
from dialogs.models import Dialog
from dialogs.runtime import attempts, next_call
from dialogs.runtime.materials import materials_of
from dialogs.runtime.policy_context import context_of
from dialogs.store.lease import Lease, claim, keeper
from remediation.decisions import ForceClear, Proceed
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
    dialog = Dialog.objects.select_related("agent").get(pk=dialog.pk)
    materials = materials_of(dialog)
    served, view, _tools, sizes = materials
    call: ModelCall
    match decide(served.policy, context_of(dialog, served, view, sizes)):
        case Proceed(guidance):
            call = next_call.answer(dialog, materials, guidance, "", PushRecall(dialog, view))
        case ForceClear(guidance):
            call = next_call.forced_clear(dialog, materials, guidance)
        case other:
            raise AssertionError(f"no call is due, but {other}")
    attempts.begin(lease, dialog, served, call, prepare(dialog, served.model, call))
    return lease
