"""Answers that end otherwise than by their own last word: kept as they came, and said to be so."""

from dataclasses import replace
from typing import Any

import pytest

from dialogs.runtime.stream_reply import LONGEST_OUTPUT, NOTICES, SILENT, WINDOW_IS_FULL
from dominds.llm.stream import FinishReason
from tests.doubles.brains import Call, Reply, Scripted
from tests.flows.conftest import Minds, Serve, dialog_with, say
from tests.flows.doubled import dialog_at, start

pytestmark = pytest.mark.django_db(transaction=True)

OPUS = "anthropic/claude-opus-5-5"
ENDINGS = [
    (Reply("Half an", finish="max_tokens"), NOTICES[FinishReason.LENGTH]),
    (Reply("", reasoning="Hm.", finish="max_tokens"), NOTICES[FinishReason.THOUGHT_ONLY]),
    (Reply("A long", finish="model_context_window_exceeded"), NOTICES[FinishReason.WINDOW_EXCEEDED]),
    (Reply("", finish="refusal"), NOTICES[FinishReason.REFUSAL]),
    (Reply("So far.", finish="pause_turn"), NOTICES[FinishReason.PAUSE]),
    (Reply("So far.", finish="compaction"), NOTICES[FinishReason.COMPACTION]),
    (Reply("", reasoning="All of it."), SILENT),
    (Reply("Whole."), ""),
]


def test_an_answer_that_is_not_whole_says_why(minds: Minds, monkeypatch: Any, client: Any) -> None:
    with start(OPUS, Scripted(*(reply for reply, _ in ENDINGS))) as double:
        dialog = dialog_at(double, minds, monkeypatch, OPUS)
        for reply, notice in ENDINGS:
            say(dialog, "Go on")
            newest = dialog.turns.order_by("-seq").values_list("role", "text")[: 2 if notice else 1]
            assert list(newest) == [*([("notice", notice)] if notice else []), ("assistant", reply.text)]
            assert (dialog.state, dialog.failure) == ("idle", "")
        sent = str(double.bodies)
        assert double.refusals == []
    notices = [notice for _, notice in ENDINGS if notice]
    assert list(dialog.turns.filter(role="notice").order_by("seq").values_list("text", flat=True)) == notices
    assert not [notice for notice in notices if notice in sent]
    client.force_login(dialog.owner)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert "refused to answer." in page and "ended without a word." in page


@pytest.mark.parametrize(
    ("reply", "notice"),
    [
        (Reply("Half an", finish="length"), NOTICES[FinishReason.WINDOW_EXCEEDED]),
        (Reply("", reasoning="Hm.", finish="length"), NOTICES[FinishReason.WINDOW_EXCEEDED]),
        (Reply(calls=(Call("clear_mind", '{"cle'),), finish="length"), WINDOW_IS_FULL),
    ],
)
@pytest.mark.parametrize("total", [1_700, 2_047])
def test_a_server_that_says_length_at_its_windows_end(serve: Serve, reply: Reply, notice: str, total: int) -> None:
    """Most servers have one word for both ends; only where the window has room do settings allow more."""
    server = serve(context_length=2_048)
    server.brain = Scripted(replace(reply, usage=(total - 30, 30)), Reply("Whole."), Reply("Whole."))
    dialog = dialog_with(server)
    say(dialog, "Go on")
    told = dialog.turns.filter(role="notice").values_list("text", flat=True)[0]
    assert told.endswith(notice if total > 2_000 else LONGEST_OUTPUT)
