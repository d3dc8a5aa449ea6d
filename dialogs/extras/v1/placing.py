"""Decides which dialog a request belongs to.

Places are looked for without a lock, the likeliest first; each of them locks its dialog and says what of the
conversation is new there, or that the request does not belong there any more.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import QuerySet

from dialogs.actions.access import visible_dialog
from dialogs.actions.messages import check_open
from dialogs.context.view import unresolved_calls
from dialogs.errors import Forbidden
from dialogs.extras.v1.errors import MovedOn, invalid
from dialogs.extras.v1.finding import after_head, asks_for_title, find
from dialogs.extras.v1.forks import copyable, fork, take_place
from dialogs.extras.v1.history import ClientMessage, Conversation
from dialogs.extras.v1.matching.incoming import AT_HEAD, RESULT_FOLLOWS, Candidate, Incoming, calls_in_text
from dialogs.models import Dialog, Turn
from dialogs.permissions import ACT_IN_ALL, may
from dialogs.runtime.outcomes import generation_of_call
from dominds.db.prepared import Select


@dataclass(frozen=True, slots=True)
class Held:
    """A dialog whose row is locked, or that has just been made, and what of a conversation is new to it.
    ``again``: its newest message, which has no answer, is to be answered once more."""

    dialog: Dialog
    new: Conversation
    again: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """The dialog that the client names; its account of the past does not matter."""

    incoming: Incoming
    dialog_id: UUID
    is_aside: bool = False

    def hold(self) -> Held | None:
        dialog = lock_dialog(self.dialog_id)
        if dialog is None:
            raise Dialog.DoesNotExist
        if not self.incoming.request.is_current():
            raise MovedOn
        return Held(dialog, self.incoming.conversation)


@dataclass(frozen=True, slots=True)
class Awaiting:
    """The dialog that holds the calls of the results, whatever its state: a client may send them at once."""

    incoming: Incoming
    dialog_id: UUID
    is_aside: bool = False

    def hold(self) -> Held | None:
        dialog, conversation = lock_dialog(self.dialog_id), self.incoming.conversation
        if dialog is None or dialog.answering_seq is not None:
            return None  # a message that waited is being answered, in the place of these calls
        if {call.id for call in unresolved_calls(dialog)} != ids_of(conversation):
            return None  # they were answered long ago, so the client goes on from an older place of the conversation
        return Held(dialog, conversation)


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a dialog that the history fits."""

    incoming: Incoming
    candidate: Candidate
    is_aside: bool = False

    @property
    def dialog_id(self) -> UUID:
        return self.candidate.dialog_id

    def hold(self) -> Held | None:
        candidate, conversation = self.candidate, self.incoming.conversation
        dialog = lock_dialog(candidate.dialog_id)
        if dialog is None or dialog.last_turn_seq != candidate.last_turn_seq:
            return None  # it has expired meanwhile, or somebody was faster
        check_open(dialog)
        if dialog.state not in AT_HEAD or (not dialog.all_placed and _queued_turns.first(dialog.pk)):
            return None
        if candidate.results and not candidate.summary:  # the message holds nothing but these results
            conversation = replace(conversation, ahead=(), message="", has_message=False, attached=())
        conversation = _without_held_results(conversation, dialog)
        if dialog.archived_at and (dialog.forked_from_id or dialog.fork_count):
            take_place(dialog, dialog)  # its user went back to this version
        return Held(dialog, conversation, candidate.again)


@dataclass(frozen=True, slots=True)
class New:
    """A dialog of its own, which begins like ``origin`` where there is one. ``is_aside``: it asks beside a
    conversation, which goes on without it."""

    incoming: Incoming
    origin: Candidate | None = None
    is_aside: bool = False

    @property
    def dialog_id(self) -> UUID | None:
        return self.origin.dialog_id if self.origin else None

    def hold(self) -> Held | None:
        incoming = self.incoming
        dialog = fork(incoming.key.owner, incoming.agent, incoming.conversation, self.origin)
        stored = lock_dialog(dialog.pk) if incoming.conversation.before else dialog
        dialog, conversation = stored or dialog, incoming.conversation
        return Held(dialog, _without_held_results(conversation, dialog) if self.origin else conversation)


Place = Named | Awaiting | Head | New


def places(incoming: Incoming) -> Iterator[Place]:
    """Yield where the request may belong, the likeliest place first and one that always holds last.
    Raises ``ApiError`` or ``Refusal``."""
    if incoming.request.dialog_id is not None:
        yield _named_dialog(incoming, incoming.request.dialog_id)
        return
    if (dialog_id := _with_calls(incoming)) is not None:
        yield Awaiting(incoming, dialog_id)
    if asks_for_title(incoming.conversation):  # the conversation before it goes on without it
        yield New(incoming, is_aside=True)
        return
    candidate = find(incoming)
    if candidate is not None and candidate.fit:
        yield Head(incoming.with_(_new_at(candidate, incoming.conversation)), candidate)
    yield New(incoming, copyable(candidate))


def _named_dialog(incoming: Incoming, dialog_id: UUID) -> Named:
    key, agent = incoming.key, incoming.agent
    dialog = visible_dialog(dialog_id, key.owner)
    if dialog.owner_id != key.owner_id and not may(key.owner, ACT_IN_ALL):
        raise Forbidden(
            "/v1 writes in dialogs of the key's owner alone. Members of its group write on its page or by /api."
        )
    if dialog.agent_id != agent.pk:
        raise invalid(f"Dialog {dialog.pk} is with the agent {dialog.agent_id!r}, not {agent.pk!r}.", "model")
    return Named(incoming, dialog.pk)


def _with_calls(incoming: Incoming) -> UUID | None:
    """Return the dialog in which all calls were made whose results have come."""
    generations = set(map(generation_of_call, ids_of(incoming.conversation)))
    if len(generations) != 1 or None in generations:
        return None
    return incoming.dialogs.filter(generations__in=generations).values_list("pk", flat=True).first()


def _new_at(candidate: Candidate, told: Conversation) -> Conversation:
    """Return what of a conversation is new at the head of a dialog."""
    conversation = after_head(told, candidate)
    if conversation.before and (named := calls_in_text(conversation.before[-1])):
        follows = (ClientMessage("tool", RESULT_FOLLOWS, call_id=call) for call in dict.fromkeys(named))
        conversation = replace(conversation, results=tuple(follows))
    return replace(conversation, results=candidate.results) if candidate.results else conversation


def _without_held_results(conversation: Conversation, dialog: Dialog) -> Conversation:
    """Leave out results that are no answer to the calls which wait in the dialog: it holds them already."""
    ids = ids_of(conversation)
    if ids and {call.id for call in unresolved_calls(dialog)} != ids:
        return replace(conversation, results=())
    return conversation


def ids_of(conversation: Conversation) -> set[str]:
    """Return the ids of the calls whose results have come."""
    return {message.call_id for message in conversation.results}


def lock_dialog(dialog_id: UUID) -> Dialog | None:
    """Lock the dialog's row; None where it is gone. To be called in a transaction."""
    return _row_locked.first(dialog_id)


@Select
def _row_locked(dialog_id: UUID) -> QuerySet[Dialog]:
    return Dialog.objects.select_for_update(of=("self",)).select_related("agent", "client").filter(pk=dialog_id)


@Select
def _queued_turns(dialog_id: UUID) -> QuerySet[Turn, int]:
    return Turn.objects.queued().filter(dialog=dialog_id).values_list("seq", flat=True)[:1]
