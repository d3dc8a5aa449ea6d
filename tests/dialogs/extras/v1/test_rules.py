"""The rules of ``/v1`` on values: which conversations are the same, how one text is put
together, what a body may say."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialogs.extras.v1.composing import Composer, Restarted, Thoughts
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.exchanges import exchanges_of, without_additions
from dialogs.extras.v1.history import LEADS, Call, ClientMessage, conversation_of, place_system, with_ids_apart
from dialogs.extras.v1.likeness import Fit, fit
from dialogs.extras.v1.messages.request import chat_request_of
from dialogs.extras.v1.notices import NOTICES, is_notice, without_notices
from dialogs.extras.v1.parsing import ChatRequest, chat_request, parse
from dominds.budgets import CONVERSATION_MESSAGES
from dominds.llm.messages import ImagePart, Message, Role
from dominds.llm.providers.parts import in_order
from tests.pixels import coded, picture

COMPACTING, COMPACTED, *_ = NOTICES


def user(text: str) -> ClientMessage:
    return ClientMessage("user", text)


def assistant(text: str) -> ClientMessage:
    return ClientMessage("assistant", text)


# -- the same conversation ---------------------------------------------------------------------------------------------

LONG = "The ship left the harbour of Genoa in the evening, with forty barrels of oil and a cat that nobody had invited."
OTHER = "Nothing that was said here bears on what anybody else has ever asked this program about, in all these years."
THINKING = '<details type="reasoning" done="true">\n<summary>Thought for 2 seconds</summary>\n> hm\n</details>\n'


def fits(messages: list[ClientMessage], stored: list[ClientMessage]) -> Fit | None:
    return fit(exchanges_of(messages), exchanges_of(stored))


def talk(*texts: str) -> list[ClientMessage]:
    """User and assistant take turns."""
    return [(user, assistant)[number % 2](text) for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("message", "stored"),
    [
        ([user("a"), assistant("b")], [user("a"), assistant("b")]),
        ([user(" a\n"), assistant("b ")], [user("a"), assistant("b")]),
        ([user("a"), user("a2"), assistant("b")], [user("a\n\na2"), assistant("b")]),
        ([user("a"), assistant("one\n\ntwo")], [user("a"), assistant("one"), assistant("two")]),
        ([user("a"), assistant(f"one\n\n{COMPACTING}\n\n{COMPACTED}\n\ntwo")], [user("a"), assistant("one two")]),
        ([user("a"), assistant(f"{THINKING}b")], [user("a"), assistant("b")]),
        ([user("a"), assistant("<think>hm</think>b")], [user("a"), assistant("b")]),
        ([user("a"), assistant("b")], [user("a"), ClientMessage("tool", "x", call_id="own"), assistant("b")]),
        ([user("a"), ClientMessage("tool", "…", call_id="1"), assistant("b")], [user("a"), assistant("b")]),
        ([user("a"), assistant(""), user("c")], [user("a"), user("c")]),
    ],
)
def test_these_are_the_same(message: list[ClientMessage], stored: list[ClientMessage]) -> None:
    result = fits(message, stored)
    assert result is not None
    assert result.exact


@pytest.mark.parametrize(
    ("message", "stored"),
    [
        (talk("a", LONG), talk("x", "y", "a", LONG)),  # the head was cut
        (talk("x", LONG)[1:] + talk("a", "b"), talk("v", "w", "x", LONG, "a", "b")),  # in the middle of an exchange
        (talk("Summary: they met.", "Understood.", "a", LONG), talk("v", "w", "x", "y", "a", LONG)),
        ([user("Summary: they met."), *talk("a", LONG)], talk("v", "w", "x", "y", "a", LONG)),
        (talk("a", LONG), talk("<context>a cat</context> a", LONG)),  # retrieval, gone again
        (talk("<user_query>a</user_query>", LONG), talk("a", LONG)),
        (talk("a", LONG[:60] + "…"), talk("a", LONG)),
        (talk("a", "**The** ship left Genoa in the evening with a cat"), talk("a", LONG)),
        (talk("a", "un", "b", "deux"), talk("a", "one", "b", "two")),  # all that the user said
        (talk("a", "b", "x2", "y", "c", LONG), talk("a", "b", "x", "y2", "c", LONG)),  # edited in the middle
        (talk("a", "b", "c", LONG), talk("a", "b", "x", "y", "c", LONG)),  # taken out of the middle
    ],
)
def test_these_go_on_though_they_are_told_otherwise(message: list[ClientMessage], stored: list[ClientMessage]) -> None:
    result = fits(message, stored)
    assert result is not None
    assert not result.exact


@pytest.mark.parametrize(
    ("message", "stored"),
    [
        ([user("a"), assistant("b")], [user("a"), assistant("c")]),
        ([user("a"), assistant("b")], [user("A"), assistant("b")]),
        ([user("a b"), assistant("b")], [user("ab"), assistant("b")]),
        ([assistant("summary"), user("c")], [user("a"), assistant("b"), user("c")]),
        ([user("a"), assistant("b")], [user("a"), assistant("b"), user("c"), assistant("d")]),
        ([user("a"), assistant("b"), user("c"), assistant("d")], [user("a"), assistant("b")]),
        (talk("a", LONG), talk("a", OTHER)),
        (talk("Hi", "Hello!"), talk("<context>of somebody else</context> Hi", "Hello!")),
        (talk("a", LONG, "b", "ok"), talk("a", LONG, "c", "ok")),  # alike at first, and the same short answer
        (talk("Thanks", "Welcome"), talk("x", LONG, "Thanks", "Welcome")),  # many conversations end so
        (talk("v", "w", "x", "y", "a", LONG), talk("s", "t", "a", LONG)),  # one exchange in common, by chance
        (talk("a", LONG), talk("a", LONG, "b", OTHER)),  # from an older place
    ],
)
def test_these_are_not(message: list[ClientMessage], stored: list[ClientMessage]) -> None:
    assert fits(message, stored) is None


@given(st.lists(st.sampled_from("<>/adeilst hnk"), max_size=40).map("".join))
def test_an_answer_of_tags_keeps_all_but_whole_elements(text: str) -> None:
    assert without_additions(f"{text}<details>hm</details>x").endswith("x")
    assert without_additions(f"{text} yes") == f"{text} yes" or "</" in text


def test_hostile_texts_are_judged_at_once() -> None:
    opened, repeated = "<details>" * 110_000, "a " * 500_000
    started = time.thread_time()
    assert without_additions(opened) == opened
    assert without_additions(f"{opened}</think>x") == f"{opened}</think>x"
    assert without_additions(f"{opened}</details>x") == "x"
    assert fits(talk(f"{repeated}x", LONG), talk(f"{repeated}y", LONG)) is None
    assert fits(talk("a" * 200_000, LONG), talk("a" * 900_000, LONG)) is None
    many = talk(*(f"message {number}" for number in range(100_000)))
    result = fits(many, many)
    assert result is not None
    assert result.exact
    assert time.thread_time() - started < 10


def test_new_is_the_newest_message_or_the_last_results() -> None:
    result = conversation_of([user("a"), assistant("b"), user("c")])
    assert (result.before, result.message, result.results) == ((user("a"), assistant("b")), "c", ())
    results = (ClientMessage("tool", "x", call_id="1"), ClientMessage("tool", "y", call_id="2"))
    result = conversation_of([user("a"), assistant(""), *results])
    assert (result.before, result.results) == ((user("a"), assistant("")), results)
    assert result.whole == result.before
    result = conversation_of([user("a"), assistant("b"), user("c"), user("d")])
    assert (result.before, result.ahead, result.message) == ((user("a"), assistant("b")), (user("c"),), "d")


def system(text: str) -> ClientMessage:
    return ClientMessage("system", text)


def test_a_system_message_follows_the_turn_that_it_followed() -> None:
    """Of a dialog that holds more than its client knows: a round of the agent's own tool, 4 and 5,
    and calls of the client's."""
    turns = [
        (1, "user", ""),
        (2, "assistant", ""),
        (3, "user", ""),
        (4, "assistant", ""),
        (5, "tool", "own"),
        (6, "assistant", ""),
        (7, "user", ""),
        (8, "assistant", ""),
        (9, "tool", "c1"),
    ]
    result = ClientMessage("tool", "x", call_id="c1")
    messages = [
        system("before all"),
        user("a"),
        assistant("b"),
        system("behind b"),
        user("c"),
        assistant("d"),
        system("behind d"),
        user("e"),
        system("behind e"),
        assistant(""),
        result,
        system("behind the result"),
    ]
    whole = conversation_of(messages)
    assert (whole.before, whole.results) == (
        tuple(answer for answer in messages[:-2] if answer.role != "system"),
        (result,),
    )
    assert place_system(whole.system, turns) == [
        (0, "before all"),
        (2, "behind b"),
        (6, "behind d"),
        (7, "behind e"),
        (9, "behind the result"),
    ]
    cut = conversation_of([system("a summary"), *messages[6:]])
    assert place_system(cut.system, turns)[0] == (6, "a summary"), (
        "where the head was cut, it stands before what is told"
    )
    assert place_system(cut.system, ()) == [(0, one.text) for one in cut.system]


