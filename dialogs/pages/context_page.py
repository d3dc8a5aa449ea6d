"""The pane Context: a dialog's requests over time, and the parts of one of them, alone or beside another."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import Http404
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from dialogs.context.limits import thresholds_of
from dialogs.context.sent import Category
from dialogs.errors import Refusal
from dialogs.models import Dialog
from dialogs.pages import rewrite_page
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.meter import Part, parts_of
from dialogs.pages.story import marks_of
from dialogs.pages.time_drawing import draw
from dialogs.queries.context_report import next_size
from dialogs.queries.moments import MOST, NEXT, Moment, call_numbers, moment_of, moments, next_moment
from dialogs.queries.request_diff import diff
from dialogs.queries.sent_requests import Piece, SentRequest, next_request, sent_request
from dominds.llm.catalog.catalog import UnknownModel

PIECES = 50  # pieces of a request that one page shows
IN_PANE = 60  # moments beside a conversation


@dataclass
class ContextPage:
    """The moments that a person asked to see: ``at``, perhaps with ``beside``, among those before a call.

    A moment is named by the id of its call, or ``next`` for the request that would be sent now.
    """

    page: DialogPage
    at: str = ""
    beside: str = ""
    before: int | None = None
    page_number: str = "1"
    most: int = MOST
    problem: str = ""

    @property
    def dialog(self) -> Dialog:
        return self.page.dialog

    @cached_property
    def visible(self) -> list[Moment]:
        """Return the moments of the drawing, oldest first. On the newest page the next request is the last."""
        before, number = self.before, _number(self.at)
        sent = moments(self.dialog, before, self.most)
        if before is None and number is not None and sent and number < sent[0].generation.pk:
            self.before = number + 1
            sent = moments(self.dialog, self.before, self.most)
        return [*sent, self._next] if self._next is not None and self.before is None else sent

    @cached_property
    def _next_pieces(self) -> tuple[Piece, ...]:
        return next_request(self.dialog)

    @cached_property
    def _next(self) -> Moment | None:
        try:
            tokens, window = next_size(self.dialog), thresholds_of(self.dialog).context_limit
            return next_moment(self.dialog, self._next_pieces, tokens or 0, window)
        except (Refusal, UnknownModel) as problem:
            self.problem = str(problem)
            return None

    @cached_property
    def moment(self) -> Moment | None:
        return self._moment_named(self.at) if self.at else (self.visible[-1] if self.visible else None)

    def _moment_named(self, key: str) -> Moment | None:
        if key == NEXT:
            return self._next
        if found := next((moment for moment in self.visible if moment.key == key), None):
            return found
        row = self.dialog.generations.select_related("snapshot").filter(pk=_number(key) or 0).first()
        if row is None:
            raise Http404
        return moment_of(row, call_numbers([row])[row.pk])

    @cached_property
    def other(self) -> Moment | None:
        return self._moment_named(self.beside) if self.beside else None

    def _request(self, moment: Moment) -> SentRequest:
        return SentRequest("", self._next_pieces) if moment.is_next else sent_request(moment.generation)

    @cached_property
    def request(self) -> SentRequest | None:
        return self._request(self.moment) if self.moment else None

    @property
    def found(self) -> Page[Piece]:
        """Return the pieces of one page."""
        pieces = self.request.pieces if self.request else ()
        return Paginator(pieces, PIECES).get_page(self.page_number)

    @property
    def parts(self) -> tuple[Part, ...]:
        moment = self.moment
        if moment is None:
            return ()
        split = {category.value: tokens for category, tokens in moment.shares.items()}
        return parts_of(split, moment.tokens, moment.reserve or 0, moment.window)

    @property
    def _older(self) -> int | None:
        """Return the oldest call that is shown, if there may be older ones."""
        calls = [moment.generation.pk for moment in self.visible if not moment.is_next]
        return calls[0] if len(calls) == self.most else None

    def variables(self) -> dict[str, Any]:
        """Return the variables of the templates."""
        moment, visible = self.moment, self.visible
        marks = marks_of(self.page, visible, self.before)
        found, is_sent = self.found, moment is not None and not moment.is_next
        summaries = [piece.text for piece in found if piece.category == Category.SUMMARY]
        makers = rewrite_page.makers_of(self.dialog, summaries)
        result: dict[str, Any] = {
            "drawing": draw(visible, marks),
            "older": self._older,
            "is_newest": self.before is None,
            "moment": moment,
            "marks": marks.get(moment.key, ()) if moment else (),
            "parts": self.parts,
            "sent": self.request if is_sent else None,
            "found": found,
            "groups": _groups(found),
            "makers": {text: makers.get(text[: rewrite_page.SUMMARY_START]) for text in summaries},
            "others": [one for one in reversed(visible) if moment is None or one.key != moment.key],
            "with": self.beside,
            "problem": self.problem,
        }
        if moment is not None and self.other is not None:
            before, after = sorted((moment, self.other), key=lambda one: (one.is_next, one.generation.pk or 0))
            changes = diff(self._request(before).pieces, self._request(after).pieces)
            result |= {"diff": changes, "before": before, "after": after}
        if is_sent and moment is not None:
            result |= _numbers(moment)
        return result


def _groups(found: Page[Piece]) -> list[tuple[Category, list[tuple[int, Piece]]]]:
    """Return the pieces of a page with their places in the request, grouped where neighbours share a category."""
    numbered = enumerate(found, (found.number - 1) * PIECES)
    return [(category, list(pieces)) for category, pieces in groupby(numbered, key=lambda row: row[1].category)]


def _number(key: str) -> int | None:
    return int(key) if key.isascii() and key.isdecimal() and len(key) < 19 else None


def _numbers(moment: Moment) -> Mapping[str, Any]:
    row, snapshot = moment.generation, moment.snapshot
    counts = {
        _("Prompt tokens"): row.prompt_tokens,
        _("Completion tokens"): row.completion_tokens,
        _("Total tokens"): row.total_tokens,
        _("Read from the cache"): row.cache_read_tokens,
        _("Written to the cache"): row.cache_write_tokens,
        _("Reasoning tokens"): row.reasoning_tokens,
    }
    numbers = [(label, _("unknown") if number is None else f"{number:,}") for label, number in counts.items()]
    if row.first_token_ms is not None:
        numbers.append((_("First word after"), _("{number} ms").format(number=f"{row.first_token_ms:,}")))
    shares = []
    if snapshot:
        shares = [
            (_("Of the window"), snapshot.hard_util, snapshot.model_context_limit),
            (_("Of the optimal size"), snapshot.optimal_util, snapshot.optimal_max_tokens),
        ]
    return {"numbers": numbers, "shares": shares}
