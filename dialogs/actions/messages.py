"""Actions of people on a dialog: open, send, stop, retry, close. What is accepted is stored, then announced."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid5

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, F, QuerySet, Subquery
from django.db.models.functions import Now
from django.utils import timezone

from dialogs.actions.access import with_agent
from dialogs.actions.attachments import Attached, digests, store_images, text_with
from dialogs.actions.question_rows import close_question
from dialogs.context import connected
from dialogs.context.images import unseen_images
from dialogs.context.limits import as_served
from dialogs.context.served import Served, served_or_unknown
from dialogs.context.sizes import too_large
from dialogs.context.tool_calls import abandon
from dialogs.errors import Conflict, Invalid, RateLimited, TooLarge
from dialogs.extension import installed_extensions
from dialogs.models import Agent, Dialog, Generation, Question, Round, SiteSettings, Turn
from dialogs.state import State
from dialogs.store.change import Change, open_change
from dialogs.store.lease import end_running, release
from dialogs.store.text import NUL, unstorable_reason
from dominds.db.prepared import Select
from dominds.llm.catalog.catalog import UnknownModel
from dominds.llm.models.learned import with_learned
from dominds.visible_text import is_blank
from dominds.web.answer_headers import note_limit

LONGEST_TITLE = 200

MAX_MESSAGE_BYTES = 1_000_000
MAX_TITLE = 60  # characters that are made of a message
TITLE_LOOKS_AT = 2_000  # characters of a message
TABLE_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$", re.MULTILINE)
_TURNS_PER_MESSAGE = 50  # turns looked through for each message allowed per minute
WITHOUT_ANSWER = (Turn.Status.FAILED, Turn.Status.STOPPED)  # statuses of a message that may be answered again


_STARTED = UUID("5f0c1c8e-6d0f-4a7b-9e0a-6f6b6c1f9d10")  # namespace of the ids of dialogs that begin with a message


@dataclass(frozen=True, slots=True)
class Accepted:
    seq: int
    state: str
    is_queued: bool = False


def create_dialog(owner: User, agent: str | Agent, title: str = "", *, origin: str = Dialog.Origin.PERSON) -> Dialog:
    """Open a dialog with an existing, enabled agent, given by its id or as a row that was just read."""
    with transaction.atomic(savepoint=False):
        about = {"title": title.strip()[:LONGEST_TITLE], "origin": origin}
        agent_row = agent if isinstance(agent, Agent) else _enabled_agent(agent)
        dialog: Dialog = Dialog.objects.create(owner=owner, agent=agent_row, **about)
        Round.objects.create(dialog=dialog, number=1, cause=Round.Cause.START)
    return dialog


def _enabled_agent(agent_id: str) -> Agent:
    agent = Agent.objects.filter(pk=agent_id, enabled=True).first()
    if agent is None:
        raise Invalid(f"There is no agent {agent_id!r}. GET /api/agents lists them.")
    return agent


def start_dialog(
    owner: User, agent_id: str, model: str, text: str, client_message_id: str, attached: Sequence[Attached] = ()
) -> Dialog:
    """Open a dialog with its first message. Both are stored, or neither.

    The same ``client_message_id`` returns the same dialog. ``model`` is ``provider/model``, or empty for the agent's
    own model.
    """
    whole = text_with(text, attached)
    check_text(whole, may_be_blank=any(file.pixels for file in attached))
    provider, _, model_id = model.partition("/")
    chosen = {"owner": owner, "agent": _enabled_agent(agent_id), "provider": provider, "model": model_id}
    served = served_or_unknown(Dialog(**chosen))
    reason = _unusable(Dialog(**chosen), served, whole, attached)
    is_server = isinstance(served, Served) and served.model.kind.is_server
    titled = not reason and is_server and SiteSettings.current().write_titles
    dialog: Dialog
    with transaction.atomic():
        dialog, is_new = Dialog.objects.get_or_create(
            pk=uuid5(_STARTED, f"{owner.pk}:{client_message_id}"), defaults={**chosen, "awaits_title": titled}
        )
        if is_new:
            Round.objects.create(dialog=dialog, number=1, cause=Round.Cause.START)
        with open_change(dialog.pk) as change:
            accept_message(change, text, reason, attached, client_message_id, owner)
    return dialog


def post_message(
    dialog: Dialog | UUID,
    text: str,
    client_message_id: str | None = None,
    *,
    author: User | None = None,
    attached: Sequence[Attached] = (),
) -> Accepted:
    """Accept a message. While the dialog is busy, or waits for an answer, the message is queued.

    The same ``client_message_id`` gets the same answer; with another text or other files it is refused. ``dialog`` is
    an id, or a dialog that was just read with its agent.
    """
    whole = text_with(text, attached)
    check_text(whole, may_be_blank=any(file.pixels for file in attached))
    reason = unusable(dialog, attached, whole)
    with open_change(dialog.pk if isinstance(dialog, Dialog) else dialog) as change:
        turn = accept_message(change, text, reason, attached, client_message_id, author)
    return Accepted(turn.seq, change.dialog.state, turn.status == Turn.Status.QUEUED)


def accept_message(
    change: Change,
    text: str,
    unusable: str,
    attached: Sequence[Attached] = (),
    client_message_id: str | None = None,
    author: User | None = None,
) -> Turn:
    """Check and store a message. ``unusable`` is the reason why no model could answer it, if there is one."""
    dialog, whole = change.dialog, text_with(text, attached)
    if client_message_id and (earlier := _accepted_before(dialog, client_message_id, whole, attached)) is not None:
        return earlier
    check_answerable(dialog, unusable)
    check_rate(dialog)
    return accept_within(change, text, client_message_id, author, attached)


def check_answerable(dialog: Dialog, unusable: str) -> None:
    """Raise ``Conflict`` if the dialog is closed or suspended, or its model is ``unusable``, which is the reason."""
    check_open(dialog)
    if unusable:
        raise Conflict("agent_unusable", unusable)


def accept_within(
    change: Change,
    text: str,
    client_message_id: str | None = None,
    author: User | None = None,
    attached: Sequence[Attached] = (),
    tool_name: str = "",
) -> Turn:
    """Store a checked message within a change, to be answered at once or queued.

    ``tool_name`` is the tool that brings the words of another agent. Such a message, and one in a dialog that an agent
    opened, has no author unless one is given. Any other message without an author is the owner's, sent by a program.
    """
    dialog = change.dialog
    is_agents = bool(tool_name) or dialog.origin == Dialog.Origin.AGENT
    program_for = None if is_agents else dialog.owner_id
    at_once = _is_idle(dialog)
    turn = change.turn(
        Turn.Role.USER,
        Turn.Status.ANSWERING if at_once else Turn.Status.QUEUED,
        queued=not at_once,
        text=text_with(text, attached),
        attachments=store_images(dialog, attached),
        client_message_id=client_message_id or None,
        author_id=author.pk if author else program_for,
        tool_name=tool_name,
    )
    if at_once:
        change.begin_message(turn.seq)
    dialog.title = dialog.title or shorten(text or ", ".join(file.name for file in attached))
    dialog.archived_at = None
    if author:  # a dialog in which a person takes part does not expire
        dialog.expires_at = None
    dialog.failure = ""
    change.asks_work = True
    return turn


def _is_idle(dialog: Dialog) -> bool:
    """Check whether a message would be answered at once: nothing runs, so nothing is queued before it."""
    return dialog.state in (State.IDLE, State.FAILED) and not dialog.continuing and dialog.answering_seq is None


def remove_queued(dialog_id: UUID, seq: int, user: User) -> None:
    """Take back a message that still waits in the queue."""
    with open_change(dialog_id) as change:
        if not change.dialog.turns.filter(seq=seq, status=Turn.Status.QUEUED).exists():
            raise Conflict("not_queued", f"Message {seq} is not waiting any more, so it cannot be taken back.")
        change.act(user, f"took back the waiting message {seq}")
        change.mark(seq, Turn.Status.SUPERSEDED)


def rename(dialog_id: UUID, title: str, by: User | None = None) -> None:
    """Give a dialog another title. Raises ``Invalid`` for a blank one."""
    title = " ".join(title.replace(NUL, "").split())
    if not title:
        raise Invalid("The title is blank. Write what the dialog is about.")
    if len(title) > LONGEST_TITLE:
        raise Invalid(f"The title has {len(title):,} characters; at most {LONGEST_TITLE} are allowed. Shorten it.")
    with open_change(dialog_id) as change:
        change.dialog.title = title
        change.dialog.awaits_title = False
        change.event("title", title=title)
        change.act(by, f"called this dialog “{title}”")


def stop(dialog_id: UUID, by: User | None = None, *, only: int | None = None) -> str:
    """Stop the answer under way; with ``only``, if it answers that message. A worker sees the flag within half a
    second; without a worker the message ends here.
    """
    with open_change(dialog_id) as change:
        if only in (None, change.dialog.answering_seq):
            stop_in(change, by)
    return change.dialog.state


def stop_in(change: Change, by: User | None) -> None:
    """Stop the answer under way as a part of this change."""
    dialog = change.dialog
    if dialog.is_leased or dialog.state == State.QUEUED:
        change.act(by, "pressed stop")
    if dialog.is_leased:
        dialog.stop_requested = True
    elif dialog.state == State.QUEUED:
        stop_within(change)
        change.take_next_message()
        change.wakes = True
    for extension in installed_extensions():
        extension.stopped(change)


def stop_within(change: Change) -> None:
    """End the message under way, and withdraw a rewrite that was requested."""
    abandon(change, "Not run: a person pressed stop.")
    change.end_message(Turn.Status.STOPPED)
    change.dialog.stop_requested = False
    change.dialog.requested_rewrite = ""


def retry(dialog_id: UUID, by: User | None = None) -> str:
    """Answer the newest message again, after it failed or was stopped."""
    reason = unusable(dialog_id)
    with open_change(dialog_id) as change:
        dialog = change.dialog
        check_open(dialog)
        if dialog.state not in (State.IDLE, State.FAILED):
            raise Conflict("dialog_busy", f"The dialog is {dialog.state}; retry is for one that has stopped or failed.")
        ended = newest_message(dialog)
        if ended is None or ended.status not in WITHOUT_ANSWER:
            raise Conflict("nothing_to_retry", "The last message was answered; send a new one instead.")
        if reason:
            raise Conflict("agent_unusable", reason)
        change.act(by, f"asked for message {ended.seq} to be answered again")
        answer_again(change, ended)
    return dialog.state


def newest_message(dialog: Dialog) -> Turn | None:
    """Return the newest message that has a place in the conversation."""
    return dialog.turns.filter(role=Turn.Role.USER, position__isnull=False).order_by("-position").first()


def answer_again(change: Change, message: Turn) -> None:
    """Answer a message that had ended once more. A message of an earlier round is carried into the current one."""
    dialog = change.dialog
    change.mark(message.seq, Turn.Status.ANSWERING)
    change.begin_message(message.seq)
    change.asks_work = True
    if message.round_number == dialog.round_number:
        return
    current = dialog.rounds.get(number=dialog.round_number)
    if message.seq not in current.carried:
        current.carried = [*current.carried, message.seq]
        current.save(update_fields=["carried"])


def close(dialog_id: UUID, user: User) -> str:
    """Close the dialog for good: nothing more is generated, and everything stays readable."""
    with open_change(dialog_id) as change:
        if change.dialog.closed_at is None:
            change.act(user, "closed this dialog")
        close_within(change, user)
    return change.dialog.state


def close_within(change: Change, user: User | None) -> None:
    """Close a dialog within a change; an open question is cancelled."""
    dialog = change.dialog
    if dialog.closed_at is not None:
        return
    for seq in dialog.turns.filter(status__in=["queued", "answering", "suspended"]).values_list("seq", flat=True):
        change.mark(seq, Turn.Status.SUPERSEDED)
    for question in dialog.questions.filter(state="open"):
        close_question(change, question, user, Question.State.CANCELLED)
    end_running(change, Generation.Outcome.STOPPED, finished_at=timezone.now())
    dialog.closed_at = timezone.now()
    dialog.answering_seq = None
    dialog.continuing = False
    dialog.requested_rewrite = dialog.failure = ""
    dialog.epoch += 1  # fences out a worker that is still generating
    release(change)


def _accepted_before(dialog: Dialog, client_message_id: str, text: str, attached: Sequence[Attached]) -> Turn | None:
    turn = _message_with_id.first(dialog.pk, client_message_id)
    if turn is not None and (turn.text, digests(turn.attachments)) != (text, tuple(file.sha256 for file in attached)):
        raise Conflict(
            "client_message_id_reused",
            f"client_message_id {client_message_id!r} was sent before with another text or other files. Use a new id "
            "for a new message.",
        )
    return turn


@Select
def _message_with_id(dialog_id: UUID, client_message_id: str) -> QuerySet[Turn, Turn]:
    return Turn.objects.filter(dialog_id=dialog_id, client_message_id=client_message_id)


def check_text(text: str, *, may_be_blank: bool = False) -> None:
    if is_blank(text) and not may_be_blank:
        raise Invalid("The message is empty. Write something to send.")
    if problem := unstorable_reason(text):
        raise Invalid(f"The message {problem}. Remove it.")
    if (size := len(text.encode())) > MAX_MESSAGE_BYTES:
        raise TooLarge(
            f"The message has {size:,} bytes; at most {MAX_MESSAGE_BYTES:,} are accepted. Shorten or split it."
        )


def check_open(dialog: Dialog) -> None:
    if dialog.closed_at is not None:
        raise Conflict("dialog_closed", "The dialog is closed. Open a new one.")
    if dialog.state == State.SUSPENDED:
        raise Conflict(
            "dialog_suspended",
            "The dialog is suspended: a question must be resolved first, about a critical context, a budget or a "
            "refusal.",
        )


def unusable(
    dialog: Dialog | UUID,
    attached: Sequence[Attached] = (),
    text: str = "",
    *,
    served: Served | UnknownModel | None = None,
) -> str:
    """Return the reason why the dialog's model cannot answer now, or an empty text.

    Call it before the row is locked, because it may ask the model's server. Raises ``Invalid`` for an image that the
    model does not take, and ``TooLarge`` for a text that it cannot hold.
    """
    read = dialog if isinstance(dialog, Dialog) else with_agent.first(dialog)
    return _unusable(read, served or served_or_unknown(read), text, attached) if read is not None else ""


def _unusable(dialog: Dialog, served: Served | UnknownModel, text: str, attached: Sequence[Attached]) -> str:
    if isinstance(served, UnknownModel):
        return str(served)
    if served.unusable:
        return served.unusable
    if any(file.pixels for file in attached):
        connected.follow()  # a worker may have learned since that the model sees no images
        if unseen := unseen_images(as_served(with_learned(served.model))):
            raise Invalid(unseen)
    if large := too_large(dialog, served, text):
        raise TooLarge(large)
    return ""


def check_rate(dialog: Dialog) -> None:
    """Check the owner's limits, and raise ``RateLimited``. A limit of 0 is off."""
    per_minute, running_limit = settings.MESSAGES_PER_MINUTE, settings.RUNNING_DIALOGS
    if not per_minute and not running_limit:
        return
    counts = _recent_and_busy.one(dialog.owner_id, dialog.pk, _TURNS_PER_MESSAGE * per_minute)
    recent, busy = (count or 0 for count in counts)
    if per_minute:
        note_limit(per_minute, recent + 1)
        if recent >= per_minute:
            raise RateLimited(f"{recent} messages in the last minute; {per_minute} are allowed. Wait a moment.", 10)
    if running_limit and busy >= running_limit:
        raise RateLimited(f"{busy} of your dialogs are running; {running_limit} are allowed at once.", 10)