@given(st.text(alphabet="ab \n.C", max_size=30), st.sampled_from(NOTICES), st.text(alphabet="ab \n", max_size=30))
def test_notices_are_taken_out_as_whole_lines_only(before: str, notice: str, after: str) -> None:
    assert without_notices(f"{before}\n{notice}\n{after}") == f"{before}\n{after}"
    assert without_notices(f"x {notice} y") == f"x {notice} y"


def test_the_notices_of_extensions_are_taken_out_whatever_they_name() -> None:
    begins = "Side dialog hut-2 begins: “Find {the} hut.”"
    assert is_notice(begins) and not is_notice(f"{begins} And so it did.") and not is_notice("Side dialog begins: “”")
    assert without_notices(f"I ask.\n\n{begins}\n\nIt is Heron.") == "I ask.\n\n\nIt is Heron."
    assert without_notices(f"It said: {begins}") == f"It said: {begins}"


# -- composing ---------------------------------------------------------------------------------------------------------

parts = st.lists(st.tuples(st.text(min_size=1, max_size=40), st.lists(st.integers(0, 40), max_size=6)), max_size=5)


@given(parts)
def test_whatever_drafts_come_the_text_is_the_turns_each_once(turns: list[tuple[str, list[int]]]) -> None:
    with_live_text, without = Composer(), Composer()
    event, expected = "", ""
    for generation, (text, cuts) in enumerate(turns, 1):
        for cut in sorted(min(cut, len(text)) for cut in cuts):
            event += with_live_text.live_text(generation, 0, text[:cut])
        event += with_live_text.turn(generation, text)
        event += with_live_text.live_text(generation, 0, text)  # late, and so old
        expected += without.turn(generation, text)
    assert event == expected
    assert expected.replace("\n", "") == "".join(text for text, _ in turns).replace("\n", "")


