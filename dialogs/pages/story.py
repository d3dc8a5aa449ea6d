"""The story of a dialog's context: each act as one line, with the sizes before and after, and
whether it can be undone. On the drawing of the requests over time each is a mark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop as noop
from django.utils.translation import ngettext

from dialogs.models import Dialog, Generation, Question, Round
from dialogs.pages.context_panel import RunLine, run_lines
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.entries import address_of
from dialogs.queries.moments import MOST, Moment, est_sizes, moments, size_in_words
from remediation.context import UnitKind
from remediation.models import RemediationRun

KINDS = ("rewrite", "undo", "round", "question", "crash", "failure", "recall")
BEGINNINGS: dict[str, str] = {
    Round.Cause.START: noop("start"),
    Round.Cause.CLEAR_MIND: noop("the agent cleared its mind"),
    Round.Cause.PERSON: noop("cleared by a person"),
    Round.Cause.COUNTDOWN: noop("cleared by countdown"),
    Round.Cause.UNDO: noop("the clear was undone"),
}


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that happened to what the model sees. ``address`` is its place in the conversation, and ``more`` the
    address of a page about it, with the words of the link there.
    """

    kind: str  # one of KINDS
    at: datetime
    title: str
    note: str = ""
    sizes: str = ""
    address: str = ""
    more: tuple[str, str] | None = None
    run: RemediationRun | None = None
    reason: str = ""  # as it is stored
    may_undo: bool = False


def story_of(page: DialogPage, requests: Sequence[Moment], newest: int) -> list[Act]:
    """Return the newest acts, the newest first, with the sizes and the recalled messages of these requests."""
    recalls = (act for request in requests for act in _recall(request.generation))
    acts = sorted([*_changes(page, requests, newest), *recalls], key=lambda act: act.at, reverse=True)
    result = list[Act]()
    for is_recall, group in groupby(acts, key=lambda act: act.kind == "recall"):
        alike = list(group)
        if is_recall and len(alike) > 1:  # a line for each would hide the rest
            title = _("Earlier messages came back into {number} requests").format(number=len(alike))
            alike = [replace(alike[0], title=title)]
        result += alike
    return result[:newest]


def marks_of(page: DialogPage, shown: Sequence[Moment], before: int | None = None) -> dict[str, list[Act]]:
    """Map the key of each of these requests to the acts in it and since the request before it. A question belongs to
    the request before the question.

    ``shown`` are the newest requests, or the newest before the call ``before``.
    """
    result: dict[str, list[Act]] = {moment.key: [] for moment in shown}
    if not shown:
        return result
    previous = moments(page.dialog, shown[0].generation.pk, 1)
    starts = page.dialog.generations.order_by("pk").values_list("started_at", flat=True)
    until = starts.filter(pk__gte=before).first() if before else None
    earlier = {"created_at__lte": until} if until else {}
    for act in sorted(_changes(page, shown, MOST, **earlier), key=lambda act: act.at):
        asks = act.kind == "question"
        near = [moment for moment in shown if (moment.started_at <= act.at if asks else moment.started_at >= act.at)]
        if near and not (previous and act.at <= previous[0].started_at):
            result[near[-1 if asks else 0].key].append(act)
    for moment in shown:
        result[moment.key] += [*_loss(moment.generation), *_recall(moment.generation)]
    return result


def _changes(page: DialogPage, requests: Sequence[Moment], newest: int, **chosen: Any) -> Iterator[Act]:
    """Yield the newest rewrites with their undos, clears and questions. ``chosen`` are filters on each of these."""
    dialog, lines = page.dialog, run_lines(page.dialog, newest=newest, **chosen)
    sizes = Sizes(requests, [line.run for line in lines])
    for line in lines:
        rewrite = act_of(dialog, line)
        yield rewrite
        if line.run.undone_at:
            yield _undo(rewrite, line.run, sizes)
    clears = set(dialog.rounds.filter(cause__in=Round.CLEARS, **chosen).order_by("-number")[:newest])
    for row, address in page.rounds:
        if row in clears:
            yield Act(
                "round",
                row.created_at,
                capfirst(beginning_of(row)),
                _("round {number} began").format(number=row.number),
                sizes.around(row.created_at),
                address,
                (reverse("context", args=[dialog.pk]), _("What it sees")),
                may_undo=row.number == page.undoable_round,
            )
    questions = dialog.questions.filter(**chosen).order_by("-created_at").select_related("resolved_by")
    yield from map(_question, questions[:newest])


