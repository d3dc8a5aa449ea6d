"""The pane Context: a dialog's requests over time, and the parts of one of them, or a comparison of two."""

from collections.abc import Mapping

from django.core.paginator import Page, Paginator
from django.http import Http404
from django.utils.functional import cached_property

from dialogs.context.limits import thresholds_of
from dialogs.context.sent import Category
from dialogs.errors import Refusal
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.meter import Part, parts_of
from dialogs.pages.rewrite_page import makers_of
from dialogs.pages.story import Act, marks_of
from dialogs.pages.time_drawing import Drawing, draw
from dialogs.queries.context_report import next_size
from dialogs.queries.moments import MOST, NEXT, Moment, moments, moments_of, next_moment
from dialogs.queries.request_diff import Diff, diff
from dialogs.queries.sent_requests import Piece, SentRequest, next_request, sent_request
from dominds.llm.catalog.catalog import UnknownModel

PIECES = 50  # pieces of a request that one page shows
IN_PANE = 60  # moments that are drawn beside a conversation


class ContextPage:
    """The moments (a dialog's requests) that a person asked to see, by the query of the address.

    ``at`` names the moment shown, ``with`` a moment to compare it with, and ``before`` a call at which the drawing
    ends. A moment is named by the id of its call, or ``next`` for the request that would be sent now.
    """

    def __init__(self, page: DialogPage, asked: Mapping[str, str], most: int = MOST) -> None:
        self.page, self.dialog, self.most, self.problem = page, page.dialog, most, ""
        self.at, self.beside = asked.get("at", ""), asked.get("with", "")
        self.before, self.part = _number(asked.get("before", "")), asked.get("part", "1")

    @cached_property
    def visible(self) -> list[Moment]:
        """Return the moments of the drawing, oldest first. On the newest page the next request is the last."""
        before, number = self.before, _number(self.at)
        sent = moments(self.dialog, before, self.most)
        if before is None and number is not None and sent and number < sent[0].generation.pk:
            self.before = number + 1
            sent = moments(self.dialog, self.before, self.most)
        return [*sent, self._next] if self._next is not None and self.before is None else sent

    @property
    def older(self) -> str:
        """Return the key of the oldest call that is shown if there may be older ones, or else an empty text."""
        calls = [moment.key for moment in self.visible if not moment.is_next]
        return calls[0] if len(calls) == self.most else ""

    @cached_property
    def marks(self) -> dict[str, list[Act]]:
        return marks_of(self.page, self.visible, self.before)

    @property
    def drawing(self) -> Drawing:
        return draw(self.visible, self.marks)

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
        rows = list(self.dialog.generations.select_related("snapshot").filter(pk=_number(key) or 0))
        if not rows:
            raise Http404
        return moments_of(rows)[0]

    @property
    def acts(self) -> list[Act]:
        """Return what happened before this moment or in it."""
        return self.marks.get(self.moment.key, []) if self.moment else []

    @property
    def parts(self) -> tuple[Part, ...]:
        moment = self.moment
        return parts_of(moment.shares, moment.tokens, moment.reserve or 0, moment.window) if moment else ()

    def _request(self, moment: Moment) -> SentRequest:
        return SentRequest("", self._next_pieces) if moment.is_next else sent_request(moment.generation)

    @cached_property
    def request(self) -> SentRequest | None:
        return self._request(self.moment) if self.moment else None

    @cached_property
    def found(self) -> Page[tuple[int, Piece]]:
        """Return the pieces of one page with their places in the request."""
        pieces = self.request.pieces if self.request else ()
        return Paginator([*enumerate(pieces)], PIECES).get_page(self.part)

    @cached_property
    def makers(self) -> dict[str, int]:
        """Return the rewrite that wrote each summary."""
        return makers_of(self.dialog, [piece.text for _, piece in self.found if piece.category == Category.SUMMARY])

    @cached_property
    def sides(self) -> list[Moment]:
        """Return the two moments that are compared, the earlier one first, or nothing."""
        other = self._moment_named(self.beside) if self.beside else None
        return sorted((self.moment, other), key=lambda moment: moment.started_at) if self.moment and other else []

    @cached_property
    def diff(self) -> Diff | None:
        return diff(*(self._request(side).pieces for side in self.sides)) if self.sides else None


def _number(key: str) -> int | None:
    return int(key) if key.isascii() and key.isdecimal() and len(key) < 19 else None
