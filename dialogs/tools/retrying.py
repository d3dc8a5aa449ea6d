"""Retries of a failed tool, by the retry policies of context breaking."""

from collections.abc import Callable
from typing import TypeVar

import structlog
from django.db import OperationalError

from dialogs.store.change import LeaseLost
from dialogs.tools.tool import AsksPerson, Invocation, Stopped, Tool
from remediation.config import RetryPolicy

log = structlog.get_logger(__name__)


Answer = TypeVar("Answer")


def run_with_retries(
    run: Callable[[], Answer],
    tool: Tool,
    invocation: Invocation,
    policy_for: Callable[[str], RetryPolicy],
    pause: Callable[[float], bool],
) -> Answer:
    """Run the tool, and raise its last failure.

    A repeatable tool that raises runs again, as often as its policy says, which is looked up only then. ``pause``
    waits, and returns False if a person has pressed stop or the lease was lost. A result with ``failed`` is an answer,
    and is not tried again. Errors of the transaction around a tool are raised at once, since they are not the tool's.
    """
    attempt = 1
    while True:
        try:
            return run()
        except Exception as error:
            if isinstance(error, (Stopped, AsksPerson)) or (
                tool.inside is not None and isinstance(error, (LeaseLost, OperationalError))
            ):
                raise
            if not tool.repeatable or attempt >= (policy := policy_for(tool.name)).max_attempts:
                raise
            delay = policy.delay_seconds(attempt)
            log.warning(
                "tool_retried",
                tool=tool.name,
                dialog_id=str(invocation.dialog_id),
                attempt=attempt,
                delay_seconds=delay,
                error=str(error),
            )
            if not pause(delay):
                raise
            attempt += 1