def act_of(dialog: Dialog, line: RunLine) -> Act:
    run, place = line.run, address_of(dialog, line.run.base_position, f"run-{line.run.pk}")
    act = Act("rewrite", run.created_at, _(line.title), _("it sees again what went"), line.sizes, place, run=run)
    if line.undoes_clear:
        return act
    gone = ngettext("{number} message went to the archive", "{number} messages went to the archive", line.removed)
    more = (reverse("archived-run", args=[dialog.pk, run.pk]), _("What went"))
    note = gone.format(number=line.removed)
    return replace(act, note=note, more=more, reason=run.reason, may_undo=line.may_undo)


def _undo(rewrite: Act, run: RemediationRun, sizes: "Sizes") -> Act:
    assert run.undone_at is not None
    return replace(
        rewrite,
        kind="undo",
        at=run.undone_at,
        title=_("{rewrite}, undone").format(rewrite=rewrite.title),
        note=_("by {who}").format(who=run.undone_by) if run.undone_by else "",
        sizes=sizes.around(run.undone_at, run),
        reason="",
        may_undo=False,
    )


def _question(question: Question) -> Act:
    kind = _("Question for a human") if question.kind == Question.Kind.QUESTION else _(question.get_kind_display())
    more = (reverse("question", args=[question.pk]), _("The question"))
    return Act("question", question.created_at, kind, _(question.get_state_display()), more=more)


def _recall(call: Generation) -> Iterator[Act]:
    if number := len(call.recalled):
        title = ngettext(
            "{number} earlier message came back into one request",
            "{number} earlier messages came back into one request",
            number,
        ).format(number=number)
        more = (reverse("recalled", args=[call.dialog_id, call.pk]), _("What came back"))
        yield Act("recall", call.started_at, title, more=more)


def _loss(call: Generation) -> Iterator[Act]:
    if call.outcome == Generation.Outcome.CRASHED:
        yield Act("crash", call.started_at, _("Its worker was lost"))
    elif call.outcome == Generation.Outcome.FAILED:
        reason = _(call.error_kind.replace("_", " ")) if call.error_kind else _("unknown")
        yield Act("failure", call.started_at, _("Failed: {reason}").format(reason=reason))


def beginning_of(row: Round) -> str:
    """Return in a few words why a round began."""
    return _(BEGINNINGS[row.cause])


@dataclass(frozen=True, slots=True)
class Sizes:
    """A dialog's requests and rewrites, oldest first, from which the sizes of its context around a moment follow."""

    requests: Sequence[Moment]
    runs: Sequence[RemediationRun]

    def around(self, at: datetime, undone: RemediationRun | None = None) -> str:
        """Return the sizes before and after a moment in words, or an empty text if they are unknown.

        Before an undo, the size is the rewrite's own estimate if no call came between the rewrite and its undo.
        """
        if not self.requests or at < self.requests[0].started_at:
            return ""
        since = undone.created_at if undone else None
        earlier = [request for request in self.requests if (since or request.started_at) <= request.started_at < at]
        later = next((request for request in self.requests if request.started_at >= at), None)
        rewrite = next((run for run in self.runs if run.created_at >= at), None)
        first = earlier[-1].reading if earlier else (undone.est_after, False) if undone else None
        last = later.reading if later else None
        if rewrite and (later is None or rewrite.created_at < later.started_at):
            last = (rewrite.est_before, False)
        if first is None or last is None:
            return ""
        if not first[1] and not last[1]:
            return est_sizes(first[0], last[0])
        return _("{before} → {after} tokens").format(before=size_in_words(*first), after=size_in_words(*last))


def words_of_undo(run: RemediationRun, before: int | None, after: int | None) -> str:
    """Return a sentence about what an undo brought back into the model's sight."""
    back = sum(item["kind"] != UnitKind.SUMMARY for item in run.removed)
    return _words_of_undo(back, before, after)


def words_of_clear_undone(run: RemediationRun) -> str:
    """Return a sentence about what undoing a clear brought back. Turns that the round carries over were in sight."""
    carried = Round.objects.values_list("carried", flat=True).get(dialog=run.dialog_id, number=run.round_number)
    back = {seq for item in run.view for seq in item.get("turns", item.get("sources", ()))} - set(carried)
    return _words_of_undo(len(back), run.est_before, run.est_after)


def _words_of_undo(back: int, before: int | None, after: int | None) -> str:
    words = _("Undone.")
    if back:
        words = ngettext("{number} message is back.", "{number} messages are back.", back).format(number=back)
    if before is None or after is None:
        return words
    return f"{words} {est_sizes(before, after)}"
