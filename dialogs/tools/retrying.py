"""Trying a tool again after it failed, as context breaking's retry policies say."""

from collections.abc import Callable

import structlog

from dialogs.context.tool_calls import Result
from dialogs.tools.tool import Invocation, Tool
from remediation.config import RetryPolicy

log = structlog.get_logger(__name__)


def run_with_retries(tool: Tool, invocation: Invocation, policy: RetryPolicy, pause: Callable[[float], bool]) -> Result:
    """Run an ``outside`` tool. A repeatable one that raises runs again, ``policy.max_attempts`` times at most.

    ``pause`` waits for some seconds and says whether to go on: a person may press stop meanwhile. The last failure is
    raised; a result that says ``failed`` is an answer, and is not tried again.
    """
    assert tool.outside is not None
    attempt = 1
    while True:
        try:
            return tool.outside(invocation)
        except Exception as error:
            if not tool.repeatable or attempt >= policy.max_attempts:
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
