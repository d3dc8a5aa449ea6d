"""Retries of a tool that failed, as context breaking's retry policies say."""

from collections.abc import Callable
from typing import TypeVar

import structlog
from django.db import OperationalError

from dialogs.store.change import LeaseLost
from dialogs.tools.tool import Invocation, Stopped, Tool
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
    """``run`` the tool. A repeatable one that raises runs again, as often as its policy says, which is looked up then.

    ``pause`` waits for some seconds and says whether to go on: a person may press stop meanwhile. The last failure is
    raised; a result that says ``failed`` is an answer, and is not tried again. A transaction that could not be opened
    is no failure of the tool inside it.
    """
    attempt = 1
    while True:
        try:
            return run()
        except Exception as error:
            if isinstance(error, Stopped) or (
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
