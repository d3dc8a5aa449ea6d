"""Thinking between tags is parted from the answer, wherever the chunks are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.providers.think_tags import ANSWERS, CLOSING, FENCE, ThinkTags
from dominds.llm.stream import ReasoningDelta, Rethought, TextDelta

CASES = [
    ("Plain.", "", "Plain."),
    ("<think>hm</think>Ok", "hm", "Ok"),
    ("\n <think>\nhm\n</think>\n\nOk", "hm\n", "Ok"),
    ("<mm:think>hm</mm:think>Ok", "hm", "Ok"),
    ("[THINK]hm[/THINK]Ok", "hm", "Ok"),
    ("<reasoning>hm</reasoning>Ok", "hm", "Ok"),
    ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Ok", "hm", "Ok"),
    ("<|START_THINKING|>hm<|END_THINKING|>Ok", "hm", "Ok"),
    ("<think></think>Ok", "", "Ok"),
    ("<think>a</think><think>b</think>Ok", "ab", "Ok"),
    ("<think>a < b </thin</think>Ok", "a < b </thin", "Ok"),
    ("<think>never closed", "never closed", ""),
    ("<think>hm</think>", "hm", ""),
    ("<thing>Ok", "", "<thing>Ok"),
    ("<th", "", "<th"),
    ("Use <think> so: <think>x</think>", "", "Use <think> so: <think>x</think>"),
    ("<think>hm</think>It says <think>x</think>", "hm", "It says <think>x</think>"),
    ("  indented", "", "  indented"),
    ("hm</think>Ok", "hm", "Ok"),
    ("hm\n</think>\n\nOk", "hm\n", "Ok"),
    ("</think>\n\nOk", "", "Ok"),
    ("hm</mm:think>Ok", "hm", "Ok"),
    ("hm[/THINK]Ok", "hm", "Ok"),
    ("hm</think>", "hm", ""),
    ("Close it by `</think>` then.", "", "Close it by `</think>` then."),
    ("```\n</think>\n```", "", "```\n</think>\n```"),
    ("hm</think>It says </think>", "hm", "It says </think>"),
    (" \n", "", ""),
    ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Ok", "hm", "Ok"),
    (
        "<|start|>assistant<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Ok",
        "hm",
        "Ok",
    ),
    ("<|channel|>final<|message|>Ok", "", "Ok"),
    ("<|start|>assistant<|channel|>final<|message|> Ok", "", " Ok"),
]


def parted(pieces: list[str], held: int = 0) -> tuple[str, str]:
    tags = ThinkTags(held)
    thought = text = ""
    for event in [event for piece in pieces for event in tags.feed(piece)] + list(tags.close()):
        match event:
            case Rethought():
                assert text
                thought, text = text, ""
            case ReasoningDelta(piece):
                assert piece
                thought += piece
            case TextDelta(piece):
                assert piece
                text += piece
    return thought, text


@pytest.mark.parametrize(("text", "thought", "answer"), CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("held", [0, 5, 1000])
def test_thinking_and_answer_are_parted(text: str, thought: str, answer: str, size: int, held: int) -> None:
    assert parted([text[at : at + size] for at in range(0, len(text), size)], held) == (thought, answer)


def test_held_text_is_never_taken_back() -> None:
    tags = ThinkTags(held=10)
    assert list(tags.feed("hm, ")) == list(tags.feed("hm")) == []
    assert list(tags.feed("</think>Ok")) == [ReasoningDelta("hm, hm"), TextDelta("Ok")]


PIECES = [*CLOSING, *CLOSING.values(), *ANSWERS, "</thi", "<", "think>", " ", "\n", "word", "`", FENCE]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from([0, 5, 1000]), st.data())
def test_where_the_chunks_are_cut_does_not_matter(drawn: list[str], held: int, data: st.DataObject) -> None:
    text = "".join(drawn)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)))))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True) if text[start:end]]
    assert parted(pieces, held) == parted([text] if text else [])