def test_a_lost_attempt_goes_on_where_the_next_says_the_same() -> None:
    composer = Composer()
    assert composer.live_text(1, 0, "Hello wor") == "Hello wor"
    assert composer.live_text(2, 0, "Hello") == ""
    assert composer.live_text(2, 5, " world") == "ld"
    assert composer.turn(2, "Hello world!") == "!"


def test_an_attempt_that_says_something_else_cannot_be_gone_on_with() -> None:
    composer = Composer()
    composer.live_text(1, 0, "Hello")
    with pytest.raises(Restarted):
        composer.live_text(2, 0, "Good day")


@given(parts)
def test_whatever_drafts_come_each_thought_is_there_once(turns: list[tuple[str, list[int]]]) -> None:
    thoughts, event = Thoughts(), ""
    for generation, (text, cuts) in enumerate(turns, 1):
        for cut in sorted(min(cut, len(text)) for cut in cuts):
            event += thoughts.piece(generation, 0, text[:cut])
        event += thoughts.piece(generation, 0, text) + thoughts.piece(generation, 0, text)
    assert event == "\n\n".join(text for text, _ in turns)


def test_a_lost_attempt_does_not_keep_the_next_from_thinking_otherwise() -> None:
    thoughts = Thoughts()
    assert thoughts.piece(1, 0, "I say yes") == "I say yes"
    assert thoughts.piece(1, 20, "of course") == "", "a gap is left to the turn"
    assert thoughts.piece(2, 0, "I say no") == "\n\nI say no"
    assert thoughts.piece(1, 9, ", I think") == "", "late, and so old"


