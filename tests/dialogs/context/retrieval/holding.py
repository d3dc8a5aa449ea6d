"""Dialogs that hold given texts."""

from dialogs.models import Dialog, Turn


def hold(dialog: Dialog, *texts: str) -> Dialog:
    for text in texts:
        dialog.last_turn_seq += 1
        place = dialog.last_turn_seq
        Turn.objects.create(
            dialog=dialog, seq=place, position=place, round_number=1, role="user", status="answered", text=text
        )
    dialog.save()
    return dialog
