"""Changes that are tried again after the database was away."""

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

import stamina
from django.db import OperationalError

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def commits(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Repeat a change if the database was away. Lock time-outs and lost connections pass, and the check of the epoch
    makes a repetition safe.

    This is not ``stamina.retry``, because its log line shows all arguments, the conversation among them.
    """

    @functools.wraps(function)
    def repeat(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        with suppress(OperationalError):  # the machinery of a retry is only made when it is needed
            return function(*args, **kwargs)
        for attempt in stamina.retry_context(OperationalError, attempts=4, timeout=8, wait_initial=0.1, wait_max=2.0):
            with attempt:
                return function(*args, **kwargs)
        raise AssertionError("stamina either returns or raises")

    return repeat