def test_notices_stand_on_their_own_lines_and_sentences_go_on() -> None:
    composer = Composer()
    event = composer.turn(1, "The answer is", goes_on=True) + composer.notice(COMPACTING) + composer.notice(COMPACTED)
    event += composer.turn(2, " forty-two.")
    assert event == f"The answer is\n\n{COMPACTING}\n\n{COMPACTED}\n\n forty-two."
    assert "".join(without_notices(event).split()) == "Theanswerisforty-two."


# -- parsing -----------------------------------------------------------------------------------------------------------

PIXEL = f"data:image/png;base64,{coded(picture())}"
SEEN = {"type": "image_url", "image_url": {"url": PIXEL}}


def test_images_keep_their_place_behind_a_name_and_beside_messages_that_waited() -> None:
    """Several messages of the user's that an answer waits for are stored as one."""
    content = [SEEN, {"type": "text", "text": "One"}, SEEN, {"type": "text", "text": "Two"}, SEEN]
    named = {"role": "user", "name": "Ada", "content": content}
    request = parse(orjson.dumps({"model": "a", "messages": [named, {**named, "name": "user"}]}))
    (first, second) = request.messages
    assert [(message.text, [file.at for file in message.attached]) for message in (first, second)] == [
        ("Ada: One\nTwo", [0, 8, None]),
        ("One\nTwo", [0, 3, None]),
    ]
    text, files = conversation_of(request.messages).as_one()
    stored = ImagePart("image/png")
    whole = Message(Role.USER, text, parts=tuple(replace(stored, at=file.at) for file in files))
    said = [piece if isinstance(piece, str) else "" for piece in in_order(whole)]
    assert said == ["", "Ada: One", "", "Two", "", "", "One", "", "Two", ""]


HI = {"model": "coder", "messages": [{"role": "user", "content": "Hi"}]}
TOOL = {"type": "function", "function": {"name": "weather"}}


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": None}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}, "messages"),
        ({"messages": [{"role": "system", "content": "a"}]}, "messages"),
        ({"messages": [{"role": "wizard", "content": "a"}]}, "messages[0].role"),
        ({"messages": ["Hi"]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "a\0"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "user", "content": "a", "name": 5}]}, "messages[0].name"),
        ({"messages": [{"role": "user", "content": "a", "name": "b" * 65}]}, "messages[0].name"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL, "detail": "all"}}]}
                ]
            },
            "messages[0].content[0].image_url.detail",
        ),
        ({"n": 2}, "n"),
        ({"stream": "yes"}, "stream"),
        ({"include_reasoning": "yes"}, "include_reasoning"),
        ({"user": 5}, "user"),
        ({"user": "a", "safety_identifier": "b" * 201}, "safety_identifier"),
        ({"stream_options": 1}, "stream_options"),
        ({"metadata": {"notices": "loud"}}, "metadata.notices"),
        ({"tools": [{"type": "magic"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(change: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse(orjson.dumps(HI | change))
    assert (refused.value.status, refused.value.param) == (400, param)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'"Hi"', b"\xff"])
def test_a_body_that_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(ApiError) as refused:
        parse(raw)
    assert refused.value.status == 400


@pytest.mark.parametrize("read", [chat_request, chat_request_of])
def test_more_messages_than_a_transaction_should_store_are_refused(
    read: Callable[[dict[str, Any]], ChatRequest],
) -> None:
    """The body's bound let a million of them through, and all others waited while they were stored."""
    texts = [{"role": "user", "content": "a"}]
    assert (
        len(read({"model": "a", "max_tokens": 9, "messages": texts * CONVERSATION_MESSAGES.most}).messages)
        == CONVERSATION_MESSAGES.most
    )
    for number in (CONVERSATION_MESSAGES.most + 1, 1_000_000):
        with pytest.raises(ApiError, match="DOMINDS_CONVERSATION_MESSAGES") as refused:
            read({"model": "a", "max_tokens": 9, "messages": texts * number})
        assert refused.value.status == 400


def test_first_system_message_is_instructions_without_notices() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": "Be polite."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": f"{COMPACTING}\n\nyes"},
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "c"},
    ]
    result = parse(orjson.dumps(HI | {"messages": messages}))
    assert result.instructions == "Be kind."
    assert [(answer.role, answer.text.strip()) for answer in result.messages] == [
        ("system", "Be polite."),
        ("user", "a\nb"),
        ("assistant", "yes"),
        ("system", "Be brief."),
        ("user", "c"),
    ]
    assert place_system(
        conversation_of(result.messages).system, [(5, "user", ""), (6, "assistant", ""), (7, "user", "")]
    ) == [(LEADS, "Be polite."), (6, "Be brief.")]
    in_another_protocol = chat_request(HI | {"messages": messages}, instructions_end=2)
    assert in_another_protocol.instructions == "Be kind.\n\nBe polite."


