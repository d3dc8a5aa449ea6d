import logging

from dialogs.extension import Extension, Piece
from dialogs.models import Question
from waiting_times.waiting import minutes_waited

log = logging.getLogger(__name__)


def note(question: Question) -> None:
    """Log how long a question waited. Called inside the change that closes it, so this must be quick."""
    log.info("A question waited for %.1f minutes.", minutes_waited(question))


EXTENSION = Extension(
    name="waiting_times",
    summary="How long questions waited for a person.",
    pages="waiting_times.urls",
    routers=("waiting_times.api.router",),
    pieces=(Piece("navigation", "waiting_times/_link.html"),),
    question_closed=note,
)
