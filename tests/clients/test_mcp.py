"""MCP clients of other makers use the tools of ``/mcp``: a question is answered, an archived message is read."""

import json
from pathlib import Path
from typing import Any

import pytest

from dialogs.actions import messages, questions
from remediation.models import RemovedUnit
from tests.clients import programs
from tests.clients.programs import Place, Turns
from tests.clients.rig import CLAUDE, CODER, Rig
from tests.dialogs.factories import RewriteFactory

NAMED = "mcp__dominds__{}".format  # alike in both
SEARCH = (
    f'Call ToolSearch {{"query": "select:{NAMED("answer_question")},{NAMED("read_archived_unit")}", "max_results": 5}}'
)
CLIENTS: dict[str, tuple[Turns, str, list[str]]] = {
    "codex": (programs.codex, CODER, []),
    "claude code": (programs.claude_code, CLAUDE, [SEARCH]),
}


@pytest.mark.parametrize(("turns", "model", "before"), CLIENTS.values(), ids=CLIENTS)
def test_a_question_is_answered_and_an_archived_message_read(
    served: Rig, turns: Turns, model: str, before: list[str], tmp_path: Path
) -> None:
    person, key = served.key()
    dialog = messages.create_dialog(person, model)
    unit = RemovedUnit.objects.create(
        dialog=dialog,
        run=RewriteFactory.create(dialog=dialog),
        unit_id="turn-1",
        kind="message",
        role="user",
        est_tokens=9,
        text="The ship is called Aurora.",
    )
    question = questions.ask_from_outside(person, "What shall we call it?", dialog.pk)

    def call(tool: str, **arguments: Any) -> str:
        return f"Call {NAMED(tool)} {json.dumps(arguments)}"

    texts = [
        *before,
        call("answer_question", question=str(question.pk), text="Heron"),
        call("read_archived_unit", dialog=str(dialog.pk), unit=unit.pk),
    ]
    place = Place(tmp_path, served.stack.base_url, key, model, mcp=f"{served.stack.base_url}/mcp")
    answers = turns(place, texts)
    question.refresh_from_db()
    assert (question.state, question.answer) == ("answered", "Heron")
    assert "The ship is called Aurora." in answers[-1]
