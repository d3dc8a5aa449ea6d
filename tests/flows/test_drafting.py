"""The package that an operator is offered, and that the countdown uses, as drafted from a
dialog that really happened."""

from pathlib import Path
from typing import Any

import pytest

from dialogs.actions import questions
from dialogs.context.package_draft import draft_package
from tests.doubles.brains import Call, Reply, Scripted
from tests.flows.conftest import Serve, dialog_with, go_on, say

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_suspended_dialog_offers_a_package_to_go_on_from(serve: Serve, settings: Any) -> None:
    (Path(settings.WORKSPACE_DIR) / "orders.csv").write_text("id;colour\n1;red\n")
    server = serve(context_length=128_000)
    server.brain = Scripted(
        Reply(calls=(Call("read_file", {"path": "orders.csv"}), Call("read_file", {"path": "missing.csv"}))),
        Reply(calls=(Call("ask_human", {"question": "Which separator?"}),)),
        Reply("I have read orders.csv: 1 order, separator is a semicolon.", usage=(120_000, 9)),
        Reply("no", usage=(120_000, 9)),
    )
    dialog = dialog_with(server, tools=["read_file"])
    say(dialog, "Import orders.csv. Never touch invoices.")
    questions.answer(dialog.questions.get().pk, dialog.owner, "A semicolon")
    go_on(dialog)
    say(dialog, "How many are red?")
    assert dialog.state == "suspended"
    package = dialog.questions.get(state="open").draft
    assert package == draft_package(dialog)
    for words in (
        "Goal and scope\n- Import orders.csv. Never touch invoices.",
        "1 order, separator is a semicolon",
        "Asked: Which separator? - the person answered: A semicolon",
        "Rule: Never touch invoices.",
        "read_file, 2 times: orders.csv, missing.csv",
        "There is no 'missing.csv' in the workspace",
        "Answer the message that follows word for word: How many are red?",
    ):
        assert words in package
