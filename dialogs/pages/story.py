"""The story of a dialog's context: each act as one line, with the sizes before and after, and
whether it can be undone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from dialogs.context.sent import est_tokens_of
from dialogs.models import Dialog, Generation, Question, Round
from dialogs.pages.context_panel import RunLine, run_lines
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.entries import address_of
from dialogs.queries.context_report import next_size
from remediation.context import UnitKind
from remediation.models import RemediationRun

CALLS = 100  # the newest ones, among which sizes and recalled passages are looked for
CLEARED = {
    Round.Cause.CLEAR_MIND: gettext_noop("It cleared its mind"),
    Round.Cause.PERSON: gettext_noop("Its mind was cleared by hand"),
    Round.Cause.COUNTDOWN: gettext_noop("Its mind was cleared when the countdown ended"),
}


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that happened to what the model sees. ``address`` is its place in the conversation, and ``more`` the
    page about what went and why, or what came back.
    """

    kind: str  # rewrite, undo, clear, question, recall
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
    acts = sorted(_acts(page, newest), key=lambda act: act.at, reverse=True)
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


def _acts(page: DialogPage, newest: int) -> Iterator[Act]:
    dialog, lines = page.dialog, list(run_lines(page.dialog, newest=newest))
    gauge = Gauge(dialog, [line.run for line in lines])
    for line in lines:
        yield _rewrite(dialog, line)
        if line.run.undone_at:
            yield _undo(dialog, line, gauge)
    for row, address in page.rounds[:newest]:
        if row.cause in Round.CLEARS:
            title = _(CLEARED[Round.Cause(row.cause)])
            note = _("round {number} began").format(number=row.number)
            sizes = gauge.around(row.created_at)
            act = Act("clear", row.created_at, title, note, sizes, address, reverse("context", args=[dialog.pk]))
            yield replace(act, undoes_clear=row.number == page.undoable_round)
    for question in dialog.questions.order_by("-created_at").select_related("resolved_by")[:newest]:
        yield _question(question)
    for call in gauge.calls:
        if call.recalled:
            yield _recall(dialog, call)


def _rewrite(dialog: Dialog, line: RunLine) -> Act:
    run = line.run
    if line.undoes_clear:
        place = address_of(dialog, run.base_position, f"run-{run.pk}")
        sizes = _est_sizes(run.est_before, run.est_after)
        return Act("rewrite", run.created_at, _(line.title), _("it sees again what went"), sizes, place, run=line)
    gone = ngettext("{number} message went to the archive", "{number} messages went to the archive", line.removed)
    return Act(
        "rewrite",
        run.created_at,
        _(line.title),
        gone.format(number=line.removed),
        _est_sizes(run.est_before, run.est_after),
        address_of(dialog, run.base_position, f"run-{run.pk}"),
        reverse("archived-run", args=[dialog.pk, run.pk]),
        line,
    )


def _undo(dialog: Dialog, line: RunLine, gauge: "Gauge") -> Act:
    run = line.run
    assert run.undone_at is not None
    title = _("{rewrite}, undone").format(rewrite=_(line.title))
    sizes = gauge.around(run.undone_at, since=run.created_at, before=run.est_after)
    who = str(run.undone_by) if run.undone_by else ""
    undone = replace(_rewrite(dialog, line), kind="undo", at=run.undone_at, title=title, sizes=sizes)
    return replace(undone, note="", by_hand=who)


def _question(question: Question) -> Act:
    kind = _("Question for a human") if question.kind == Question.Kind.QUESTION else _(question.get_kind_display())
    address = reverse("question", args=[question.pk])
    return Act("question", question.created_at, kind, _(question.get_state_display()), "", "", address)


def _recall(dialog: Dialog, call: Generation) -> Act:
    number = len(call.recalled)
    title = ngettext(
        "{number} earlier message came back into one request",
        "{number} earlier messages came back into one request",
        number,
    ).format(number=number)
    return Act("recall", call.started_at, title, more=reverse("recalled", args=[dialog.pk, call.pk]))


class Gauge:
    """The readings of the gauge before and after a moment, from the sizes of the calls and rewrites around it."""

    def __init__(self, dialog: Dialog, runs: Sequence[RemediationRun]) -> None:
        self._dialog, self._runs = dialog, runs

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
        rewrite = min((run for run in self._runs if run.created_at >= at), key=lambda run: run.created_at, default=None)
        first = _size(earlier) if earlier else (before, True)
        last = _size(later) if later else (self._next, True)
        if rewrite and (later is None or rewrite.created_at < later.started_at):
            last = (rewrite.est_before, True)
        return _sizes(first, last)


def _size(call: Generation) -> tuple[int | None, bool]:
    """Return what the gauge showed for a call, and whether that was an estimate."""
    is_est = call.prompt_tokens is None
    return est_tokens_of(call) if is_est else call.prompt_tokens, is_est


def _sizes(first: tuple[int | None, bool], last: tuple[int | None, bool]) -> str:
    (before, is_est), (after, is_est_after) = first, last
    if before is None or after is None:
        return ""
    if is_est and is_est_after:
        return _est_sizes(before, after)
    words = [_est(tokens) if is_est else f"{tokens:,}" for tokens, is_est in ((before, is_est), (after, is_est_after))]
    return _("{before} → {after} tokens").format(before=words[0], after=words[1])


def _est(tokens: int) -> str:
    return _("est. {number:,}").format(number=tokens)


def _est_sizes(before: int, after: int) -> str:
    return _("est. {before:,} → {after:,} tokens").format(before=before, after=after)


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
    return f"{words} {_est_sizes(before, after)}"
