"""Titles of dialogs, which a model writes after the first answer."""

import re
from contextlib import suppress
from uuid import UUID

from dialogs.context.config import prompts_folder
from dialogs.context.spending import NoRoomInBudget, spending_of
from dialogs.errors import NotFound
from dialogs.models import Dialog, Generation, Turn
from dialogs.runtime.auxiliary_calls import pruning_model, record, watch_at_rest, watched_call
from dialogs.store.change import open_change
from dialogs.store.text import storable
from dominds.llm.circuit_breaker import circuits
from remediation.prompts import load, render

# Lines that are no title: rows of tables, fences, rules, an announcement of what follows, and lines of the prompt.
NO_TITLE = re.compile(r"\|.*\||^\s*(```|~~~|-{3,}|={3,})|:\s*$|\bBEGIN\W*$|^\W*END\W*$|^\s*(user|assistant): ")
MOST_TITLE = 80  # characters: more is an answer
AROUND_TITLES = " #*_`\"'“”„«»‹›"
TITLED_CHARS = 2_000  # the part of a message, and of its answer, that a title is made from


def write_title(dialog_id: UUID) -> None:
    """Name a dialog after its first exchange.

    The dialog rests meanwhile, and the call gives way when a worker claims it. A person's title stays, and after a
    failure the beginning of the first message is the title.
    """
    dialog = Dialog.objects.whole().filter(pk=dialog_id, awaits_title=True, lease_owner="").first()
    content = _first_exchange(dialog) if dialog and not spending_of(dialog).exceeded else ""
    if dialog is None or not content or circuits.open_circuit(model := pruning_model(dialog)):
        return
    instructions = render(load("title", prompts_folder()))
    with watch_at_rest(dialog) as watch:
        try:
            generation, reply = watched_call(watch, dialog, model, Generation.Purpose.TITLE, instructions, content)
        except NoRoomInBudget:
            return
    with suppress(NotFound), open_change(dialog.pk, durable=False) as change:  # it may have been erased meanwhile
        change.keeps_state = True
        record(change, generation, reply, model)
        if not change.dialog.awaits_title or reply.was_left:
            return
        change.dialog.awaits_title = False
        if reply.is_complete and (title := title_in(reply.text)):
            change.dialog.title = title
            change.event("title", title=title)


def _first_exchange(dialog: Dialog) -> str:
    """Return the beginnings of the first message and of its answer, or an empty text if there is no answer."""
    turns = dialog.turns.filter(position__isnull=False, role__in=[Turn.Role.USER, Turn.Role.ASSISTANT]).exclude(text="")
    first = list(turns.order_by("position").values_list("role", "text")[:2])
    if Turn.Role.ASSISTANT not in dict(first):
        return ""
    return "\n".join(["BEGIN", *(f"{role}: {text[:TITLED_CHARS]}" for role, text in first), "END"])


def title_in(answer: str) -> str:
    """Return the first line that can be a title, without the marks that models put around one.

    Returns an empty text for anything else: a row of a table, an announcement, or a whole paragraph.
    """
    for line in answer.splitlines():
        if NO_TITLE.search(line):
            continue
        bare = " ".join(storable(line).split()).strip(AROUND_TITLES).removeprefix("Title:")
        if title := bare.strip(AROUND_TITLES).rstrip("."):
            return title if len(title) <= MOST_TITLE else ""
    return ""
