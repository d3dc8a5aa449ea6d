"""Side dialogs: how an agent asks in one, how it ends, and what its parent keeps in sight of it.

A change of the parent writes only rows of this app. What the side dialog then owes, to take a task or to end, is done
right after the commit, or by the sweeper if that was lost.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from dialogs.actions import messages
from dialogs.errors import Conflict, Invalid, NotFound
from dialogs.extras.teams import reports, rules, sight, task_document
from dialogs.extras.teams.models import SideDialog
from dialogs.extras.teams.rules import Bounds
from dialogs.models import Agent, Dialog
from dialogs.state import AT_REST, State
from dialogs.store.change import Change, open_change
from dialogs.store.db_retry import commits, leaving_what_is_locked
from dominds import telemetry
from dominds.db.prepared import Select

log = structlog.get_logger(__name__)

MOST_AT_ONCE = 200
Owes = SideDialog.Owes


@dataclass(frozen=True, slots=True)
class Ask:
    """A task that a call gives. Its report is the call's result if it ``waits``, otherwise a message."""

    call_id: str
    agent_id: str
    task: str
    name: str = ""
    waits: bool = True


def ask(change: Change, asked: Ask) -> SideDialog:
    """Ask in a new side dialog, or go on in the one of that name. The same call again finds what it asked before."""
    parent = change.dialog
    if before := SideDialog.objects.filter(parent=parent, call_id=asked.call_id).first():
        return before
    chain, root_id, level = _chain(parent)
    named = sight.of_parent(parent).filter(name=asked.name, ended_at=None).first() if asked.name else None
    if named is not None and named.answered_at is None:
        raise Conflict("dialog_busy", f"{named.name} is still at work. Wait for its report, or use tell_agent.")
    if named is not None and named.dialog.agent_id != asked.agent_id:
        raise Conflict("name_taken", f"{named.name} is a side dialog with {named.dialog.agent_id}. Use another name.")
    agent, own = Agent.objects.filter(pk=asked.agent_id, enabled=True).first(), parent.agent.stated_extras
    bounds = Bounds.of(own.get("side_dialogs", {}))
    working = sight.at_work(SideDialog.objects.filter(root=root_id)).count()
    why = rules.refusal(asked.agent_id, own.get("colleagues", ()), chain, working, bounds)
    if why or agent is None:
        raise Invalid(why or f"The agent {asked.agent_id!r} is switched off. Ask another one, or do it yourself.")
    columns = {"call_id": asked.call_id, "task": asked.task, "waits": asked.waits, "owes": Owes.ASK}
    columns["traceparent"] = telemetry.traceparent()
    if named is None:
        named = SideDialog.objects.create(
            dialog=_open_dialog(parent, agent, asked, bounds),
            parent=parent,
            root_id=root_id,
            level=level,
            name=asked.name or _free_name(parent, agent.pk),
            **columns,
        )
    else:
        SideDialog.objects.filter(pk=named.pk).update(**columns, asked_at=Now(), answered_at=None, reason="")
        named.answered_at = None
    sight.keep_in_sight(change)
    begins = rules.BEGINS.format(name=named.name, task=rules.shorten(asked.task))
    change.event("notice", text=begins, for_programs=True)
    deliver_soon(named.pk)
    return named


def _chain(parent: Dialog) -> tuple[list[str], UUID, int]:
    """Return the agents from the root to this dialog, the root, and the level of a side dialog of this one."""
    agents, level, root_id, above = [parent.agent_id], 1, parent.pk, parent
    while above.origin == Dialog.Origin.AGENT:
        side = SideDialog.objects.select_related("parent").get(pk=above.pk)
        above, root_id, level = side.parent, side.root_id, level + 1
        agents.insert(0, above.agent_id)
    return agents, root_id, level


def _open_dialog(parent: Dialog, agent: Agent, asked: Ask, bounds: Bounds) -> Dialog:
    """Open a dialog with the parent's owner, group and paying key."""
    title = f"{asked.name or agent}: {rules.shorten(asked.task, 100)}"
    dialog = messages.create_dialog(parent.owner, agent, title, origin=Dialog.Origin.AGENT)
    columns = {"group_id": parent.group_id, "key_id": parent.key_id, "expires_at": parent.expires_at}
    Dialog.objects.filter(pk=dialog.pk).update(**columns, budget_usd=bounds.usd)
    return dialog