@Select
def _recent_and_busy(owner_id: int, but: UUID, newest: int) -> QuerySet[User, tuple[int | None, int | None]]:
    """Count a person's messages of the last minute, and their running dialogs except ``but``.

    Only the ``newest`` turns of each dialog are counted, which keeps long dialogs cheap.
    """
    minute_ago = Now() - timedelta(minutes=1)
    recent = Turn.objects.filter(
        dialog__owner=owner_id,
        dialog__active_at__gt=minute_ago,
        seq__gt=F("dialog__last_turn_seq") - newest,
        role=Turn.Role.USER,
        created_at__gt=minute_ago,
    )
    busy = Dialog.objects.filter(owner=owner_id, state__in=["queued", "generating"]).exclude(pk=but)
    busy = busy.exclude(origin=Dialog.Origin.AGENT)
    counts = (
        Subquery(rows.order_by().values(owner).annotate(number=Count("pk")).values("number"))
        for rows, owner in ((recent, "dialog__owner"), (busy, "owner"))
    )
    return User.objects.filter(pk=owner_id).values_list(*counts)


def shorten(text: str) -> str:
    """Return a title on one line, without rows of tables if there is any other text."""
    begin = text[:TITLE_LOOKS_AT]
    first = " ".join(TABLE_ROW.sub("", begin).split()) or " ".join(begin.split())
    return first if len(first) <= MAX_TITLE else first[: MAX_TITLE - 1].rstrip() + "…"
