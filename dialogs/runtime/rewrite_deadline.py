"""A time limit for one rewrite, checked whenever it calls a function of its toolbox, as all long ones do."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec, TypeVar

from dominds.budgets import REWRITE_SECONDS
from remediation.context import Toolbox

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class RewriteTooLong(Exception):
    """Raised when the time for a rewrite is up."""


def within(toolbox: Toolbox, seconds: float) -> Toolbox:
    """Return a toolbox whose functions raise ``RewriteTooLong`` once ``seconds`` have passed from now."""
    deadline = time.monotonic() + seconds

    def limit(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
        def call(*arguments: Given.args, **options: Given.kwargs) -> Answer:
            if time.monotonic() >= deadline:
                raise RewriteTooLong(
                    f"The rewrite took more than {seconds:g} s. {REWRITE_SECONDS.setting} sets this limit."
                )
            return function(*arguments, **options)

        return call

    assistant = toolbox.assistant and replace(toolbox.assistant, ask=limit(toolbox.assistant.ask))
    return replace(
        toolbox,
        count=limit(toolbox.count),
        summarise=limit(toolbox.summarise),
        relevance=limit(toolbox.relevance),
        similarity=limit(toolbox.similarity),
        report=limit(toolbox.report),
        assistant=assistant,
    )