def _free_name(parent: Dialog, agent_id: str) -> str:
    taken = set(sight.of_parent(parent).values_list("name", flat=True))
    names = (agent_id if number == 1 else f"{agent_id}-{number}" for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def traced_below(dialog: Dialog) -> str:
    """Return the span of the call for which a side dialog works."""
    if dialog.origin != Dialog.Origin.AGENT:
        return ""
    return SideDialog.objects.filter(pk=dialog.pk).values_list("traceparent", flat=True).first() or ""


# -- What is owed ------------------------------------------------------------------------------------------------------


def end(sides: Iterable[SideDialog], reason: str) -> None:
    """End side dialogs in a change of a dialog above. Each is closed right after the commit."""
    for side in sides:
        SideDialog.objects.filter(pk=side.pk, ended_at=None).update(owes=Owes.END, ended_at=Now(), reason=reason)
        deliver_soon(side.pk)


def stop_those_below(change: Change) -> None:
    """End what is at work below a dialog in which a person pressed stop."""
    if change.dialog.agent_id:
        working = [side for side in sight.below(change.dialog.pk) if side.answered_at is None]
        end(working, "a person pressed stop in the dialog above")


def state_changed(change: Change) -> None:
    """React to a change of a dialog's state: end what is below it, and tell its parent of a report or a question."""
    dialog = change.dialog
    if dialog.state == State.CLOSED:
        end(sight.below(dialog.pk), "the dialog above was closed")
    elif dialog.state == State.FAILED:
        unheard = sight.at_work(sight.of_parent(dialog)).filter(waits=True)
        end(sight.with_those_below(unheard), "the message above failed, and nothing waits for its report")
    if dialog.origin == Dialog.Origin.AGENT and (side := sight.side_of.first(dialog.pk)):
        _hear(change, side)
        if dialog.state == State.CLOSED:
            SideDialog.objects.filter(pk=side.pk, ended_at=None).update(ended_at=Now(), reason="it was closed")


def _hear(change: Change, side: SideDialog) -> None:
    dialog = change.dialog
    if side.owes or side.answered_at or side.ended_at:
        return
    match State(dialog.state):
        case State.IDLE | State.FAILED | State.CLOSED:
            reports.answer_above(change, side)
        case State.SUSPENDED if dialog.answering_seq is None:  # it has answered, and the next message would not fit
            reports.answer_above(change, side)
        case State.SUSPENDED if side.waits:
            reports.tell_suspension(side, dialog.questions.get(state="open").text)
        case _ if {State(dialog.state), change.state_before} & {State.WAITING, State.SUSPENDED}:
            with suppress(NotFound), open_change(side.parent_id) as above:
                sight.keep_in_sight(above)
    # Rows are locked from below upwards. A report of the dialog above locks its own row before the root's, too.
    if dialog.state in (State.WAITING, State.SUSPENDED) and dialog.answering_seq is not None:
        _tell_root(side, dialog.questions.get(state="open").text)


def _tell_root(side: SideDialog, question: str) -> None:
    """Tell whoever waits for the answer of the first dialog that a person has to say something."""
    with suppress(NotFound), open_change(side.root_id) as root:
        asks = rules.ASKS.format(name=side.name, question=rules.shorten(question))
        root.event("notice", text=asks, for_programs=True)


def deliver_soon(side_id: UUID) -> None:
    transaction.on_commit(lambda: deliver(side_id), robust=True)


@commits
def deliver(side_id: UUID) -> None:
    """Do what a side dialog owes: once, whoever else tries it at the same time."""
    _deliver(side_id)


def sweep() -> None:
    """Do what is owed and was lost with the process that owed it."""
    for side_id in [*_sides_that_owe(), *_unheard_sides()]:
        with leaving_what_is_locked(side_dialog=str(side_id)):
            _deliver(side_id)


@Select
def _sides_that_owe() -> QuerySet[SideDialog, UUID]:
    return SideDialog.objects.exclude(owes="").order_by("asked_at").values_list("pk", flat=True)[:MOST_AT_ONCE]


@Select
def _unheard_sides() -> QuerySet[SideDialog, UUID]:
    at_rest = SideDialog.objects.filter(owes="", dialog__state__in=AT_REST)
    return sight.at_work(at_rest).values_list("pk", flat=True)[:MOST_AT_ONCE]


@Select
def _with_parent(side_id: UUID) -> QuerySet[SideDialog]:
    return SideDialog.objects.filter(pk=side_id).select_related("parent__agent")


def _deliver(side_id: UUID) -> None:
    unusable = messages.unusable(side_id)
    with suppress(NotFound), open_change(side_id) as change:
        side = _with_parent.one(side_id)
        if side.owes == Owes.END:
            messages.close_within(change, None)
        elif side.owes == Owes.NOTHING:
            _hear(change, side)  # it came to rest while this extension was off
        elif unusable or change.dialog.closed_at is not None:
            reports.refuse_above(side, unusable or "The side dialog was closed.")
        elif not change.dialog.turns.filter(client_message_id=side.call_id).exists():
            _send(change, side)
        SideDialog.objects.filter(pk=side_id, owes=side.owes).update(owes=Owes.NOTHING)


def tell(parent_id: UUID, name: str, text: str, call_id: str) -> SideDialog:
    """Send a message to a side dialog that is at work. The same call again sends nothing more."""
    side = sight.find(Dialog.objects.get(pk=parent_id), name)
    with open_change(side.pk) as change:
        if not change.dialog.turns.filter(client_message_id=call_id).exists():
            side = SideDialog.objects.get(pk=side.pk)  # it may have reported before its row was locked
            if side.answered_at or side.ended_at:
                raise Conflict("at_rest", f"{name} has reported already. Go on in it by {reports.ASK_AGENT}.")
            messages.accept_within(change, text, call_id)
            change.asks_work, change.wakes = False, True
    return side


def _send(change: Change, side: SideDialog) -> None:
    document = task_document.newest(side.root_id)
    parts = [side.task, task_document.as_text(document) if document.version else ""]
    text = "\n\n".join(filter(None, [*parts, rules.REPORTS_BACK.format(agent=side.parent.agent)]))
    messages.accept_within(change, text, side.call_id)
    change.asks_work, change.wakes = False, True  # the parent's key pays, not that of the request
