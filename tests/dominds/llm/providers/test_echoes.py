"""What is kept of an answer comes back in its order, or not at all."""

from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.messages import Message, Role, ToolCall
from dominds.llm.providers.echoes import Called, Opaque, Owner, Piece, Spoken, replay, serialise

OWNER = Owner.of("anthropic", "m", "a-key", 3)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
answers = st.lists(
    st.one_of(texts, st.just(Called()), st.builds(Opaque, st.dictionaries(texts, texts, max_size=2))), max_size=8
)


def answer_of(pieces: list[str | Called | Opaque], owner: Owner = OWNER) -> Message:
    stored: list[Piece] = [Spoken(len(piece)) if isinstance(piece, str) else piece for piece in pieces]
    calls = tuple(ToolCall(str(at), "one", "{}") for at, piece in enumerate(pieces) if isinstance(piece, Called))
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    return Message(Role.ASSISTANT, text, calls, provider_items=serialise(owner, stored))


@given(answers)
def test_an_answer_with_something_opaque_comes_back_as_it_was(pieces: list[str | Called | Opaque]) -> None:
    back = list(replay(OWNER, answer_of(pieces)))
    if any(isinstance(piece, Opaque) for piece in pieces):
        assert [Called() if isinstance(piece, ToolCall) else piece for piece in back] == pieces
    assert "".join(piece for piece in back if isinstance(piece, str)) == answer_of(pieces).text


@given(answers)
def test_to_anyone_else_only_text_and_calls_go(pieces: list[str | Called | Opaque]) -> None:
    answer = answer_of(pieces)
    strangers = [
        Owner.of("anthropic", "m", "a-key", 4),
        Owner.of("anthropic", "m", "another-key", 3),
        Owner.of("anthropic", "n", "a-key", 3),
        Owner.of("bedrock", "m", "a-key", 3),
    ]
    for stranger in strangers:
        back = list(replay(stranger, answer))
        assert not any(isinstance(piece, Opaque) for piece in back)
        assert "".join(piece for piece in back if isinstance(piece, str)) == answer.text
        assert tuple(piece for piece in back if isinstance(piece, ToolCall)) == answer.tool_calls


def test_the_key_is_not_stored() -> None:
    assert "a-key" not in "".join(answer_of(["x", Opaque({})]).provider_items)


def test_what_is_no_piece_is_passed_over() -> None:
    odd = ("no json", "5", "[]", '{"of": 5}', serialise(OWNER, [Opaque({"type": "thinking"})])[0], '{"item": 5}')
    answer = Message(Role.ASSISTANT, "", provider_items=odd)
    assert list(replay(OWNER, answer)) == [Opaque({"type": "thinking"})]
