"""What writers of answers make of pieces that come in an order of their own."""

from typing import Any
from uuid import UUID

import orjson
import pytest

from dialogs.extras.v1.chat import ChatWriter
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.pieces import Ended, Reasoning, Refusal, Text
from dialogs.extras.v1.responses.answer import ResponseWriter
from dialogs.extras.v1.responses.tools import Tools
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.wire import AnswerPiece, Writer

RUN = Run(UUID(int=1), "a", 1, seq=1, queued=False, after_event=0, after_generation=0)
TEXT = {"type": "output_text", "annotations": [], "logprobs": [], "text": "Well. "}
REFUSED = {"type": "refusal", "refusal": "No."}


def events(writer: Writer, *pieces: AnswerPiece) -> list[dict[str, Any]]:
    written = [event for piece in (*pieces, Ended("stop", (), None, {})) for event in writer.piece(piece)]
    lines = [line for event in written for line in event.splitlines() if line.startswith(b"data: {")]
    return [orjson.loads(line.removeprefix(b"data: ")) for line in lines]


@pytest.mark.parametrize("before", [[], [Text("Well. ")], [Reasoning("Hm."), Text("Well. ")]])
def test_a_refusal_behind_a_text_is_the_second_part_of_one_message(before: list[AnswerPiece]) -> None:
    writer = ResponseWriter({}, Tools(), encrypts=False, run=RUN)
    told = events(writer, *before, Refusal("No."))
    content = [*([TEXT] if before else []), REFUSED]
    assert writer.whole()["output"][-1]["content"] == content
    kinds = [event["type"] for event in told]
    assert kinds.count("response.output_item.added") == len(writer.whole()["output"])
    done = [event for event in told if event["type"] == "response.content_part.done"]
    assert [(event["content_index"], event["part"]) for event in done] == list(enumerate(content))
    (delta,) = (event for event in told if event["type"] == "response.refusal.delta")
    assert (delta["delta"], delta["content_index"]) == ("No.", len(content) - 1)


@pytest.mark.parametrize(("before", "content"), [([], None), ([Text("Well. ")], "Well. ")])
def test_a_refusal_is_no_content_of_a_chat_completion(before: list[AnswerPiece], content: str | None) -> None:
    writer = ChatWriter(ChatRequest("a", ()), RUN)
    told = events(writer, *before, Refusal("No."))
    deltas = [event["choices"][0]["delta"] for event in told]
    assert "".join(delta.get("content", "") for delta in deltas) == (content or "")
    assert [delta["refusal"] for delta in deltas if "refusal" in delta] == ["No."]
    message = writer.whole()["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (content, "No.")
