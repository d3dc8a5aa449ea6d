"""Changes that are repeated after the database was away, or put off while somebody else has locked their row."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import ParamSpec, TypeVar

import stamina
import structlog
from django.db import OperationalError

from dominds.db.outcome import is_locked_out

log = structlog.get_logger(__name__)
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def commits(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Repeat a change if the database was away. Lock time-outs and lost connections are transient, and the check of
    the epoch makes a repetition safe.

    This is not ``stamina.retry``, because its log line shows all arguments, the conversation among them.
    """

    @functools.wraps(function)
    def repeat(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        with suppress(OperationalError):  # stamina's objects are made only for a retry
            return function(*args, **kwargs)
        for attempt in stamina.retry_context(OperationalError, attempts=4, timeout=8, wait_initial=0.1, wait_max=2.0):
            with attempt:
                return function(*args, **kwargs)
        raise AssertionError("stamina either returns or raises")

    return repeat


@contextmanager
def leaving_what_is_locked(**whose: object) -> Iterator[None]:
    """Skip one row of a list that is worked through periodically if somebody has locked the row. The next pass takes
    it, and the other rows need not wait.
    """
    try:
        yield
    except OperationalError as error:
        if not is_locked_out(error):
            raise
        log.warning("left_while_locked", error=str(error), **whose)
