"""Programs that have their history summarized here, and then tell the summary in its place: Codex, LangChain, Goose,
opencode and others."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from django.db.models import QuerySet

from dialogs.extras.v1.asked_summaries import LastAnswer, asks_for_summary, stands_in
from dialogs.extras.v1.exchanges import DISTINCT_CHARS, Exchange, exchanges_of, without_spaces
from dialogs.extras.v1.history import Call, ClientMessage
from dialogs.extras.v1.likeness import Fit
from dialogs.extras.v1.matching.incoming import AT_HEAD, RESULT_FOLLOWS, Candidate, Incoming, without_background
from dialogs.extras.v1.matching.matcher import Matcher
from dialogs.extras.v1.matching.quoting import quotes_newest
from dialogs.extras.v1.transcripts import KEPT_TURNS, SHORTEST_QUOTE, Newest, calls_of, messages_in, newest_of
from dialogs.models import Dialog, Turn


def find(incoming: Incoming) -> Candidate | None:
    """Return the one of the newest dialogs whose last answer is a summary that takes the place of the history."""
    if len(incoming.text) < DISTINCT_CHARS:
        return None
    texts = (*incoming.system, *incoming.conversation.whole)
    results: list[Candidate] = []
    for one in newest_of(_at_head(incoming)):
        if one.exchanges and stands_in(one.exchanges[-1].answered, incoming.text):
            messages = tuple(messages_in(one.dialog_id))
            if LastAnswer.of(messages).place_in(texts) is not None:
                results.append(_with_summary(one.dialog_id, exchanges_of(messages)))
    if not results and len(incoming.conversation.whole) > 1:
        by_dialog = {one.dialog_id: one for one in _summarized_beside(incoming, texts)}
        results = list(by_dialog.values())
    if len(results) != 1:
        return None
    seq, position = incoming.dialogs.values_list("last_turn_seq", "last_position").get(pk=results[0].dialog_id)
    calls = _calls_at(results[0].dialog_id, position) if results[0].summary else ()
    results_to_come = tuple(ClientMessage("tool", RESULT_FOLLOWS, call_id=call.id) for call in calls)
    return replace(results[0], last_turn_seq=seq, results=results_to_come)


def _with_summary(dialog_id: UUID, stored: Sequence[Exchange], summary: ClientMessage | None = None) -> Candidate:
    result = Fit(False, len(stored), len(stored), summed_up=True)
    return Candidate(dialog_id, 0, tuple(stored), 0, result, summary=summary)


def _calls_at(dialog_id: UUID, position: int) -> tuple[Call, ...]:
    turn = Turn.objects.filter(dialog=dialog_id, position=position, role=Turn.Role.ASSISTANT).first()
    return calls_of(turn) if turn else ()


def _at_head(incoming: Incoming) -> QuerySet[Dialog]:
    return without_background(incoming.dialogs).filter(state__in=AT_HEAD)


def _summarized_beside(incoming: Incoming, texts: Sequence[ClientMessage]) -> Iterator[Candidate]:
    """Yield the newest dialogs that a program had summarized by a separate request. It quotes the last exchange, as
    Goose and opencode do, or what stands before the messages that are kept, as LangChain does. The summary becomes
    their last exchange.
    """
    for beside in list(newest_of(incoming.dialogs)):
        if len(beside.exchanges) != 1 or not stands_in(beside.exchanges[0].answered, incoming.text):
            continue
        instructions = incoming.dialogs.values_list("client__instructions", flat=True).get(pk=beside.dialog_id)
        asked = without_spaces((instructions, beside.exchanges[0].message))
        for one in newest_of(_at_head(incoming), KEPT_TURNS):
            is_it = one.is_quoted_in(asked) or (one.is_begun_in(asked) and _ends_alike(incoming, one))
            if one.dialog_id == beside.dialog_id or not is_it:
                continue
            messages = tuple(messages_in(one.dialog_id))
            place = LastAnswer("", beside.exchanges[0].answered, messages).place_in(texts)
            if place is not None:
                stored = [*exchanges_of(messages), beside.exchanges[0]]
                yield _with_summary(one.dialog_id, stored, replace(texts[place], role="user"))


def _ends_alike(incoming: Incoming, one: Newest) -> bool:
    """Check whether a history ends with the end of a dialog's newest answer, or where that is short, as the dialog."""
    if not (incoming.history and incoming.history[-1].answered and one.exchanges):
        return False
    kept, newest = incoming.history[-1], one.exchanges[-1]
    is_told = kept.message == newest.message or len(kept.answered.encode()) >= SHORTEST_QUOTE
    return is_told and newest.answered.endswith(kept.answered)


def asks_beside(incoming: Incoming, text: str) -> bool:
    """Recognise a request for a summary whose instructions quote the conversation, as Goose sends it, or which
    quotes its beginning, as LangChain does, or the summary that stands for that.
    """
    if not asks_for_summary(text):
        return False
    if quotes_newest(incoming, incoming.request.instructions):
        return True
    quoted, dialogs = "".join(text.split()), incoming.own_dialogs
    if any(one.is_begun_in(quoted) for one in newest_of(without_background(dialogs), KEPT_TURNS)):
        return True
    beside = newest_of(dialogs.filter(origin=Dialog.Origin.BACKGROUND))
    return any(one.exchanges and stands_in(one.exchanges[-1].answered, quoted) for one in beside)


MATCHER = Matcher("programs that summarize", find, asks_beside)
