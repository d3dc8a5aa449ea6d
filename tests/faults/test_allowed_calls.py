"""A worker that dies after a person allowed a call: it runs once at most, and nobody is asked again."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from dialogs.actions import messages, questions
from dialogs.models import Agent, Dialog
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog
from tests.dialogs.tools.mcp_http import mcp_over_http
from tests.dialogs.vanishing import expire
from tests.faults.effort import DEEP
from tests.faults.invariants import breaches
from tests.faults.processes import Forked
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)

EVERY = 1 if DEEP else 15


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with mcp_over_http() as url:
        yield url


@pytest.fixture
def stamps(tmp_path: Path) -> Path:
    """What the tool leaves behind."""
    return tmp_path / "stamps"


def allowed(script: Script, server: str, stamps: Path, seconds: float = 0) -> Dialog:
    """A dialog in which a person has just allowed the call. Only processes of their own drive it: a client of the
    server's that this one had would be broken after a fork."""
    stamps.write_text("")
    call = {"name": "desk_stamp", "arguments": {"path": str(stamps), "seconds": seconds}}
    script({"match": "^Hi$", "tool_calls": [call]}, {"text": "Done."})
    (stamps.parent / "minds" / "mcp.yaml").write_text(yaml.safe_dump({"servers": {"desk": {"url": server}}}))
    dialog = make_dialog(tools=["mcp:desk"], tool_approval=Agent.ToolApproval.CHANGES)
    messages.post_message(dialog.pk, "Hi")
    Forked(partial(drive, dialog.pk), at=0).wait()
    assert stamps.read_text() == ""
    questions.answer(dialog.questions.get().pk, dialog.owner, "Allow")
    return dialog


def end_of(dialog: Dialog) -> str:
    """The status of the call, after other workers have brought the dialog to its end."""
    for _ in range(4):
        Dialog.objects.filter(pk=dialog.pk, state__in=["queued", "generating"]).update(wake_at=None)
        if Dialog.objects.get(pk=dialog.pk).lease_owner:
            expire(dialog)
        Forked(partial(drive, dialog.pk), at=0).wait()
        if Dialog.objects.get(pk=dialog.pk).state not in ("queued", "generating"):
            break
    assert breaches([Dialog.objects.get(pk=dialog.pk)]) == []
    assert (Dialog.objects.get(pk=dialog.pk).state, dialog.questions.count()) == ("idle", 1)
    result = dialog.turns.get(role="tool")
    assert result.author == dialog.owner, "it does not say who allowed it"
    return result.status


def test_a_worker_that_dies_at_any_point_after_it(script: Script, server: str, stamps: Path) -> None:
    point, ends = 1, set[tuple[str, int]]()
    died = True
    while died:
        dialog = allowed(script, server, stamps)
        died = Forked(partial(drive, dialog.pk), at=point).wait().killed
        ends.add((end_of(dialog), stamps.read_text().count("stamped")))
        point += EVERY
    assert point > 2 * EVERY, "there are hardly any statements after the answer: was it played at all?"
    assert ends <= {("ok", 1), ("unknown", 0), ("unknown", 1)} and ("ok", 1) in ends


def test_a_worker_that_is_killed_while_the_tool_runs(script: Script, server: str, stamps: Path) -> None:
    dialog = allowed(script, server, stamps, seconds=3)
    worker = Forked(partial(drive, dialog.pk), at=0)
    eventually(lambda: "stamped" in stamps.read_text())
    os.kill(worker.pid, signal.SIGKILL)
    os.waitpid(worker.pid, 0)
    assert (end_of(dialog), stamps.read_text().count("stamped")) == ("unknown", 1)