def test_a_system_message_behind_an_answer_is_answered() -> None:
    """As NextChat asks for a summary."""
    texts = [("system", "Be kind."), ("user", "a"), ("assistant", "b"), ("system", "Sum this up.")]
    result = parse(orjson.dumps(HI | {"messages": [{"role": role, "content": text} for role, text in texts]}))
    assert [(one.role, one.text) for one in result.messages] == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "Sum this up."),
    ]


def test_who_speaks_stands_before_what_they_say() -> None:
    """But for the agent, which the dialog names, and for a name that is the role again."""
    messages = [
        {"role": "system", "name": "example", "content": "Hello."},
        {"role": "user", "name": "Ada", "content": "Hi"},
        {"role": "assistant", "name": "coder", "refusal": "No."},
        {"role": "user", "name": "Ben", "content": [{"type": "text", "text": "Why?"}]},
        {"role": "user", "name": "user", "content": "Go on"},
    ]
    result = parse(orjson.dumps(HI | {"messages": messages}))
    assert [result.instructions, *(answer.text for answer in result.messages)] == [
        "example: Hello.",
        "Ada: Hi",
        "No.",
        "Ben: Why?",
        "Go on",
    ]


@pytest.mark.parametrize(
    ("choice", "required"),
    [
        (None, ""),
        ("auto", ""),
        ("none", "-"),
        ("required", "weather"),
        ({"type": "function", "function": {"name": "weather"}}, "weather"),
    ],
)
def test_a_tool_choice_is_honoured(choice: Any, required: str) -> None:
    assert parse(orjson.dumps(HI | {"tools": [TOOL], "tool_choice": choice})).required_tool == required


# -- calls with the same id --------------------------------------------------------------------------------------------

IDS = st.sampled_from(["a", "b", "a~1"])
LOOPS = st.lists(st.lists(IDS, min_size=1, max_size=3), min_size=1, max_size=4)


@given(loops=LOOPS)
def test_each_call_gets_its_own_id_and_its_result_the_same(loops: list[list[str]]) -> None:
    """Each loop: an answer with calls, then a result for each of them in order."""
    history = []
    for ids in loops:
        history.append(ClientMessage("assistant", "", tuple(Call(one, "look", "{}") for one in ids)))
        history += [ClientMessage("tool", "dark", call_id=one) for one in ids]
    apart = with_ids_apart(history)
    calls = [call.id for message in apart for call in message.calls]
    assert len(set(calls)) == len(calls)
    assert [message.call_id for message in apart if message.role == "tool"] == calls
    assert calls[-1] == loops[-1][-1], "the newest keeps its id, by which its dialog is found"
    assert with_ids_apart(apart) == apart
