"""A dialog's model calls as moments: the size of each request, its parts, and what happened around it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dialogs.context.sent import Category, Sent, est_tokens_of, sizes_of, split_by_chars
from dialogs.models import Dialog, Generation, Question
from dialogs.queries.sent_requests import Piece
from dialogs.store.json_shapes import usd, when
from health.models import HealthSnapshot
from remediation.models import RemediationRun
from remediation.policies.registry import title_of

MOST = 200  # moments that are shown at once
MARKS = ("rewrite", "undo", "round", "question", "crash", "failure", "recall")
NEXT = "next"  # stands in an address for the request that would be sent now


@dataclass(frozen=True, slots=True)
class Mark:
    """An event before or in a call, in words."""

    kind: str  # one of MARKS
    text: str
    run: int = 0  # the rewrite that it is about, if any
    sizes: str = ""
    question: str = ""  # the id of the question that it is about, if any


@dataclass(frozen=True, slots=True)
class Moment:
    """A model call.

    ``tokens`` are those of its prompt, as reported, or else as estimated. ``shares`` are estimates throughout: tokens
    by category, divided by characters, and empty for rows older than that column.
    """

    generation: Generation
    tokens: int
    is_reported: bool
    shares: dict[Category, int]
    reserve: int | None  # asked for the answer
    number: int = 0  # of its call, within the dialog
    marks: tuple[Mark, ...] = ()
    known_window: int | None = None  # the window, for calls whose report names none

    @property
    def is_next(self) -> bool:
        """Check whether this is the request that would be sent now."""
        return self.generation.pk is None

    @property
    def key(self) -> str:
        """Return the name of this moment in addresses."""
        return NEXT if self.is_next else str(self.generation.pk)

    @property
    def name(self) -> str:
        return _("the next request") if self.is_next else _("call {number}").format(number=f"{self.number:,}")

    @property
    def label(self) -> str:
        """Return the name with the size, for a list to choose from."""
        size = f"{self.tokens:,}" if self.is_reported else _("est. {number:,}").format(number=self.tokens)
        return f"{self.name} · {size}"

    @property
    def est(self) -> int | None:
        """Return the estimate from before the call, if there is also a report."""
        return self.generation.est_tokens if self.is_reported else None

    @property
    def snapshot(self) -> HealthSnapshot | None:
        return getattr(self.generation, "snapshot", None)

    @property
    def window(self) -> int | None:
        return self.snapshot.model_context_limit if self.snapshot else self.known_window

    @property
    def whole(self) -> int:
        """Return the tokens that shares are parts of: the window, or if it is unknown the request with its reserve."""
        return self.window or self.tokens + (self.reserve or 0)

    @property
    def parts(self) -> list[tuple[str, int, float]]:
        """Return each category that occurs, and the reserve, with tokens and share."""
        results = [
            *((category.value, tokens) for category, tokens in self.shares.items()),
            ("reserve", self.reserve or 0),
        ]
        return [(name, tokens, tokens / self.whole) for name, tokens in results if tokens]

    @property
    def share(self) -> float:
        return self.tokens / self.whole if self.whole else 0.0


def call_numbers(rows: Sequence[Generation]) -> dict[int, int]:
    """Count the calls of a dialog from 1 on, and return the number of each of these, all of one dialog, by id.

    All purposes count, as in the table of every call; those of other dialogs do not, as they do in ids.
    """
    if not rows:
        return {}
    calls = Generation.objects.newest_of(rows[0].dialog_id)
    first, last = min(row.pk for row in rows), max(row.pk for row in rows)
    earlier = calls.filter(pk__lt=first).count()
    ids = sorted(calls.filter(pk__gte=first, pk__lte=last).values_list("pk", flat=True))
    return {pk: number for number, pk in enumerate(ids, earlier + 1)}


def moment_of(generation: Generation, number: int = 0, marks: Iterable[Mark] = ()) -> Moment:
    sent = Sent.of(generation.sent)
    reported = generation.prompt_tokens
    tokens = est_tokens_of(generation) if reported is None else reported
    return Moment(
        generation,
        tokens,
        reported is not None,
        split_by_chars(sizes_of(sent), tokens),
        sent.output,
        number,
        tuple(marks),
    )


def next_moment(dialog: Dialog, pieces: Iterable[Piece], tokens: int, window: int | None) -> Moment:
    """Return the moment of the request that would be sent now, about which nothing is reported."""
    sizes = dict.fromkeys(Category, 0)
    for piece in pieces:
        sizes[piece.category] += piece.chars
    row = Generation(dialog=dialog, round_number=dialog.round_number, started_at=timezone.now(), outcome="")
    return Moment(row, tokens, False, split_by_chars(sizes, tokens), None, known_window=window)


def moments(dialog: Dialog, before: int | None = None, limit: int = MOST) -> list[Moment]:
    """Return the newest calls for answers and clears before the generation ``before``, oldest first."""
    purposes = [Generation.Purpose.REPLY, Generation.Purpose.FORCED_CLEAR]
    rows = Generation.objects.newest_of(dialog.pk).filter(purpose__in=purposes)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    newest = list(rows.select_related("snapshot")[: limit + 1])[::-1]
    earlier, shown = (newest[0], newest[1:]) if len(newest) > limit else (None, newest)
    asked, mark_of = _questions(dialog, shown), _rewrites([row for row in (earlier, *shown) if row])
    numbers = call_numbers(shown)
    return [
        moment_of(row, numbers[row.pk], [*_marks(row, previous, mark_of), *asked.get(row.pk, ()), *_recalls(row)])
        for previous, row in zip([earlier, *shown], shown, strict=False)
    ]


def _marks(row: Generation, previous: Generation | None, mark_of: Callable[[int], Mark]) -> list[Mark]:
    result = list[Mark]()
    if previous is not None and row.base and previous.base:
        (number, run), (number_before, run_before) = _base(row), _base(previous)
        if number != number_before and not run:
            result.append(Mark("round", _("Round {number} began").format(number=number)))
        if run > run_before or (run and number != number_before):
            result.append(mark_of(run))
        elif run < run_before and number == number_before:
            undone = mark_of(run_before)
            result.append(Mark("undo", _("{rewrite}, undone").format(rewrite=undone.text), run_before))
    if row.outcome == Generation.Outcome.CRASHED:
        result.append(Mark("crash", _("Its worker was lost")))
    elif row.outcome == Generation.Outcome.FAILED:
        reason = _(row.error_kind.replace("_", " ")) if row.error_kind else _("unknown")
        result.append(Mark("failure", _("Failed: {reason}").format(reason=reason)))
    return result


def _recalls(row: Generation) -> list[Mark]:
    number = len(row.recalled)
    words = ngettext("{number} earlier message came back", "{number} earlier messages came back", number)
    return [Mark("recall", words.format(number=number))] if number else []


def _rewrites(rows: Iterable[Generation]) -> Callable[[int], Mark]:
    """Map the number of each rewrite before these calls to its mark."""
    numbers = {run for row in rows if row.base and (run := _base(row)[1])}
    columns = ("policy", "est_before", "est_after")
    found = RemediationRun.objects.filter(pk__in=numbers).values_list("pk", *columns) if numbers else ()
    runs = {pk: values for pk, *values in found}

    def mark_of(number: int) -> Mark:
        if number not in runs:
            return Mark("rewrite", _("Rewrite"))
        policy, before, after = runs[number]
        sizes = _("est. {before:,} → {after:,} tokens").format(before=before, after=after)
        return Mark("rewrite", _(title_of(policy)), number, sizes)

    return mark_of


def _base(row: Generation) -> tuple[int, int]:
    number, _, run = row.base.partition(":")
    return int(number), int(run or 0)


def _questions(dialog: Dialog, shown: list[Generation]) -> dict[int, list[Mark]]:
    """Return the questions by the newest call before each."""
    result = dict[int, list[Mark]]()
    if not shown:
        return result
    asked = dialog.questions.filter(created_at__gte=shown[0].started_at).order_by("created_at")
    for question in asked[: 2 * MOST]:
        row = next((row for row in reversed(shown) if row.started_at <= question.created_at), shown[0])
        kind = _("Question for a human") if question.kind == Question.Kind.QUESTION else _(question.get_kind_display())
        result.setdefault(row.pk, []).append(Mark("question", kind, question=str(question.pk)))
    return result


def moment_json(moment: Moment) -> dict[str, Any]:
    row, snapshot = moment.generation, moment.snapshot
    return {
        "generation": row.pk,
        "round": row.round_number,
        "purpose": row.purpose,
        "outcome": row.outcome,
        "level": snapshot.level if snapshot else None,
        "prompt_tokens": row.prompt_tokens,
        "est_prompt_tokens": None if moment.is_reported else moment.tokens,
        "est_shares": {category.value: tokens for category, tokens in moment.shares.items()},
        "reserve": moment.reserve,
        "window": moment.window,
        "optimal": snapshot.optimal_max_tokens if snapshot else None,
        "critical": snapshot.critical_max_tokens if snapshot else None,
        "cost_usd": usd(row.cost_usd),
        "digest": Sent.of(row.sent).digest or None,
        "marks": [{"kind": mark.kind, "text": mark.text} for mark in moment.marks],
        "started_at": when(row.started_at),
    }
