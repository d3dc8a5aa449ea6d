"""The model that answers in a dialog: its agent's own, or another one (``docs/spec.md#other-model``)."""

from uuid import UUID

from django.contrib.auth.models import User

from dialogs.actions.messages import check_open
from dialogs.context.limits import unusable_reason
from dialogs.errors import Conflict, NotFound
from dialogs.models import Dialog, Turn
from dialogs.state import State
from dialogs.store.change import open_change


def choose(dialog_id: UUID, provider: str, model: str, by: User) -> bool:
    """Choose the model from the next message on, and return whether it changed. Empty names choose the agent's own.

    A line on the page says where another model began.
    """
    reason = unusable_with(dialog_id, (provider, model))
    with open_change(dialog_id) as change:
        dialog = change.dialog
        check_open(dialog)
        if dialog.state not in (State.IDLE, State.FAILED):
            raise Conflict(
                "dialog_busy", f"The dialog is {dialog.state}. Choose another model when it has finished, or stop it."
            )
        if reason:
            raise Conflict("agent_unusable", reason)
        before = dialog.provider_id, dialog.model_id
        move(dialog, provider, model)
        if before == (dialog.provider_id, dialog.model_id):
            return False
        change.event("model", provider=dialog.provider_id, model=dialog.model_id)
        if dialog.last_position:
            text = f"From here on {dialog.model_id} answers; {by.get_username()} chose it."
            change.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=text, author_id=by.pk)
        return True


def move(dialog: Dialog, provider: str, model: str) -> None:
    """Set the model within a change. Without a provider the model is one of the dialog's present provider.

    Another model begins without the calibration and the overflow of the one before; the same model keeps them.
    """
    before = dialog.provider_id, dialog.model_id
    dialog.provider, dialog.model = provider or (dialog.provider_id if model else ""), model
    if before != (dialog.provider_id, dialog.model_id):
        dialog.overflowed = False
        dialog.calibration = dialog.calibration_fit = None


def unusable_with(dialog_id: UUID, chosen: tuple[str, str] | None = None) -> str:
    """Return the reason why the dialog's model, or the chosen one, cannot answer now. Call it before the row is locked,
    because it may ask a server.
    """
    dialog = Dialog.objects.select_related("agent").filter(pk=dialog_id).first()
    if dialog is None:
        raise NotFound("There is no such dialog.")
    if chosen is not None:
        move(dialog, *chosen)
    return unusable_reason(dialog)
