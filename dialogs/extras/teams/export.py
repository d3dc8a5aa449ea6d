"""A team in the export of its root: the task document, and each side dialog whole."""

from collections.abc import Iterable, Iterator

import orjson

from dialogs.extras.teams import sight, task_document
from dialogs.extras.teams.models import SideDialog
from dialogs.models import Dialog
from dialogs.queries import export
from dialogs.store import json_shapes


def export_team(dialog: Dialog) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the fields of a root. Side dialogs have none of their own, since their root holds those below them too."""
    if dialog.origin == Dialog.Origin.AGENT:
        return
    document = task_document.newest(dialog.pk)
    if document.version:
        yield "task_document", [orjson.dumps({"version": document.version, **document.sections}).decode()]
    if SideDialog.objects.filter(root=dialog).exists():
        yield "side_dialogs", _side_dialogs(dialog)


def _side_dialogs(root: Dialog) -> Iterator[str]:
    between = "["
    for side in SideDialog.objects.filter(root=root, dialog__removed_at=None).select_related("dialog__agent"):
        place = {
            "parent": side.parent_id,
            "level": side.level,
            "name": side.name,
            "task": side.task,
            "standing": sight.standing(side),
            "asked_at": json_shapes.when(side.asked_at),
        }
        yield f'{between}{orjson.dumps(place).decode()[:-1]},"export":'
        yield from export.as_json(side.dialog)
        yield "}"
        between = ","
    yield "]" if between == "," else "[]"
