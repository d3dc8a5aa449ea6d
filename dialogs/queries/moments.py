"""A dialog's model calls as moments: the size of each request, and its parts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.context.sent import Category, Sent, est_tokens_of, sizes_of, split_by_chars
from dialogs.models import Dialog, Generation
from dialogs.queries.sent_requests import Piece
from dialogs.store.json_shapes import usd, when
from health.models import HealthSnapshot
from remediation.spending import in_usd

MOST = 200  # moments that are shown at once
NEXT = "next"  # stands in an address for the request that would be sent now


@dataclass(frozen=True, slots=True)
class Moment:
    """A model call.

    ``tokens`` are those of its prompt, as reported, or else as estimated. ``shares`` are always
    estimates: tokens by category, in proportion to characters. Empty for rows from before sizes were stored.
    """

    generation: Generation
    tokens: int
    is_reported: bool
    shares: dict[Category, int]
    reserve: int | None  # tokens that the request asked for as output
    number: int = 0  # of the call, counted within the dialog
    known_window: int | None = None  # the window in tokens, for a request without a snapshot

    @property
    def is_next(self) -> bool:
        """Check whether this is the request that would be sent now."""
        return self.generation.pk is None

    @property
    def started_at(self) -> datetime:
        return self.generation.started_at

    @property
    def key(self) -> str:
        """Return the name of this moment in addresses."""
        return NEXT if self.is_next else str(self.generation.pk)

    @property
    def name(self) -> str:
        return _("the next request") if self.is_next else _("call {number}").format(number=f"{self.number:,}")

    @property
    def reading(self) -> tuple[int, bool]:
        """Return the tokens that the gauge showed, and whether they were reported."""
        return self.tokens, self.is_reported

    @property
    def title(self) -> str:
        if self.is_next:
            return _("What it would see now")
        outcome = _(self.generation.outcome)
        return _("Call {number}, {outcome}").format(number=f"{self.number:,}", outcome=outcome)

    @property
    def size(self) -> str:
        words = _("{number:,} tokens reported") if self.is_reported else _("est. {number:,} tokens")
        return words.format(number=self.tokens)

    @property
    def numbers(self) -> list[tuple[str, str]]:
        """Return what was reported of the call, in words."""
        row, snapshot = self.generation, self.snapshot or HealthSnapshot()
        counts = {
            _("Prompt tokens"): row.prompt_tokens,
            _("Completion tokens"): row.completion_tokens,
            _("Total tokens"): row.total_tokens,
            _("Read from the cache"): row.cache_read_tokens,
            _("Written to the cache"): row.cache_write_tokens,
            _("Reasoning tokens"): row.reasoning_tokens,
            _("First word after, ms"): row.first_token_ms,
        }
        level = _("unknown") if self.snapshot is None else _(snapshot.level)
        return [
            (_("Level"), f"{level}, {_(snapshot.reason.replace('_', ' '))}" if snapshot.reason else level),
            *((label, _("unknown") if number is None else f"{number:,}") for label, number in counts.items()),
            (_("Of the window"), _share(snapshot.hard_util, snapshot.model_context_limit)),
            (_("Of the optimal size"), _share(snapshot.optimal_util, snapshot.optimal_max_tokens)),
            (_("Cost"), _("unknown price") if row.cost_usd is None else in_usd(row.cost_usd)),
        ]

    @property
    def snapshot(self) -> HealthSnapshot | None:
        return getattr(self.generation, "snapshot", None)

    @property
    def window(self) -> int | None:
        return self.snapshot.model_context_limit if self.snapshot else self.known_window


def moments_of(rows: Sequence[Generation]) -> list[Moment]:
    """Return these calls of one dialog, numbered within it.

    Calls of all purposes are counted, as in the table of every call.
    """
    if not rows:
        return []
    calls = Generation.objects.newest_of(rows[0].dialog_id)
    first, last = min(row.pk for row in rows), max(row.pk for row in rows)
    earlier = calls.filter(pk__lt=first).count()
    ids = sorted(calls.filter(pk__gte=first, pk__lte=last).values_list("pk", flat=True))
    numbers = {pk: number for number, pk in enumerate(ids, earlier + 1)}
    return [moment_of(row, numbers[row.pk]) for row in rows]


def moment_of(generation: Generation, number: int = 0) -> Moment:
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
    return moments_of(list(rows.select_related("snapshot")[:limit])[::-1])


def _share(ratio: float | None, whole: int | None) -> str:
    share = _("unknown") if ratio is None else f"{ratio * 100:.1f} %"
    return f"{share} {_('of {}').format(f'{whole:,}')}" if whole else share


def size_in_words(tokens: int, is_reported: bool) -> str:
    return f"{tokens:,}" if is_reported else _("est. {number:,}").format(number=tokens)


def est_sizes(before: int, after: int) -> str:
    """Return the estimated sizes before and after a rewrite in words."""
    return _("est. {before:,} → {after:,} tokens").format(before=before, after=after)


def moment_json(moment: Moment, marks: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
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
        "marks": [{"kind": kind, "text": text} for kind, text in marks],
        "started_at": when(row.started_at),
    }
