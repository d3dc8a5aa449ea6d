"""The story of a dialog's context: each act as one line, with the sizes before and after, and
whether it can be undone. On the drawing of the requests over time each is a mark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby
from typing import Any

from django.db.models import Q
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop as noop
from django.utils.translation import ngettext

from dialogs.models import Dialog, Generation, Question, Round
from dialogs.pages.context_panel import RunLine, run_lines
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.entries import address_of
from dialogs.queries.context_report import next_size
from dialogs.queries.moments import MOST, Moment, est_sizes, moment_of, moments, size_in_words
from remediation.context import UnitKind
from remediation.models import RemediationRun

KINDS = ("rewrite", "undo", "round", "question", "crash", "failure", "recall")
CALLS = 100  # the newest ones, among which sizes and recalled passages are looked for
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
    page about what went and why, or what came back.
    """

    kind: str  # one of KINDS
    at: datetime
    title: str
    note: str = ""
    sizes: str = ""
    address: str = ""
    more: str = ""
    run: RunLine | None = None
    by_hand: str = ""  # the person who did it, if one did
    undoes_clear: bool = False  # whether it is a clear that can be undone now

    @property
    def may_undo(self) -> bool:
        return self.undoes_clear or (self.kind == "rewrite" and self.run is not None and self.run.may_undo)


def story_of(page: DialogPage, newest: int) -> list[Act]:
    """Return the newest acts, the newest first."""
    gauge = Gauge(page.dialog, run_lines(page.dialog, newest=newest))
    recalls = (act for call in gauge.calls for act in _recall(call))
    acts = sorted([*_changes(page, gauge, newest), *recalls], key=lambda act: act.at, reverse=True)
    return [_join(alike) for alike in _alike(acts)][:newest]


def _alike(acts: Sequence[Act]) -> Iterator[list[Act]]:
    """Group consecutive recalls, since a line for each would hide the rest."""
    for is_recall, group in groupby(acts, key=lambda act: act.kind == "recall"):
        rows = list(group)
        yield from [rows] if is_recall else ([act] for act in rows)


def _join(acts: Sequence[Act]) -> Act:
    if len(acts) == 1:
        return acts[0]
    title = _("Earlier messages came back into {number} requests").format(number=len(acts))
    return replace(acts[0], title=title)


def marks_of(page: DialogPage, shown: Sequence[Moment], before: int | None = None) -> dict[str, list[Act]]:
    """Return what happened before each of these requests or in it, by its key. A question stands at the call before.
    Those shown are the newest, or the newest before the call ``before``.
    """
    result: dict[str, list[Act]] = {moment.key: [] for moment in shown}
    if not shown:
        return result
    previous = moments(page.dialog, shown[0].generation.pk, 1)
    starts = page.dialog.generations.order_by("pk").values_list("started_at", flat=True)
    until = starts.filter(pk__gte=before).first() if before else None
    earlier = {"created_at__lte": until} if until else {}
    gauge = Gauge(page.dialog, run_lines(page.dialog, newest=MOST, **earlier))
    for act in sorted(_changes(page, gauge, MOST, **earlier), key=lambda act: act.at):
        asks = act.kind == "question"
        near = [one for one in shown if (one.started_at <= act.at if asks else one.started_at >= act.at)]
        if near and not (previous and act.at <= previous[0].started_at):
            result[near[-1 if asks else 0].key].append(act)
    for moment in shown:
        result[moment.key] += [*_loss(moment.generation), *_recall(moment.generation)]
    return result


def _changes(page: DialogPage, gauge: "Gauge", newest: int, **chosen: Any) -> Iterator[Act]:
    """Yield the rewrites of the gauge and their undos, and the newest clears and questions, or of those chosen."""
    dialog = page.dialog
    for line in gauge.lines:
        yield _rewrite(dialog, line)
        if line.run.undone_at:
            yield _undo(dialog, line, gauge)
    clears = set(dialog.rounds.filter(cause__in=Round.CLEARS, **chosen).order_by("-number")[:newest])
    for row, address in page.rounds:
        if row in clears:
            title, note = capfirst(beginning_of(row)), _("round {number} began").format(number=row.number)
            more = reverse("context", args=[dialog.pk])
            act = Act("round", row.created_at, title, note, gauge.around(row.created_at), address, more)
            yield replace(act, undoes_clear=row.number == page.undoable_round)
    questions = dialog.questions.filter(**chosen).order_by("-created_at").select_related("resolved_by")
    yield from map(_question, questions[:newest])


