"""What a client of ``/v1`` is told while its answer is made."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from dialogs.actions import messages
from dialogs.extras.v1.relay import _read
from dialogs.extras.v1.runs import Run
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("moment", ["dialogs_event", "dialogs_generation"])
def test_an_answer_that_is_made_while_we_look_is_nobody_elses(script: Script, moment: str) -> None:
    """Its text would be left out, and the client's next request, which lacks it, would begin another dialog."""
    dialog = make_dialog()
    seq = messages.post_message(dialog.pk, "Hi").seq
    run = Run(dialog.pk, dialog.agent_id, dialog.owner_id, seq, queued=False, after_event=0, after_generation=0)
    answered = []

    def answer_after(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        outcome = execute(sql, *rest)
        if f'FROM "{moment}"' in sql and not answered:
            answered.append(True)
            with ThreadPoolExecutor(1) as elsewhere:
                elsewhere.submit(answer).result()
        return outcome

    def answer() -> None:
        drive(dialog.pk)
        connection.close()

    with connection.execute_wrapper(answer_after):
        news = _read(run, 0)
    assert answered
    texts = {event["data"]["generation"] for event in news.events if event["data"].get("role") == "assistant"}
    assert texts <= news.ours
