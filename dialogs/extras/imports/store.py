"""Storing the conversations of an export as dialogs, each once, with a report of what is stored and left out."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from dialogs.actions import imported_turns
from dialogs.actions.attachments import Attached, check_files, from_base64, store_images
from dialogs.actions.messages import LONGEST_TITLE, MAX_MESSAGE_BYTES, create_dialog
from dialogs.errors import Refusal
from dialogs.extras.imports.conversation import Conversation, ImportedMessage
from dialogs.models import Dialog, Turn
from dialogs.store.text import storable
from dominds.budgets import ATTACHMENTS, CONVERSATION_MESSAGES
from dominds.llm.messages import Message, Role, ToolCall

TITLE_CHARS = 60  # taken from the first message where the export has no title


@dataclass(frozen=True, slots=True)
class Imported:
    """The report on one conversation. ``reason`` says why there is no new dialog, and is empty otherwise."""

    title: str
    messages: int
    left_out: dict[str, int]
    reason: str = ""
    dialog: Dialog | None = None  # None in a dry run too

    def __str__(self) -> str:
        left_out = ", ".join(f"{kind} ({count:,})" for kind, count in self.left_out.items())
        if self.reason:
            return f"{self.title}: left out, {self.reason}"
        return f"{self.title}: {self.messages:,} messages" + (f"; without {left_out}" if left_out else "")


def import_conversations(
    results: Iterable[Conversation], owner: User, agent_id: str, *, dry_run: bool = False
) -> Iterator[Imported]:
    """Import conversations, each in a transaction of its own. Repeating an interrupted import takes in the rest."""
    return map(partial(_import, owner=owner, agent_id=agent_id, dry_run=dry_run), results)


def imported_since(owner: User, moment: datetime) -> int:
    """Count the dialogs imported since then."""
    return Dialog.objects.filter(owner=owner, created_at__gte=moment).exclude(source="").count()


def _import(conversation: Conversation, owner: User, agent_id: str, dry_run: bool) -> Imported:
    messages = [
        said for said in conversation.messages if len(said.message.text.encode(errors="replace")) <= MAX_MESSAGE_BYTES
    ]
    images = list(map(_images_of, messages))
    left_out = {kind: count for kind, count in conversation.left_out.items() if count}
    if unsound := sum(len(said.images) - len(sound) for said, sound in zip(messages, images, strict=True)):
        left_out["images that cannot be attached"] = unsound
    if too_long := len(conversation.messages) - len(messages):
        left_out["messages of more than 1 MB"] = too_long
    title = storable(conversation.title or _title_of(messages))[:LONGEST_TITLE]
    result = partial(Imported, title, len(messages), left_out)
    if conversation.problem:
        return result(reason=conversation.problem)
    if not any(said.message.role is Role.USER for said in messages):
        return result(reason="nobody says anything in it")
    if len(messages) > CONVERSATION_MESSAGES.most:
        return result(reason=CONVERSATION_MESSAGES.sentence("it has"))
    source = storable(conversation.source)
    if (standing := Dialog.objects.filter(owner=owner, source=source).first()) is not None:
        return result(reason="it is here already", dialog=standing)
    if dry_run:
        return result()
    try:
        with transaction.atomic():
            return result(dialog=_store(owner, agent_id, title, source, messages, images))
    except IntegrityError:  # another import of the same file was faster
        return result(reason="it is here already", dialog=Dialog.objects.get(owner=owner, source=source))


def _images_of(said: ImportedMessage) -> list[Attached]:
    """Return the images of a message that pass the checks of attachments."""
    found: list[Attached] = []
    for name, content in said.images:
        with suppress(Refusal):
            found += (file for file in check_files([from_base64(name, content)]) if file.pixels)
    return found[: ATTACHMENTS.most]


def _store(
    owner: User,
    agent_id: str,
    title: str,
    source: str,
    messages: list[ImportedMessage],
    images: Sequence[Sequence[Attached]],
) -> Dialog:
    dialog = create_dialog(owner, agent_id, title)
    imported_turns.store(dialog, [_storable(said.message) for said in messages], [said.at for said in messages])
    for seq, attached in enumerate(images, 1):
        if attached:
            Turn.objects.filter(dialog=dialog, seq=seq).update(attachments=store_images(dialog, attached))
    newest = max((said.at for said in messages if said.at), default=dialog.active_at)
    Dialog.objects.filter(pk=dialog.pk).update(source=source, active_at=min(newest, dialog.active_at))
    dialog.refresh_from_db()
    return dialog


def _storable(message: Message) -> Message:
    calls = tuple(ToolCall(storable(call.id), call.name, storable(call.arguments)) for call in message.tool_calls)
    return Message(message.role, storable(message.text), calls, storable(message.tool_call_id))


def _title_of(messages: list[ImportedMessage]) -> str:
    first = next((said.message.text for said in messages if said.message.role is Role.USER), "")
    return " ".join(first.split())[:TITLE_CHARS] or "Untitled"