def _rewrite(dialog: Dialog, line: RunLine) -> Act:
    run, note, more = line.run, _("it sees again what went"), ""
    if not line.undoes_clear:
        gone = ngettext("{number} message went to the archive", "{number} messages went to the archive", line.removed)
        note, more = gone.format(number=line.removed), reverse("archived-run", args=[dialog.pk, run.pk])
    sizes, place = est_sizes(run.est_before, run.est_after), address_of(dialog, run.base_position, f"run-{run.pk}")
    return Act("rewrite", run.created_at, _(line.title), note, sizes, place, more, line)


def _undo(dialog: Dialog, line: RunLine, gauge: "Gauge") -> Act:
    run = line.run
    assert run.undone_at is not None
    return replace(
        _rewrite(dialog, line),
        kind="undo",
        at=run.undone_at,
        title=_("{rewrite}, undone").format(rewrite=_(line.title)),
        note="",
        sizes=gauge.around(run.undone_at, since=run.created_at, before=run.est_after),
        by_hand=str(run.undone_by) if run.undone_by else "",
    )


def _question(question: Question) -> Act:
    kind = _("Question for a human") if question.kind == Question.Kind.QUESTION else _(question.get_kind_display())
    state, address = _(question.get_state_display()), reverse("question", args=[question.pk])
    return Act("question", question.created_at, kind, state, more=address)


def _recall(call: Generation) -> Iterator[Act]:
    if number := len(call.recalled):
        title = ngettext(
            "{number} earlier message came back into one request",
            "{number} earlier messages came back into one request",
            number,
        ).format(number=number)
        yield Act("recall", call.started_at, title, more=reverse("recalled", args=[call.dialog_id, call.pk]))


def _loss(call: Generation) -> Iterator[Act]:
    if call.outcome == Generation.Outcome.CRASHED:
        yield Act("crash", call.started_at, _("Its worker was lost"))
    elif call.outcome == Generation.Outcome.FAILED:
        reason = _(call.error_kind.replace("_", " ")) if call.error_kind else _("unknown")
        yield Act("failure", call.started_at, _("Failed: {reason}").format(reason=reason))


def beginning_of(row: Round) -> str:
    """Return in a few words why a round began."""
    return _(BEGINNINGS[row.cause])


class Gauge:
    """The readings of the gauge before and after a moment, from the sizes of the calls and rewrites around it."""

    def __init__(self, dialog: Dialog, lines: Sequence[RunLine]) -> None:
        self._dialog, self.lines = dialog, lines

    @cached_property
    def calls(self) -> Sequence[Generation]:
        """Return the newest calls for answers and clears, newest first."""
        purposes = Q(purpose=Generation.Purpose.REPLY) | Q(purpose=Generation.Purpose.FORCED_CLEAR)
        return list(Generation.objects.newest_of(self._dialog.pk).filter(purposes)[:CALLS])

    @cached_property
    def _next(self) -> int | None:
        return next_size(self._dialog)

    def around(self, at: datetime, since: datetime | None = None, before: int | None = None) -> str:
        """Return the sizes around a moment in words, or an empty text if they are unknown.

        ``before`` is the estimate for the case that no call came between ``since`` and that moment.
        """
        earlier = next((call for call in self.calls if call.started_at < at), None)
        if earlier is not None and since is not None and earlier.started_at < since:
            earlier = None
        later = next((call for call in reversed(self.calls) if call.started_at >= at), None)
        runs = (line.run for line in self.lines if line.run.created_at >= at)
        rewrite = min(runs, key=lambda run: run.created_at, default=None)
        first = _size(earlier) if earlier else (before, False)
        last = _size(later) if later else (self._next, False)
        if rewrite and (later is None or rewrite.created_at < later.started_at):
            last = (rewrite.est_before, False)
        return _sizes(first, last)


def _size(call: Generation) -> tuple[int | None, bool]:
    """Return what the gauge showed for a call, and whether that was reported."""
    moment = moment_of(call)
    return moment.tokens, moment.is_reported


def _sizes(first: tuple[int | None, bool], last: tuple[int | None, bool]) -> str:
    (before, is_reported), (after, is_reported_after) = first, last
    if before is None or after is None:
        return ""
    if not is_reported and not is_reported_after:
        return est_sizes(before, after)
    words = size_in_words(before, is_reported), size_in_words(after, is_reported_after)
    return _("{before} → {after} tokens").format(before=words[0], after=words[1])


def words_of_undo(run: RemediationRun, before: int | None, after: int | None) -> str:
    """Return a sentence about what an undo brought back into the model's sight."""
    back = sum(item["kind"] != UnitKind.SUMMARY for item in run.removed)
    return _words_of_undo(back, before, after)


def words_of_clear_undone(run: RemediationRun) -> str:
    """Return a sentence about what undoing a clear brought back: all but what was said since."""
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
