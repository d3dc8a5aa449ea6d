"""The JSON of a conversation is what writing all of it anew would give, and little of it is written anew."""

from collections.abc import Sequence

import orjson
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.messages import Message, Role
from dominds.llm.providers.message_json import PASSING, MessageJson

messages = st.builds(Message, st.sampled_from([Role.USER, Role.ASSISTANT]), st.text(max_size=3))
steps = st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.lists(messages, max_size=5))


def write(texts: Sequence[Message]) -> bytes:
    return orjson.dumps([[message.role, message.text] for message in texts])[1:-1]


@given(st.lists(steps, max_size=12))
def test_the_json_is_that_of_the_messages(taken: list[tuple[str, int, list[Message]]]) -> None:
    """Each step keeps so many messages of its conversation, as a rewrite may, and says more."""
    text = MessageJson()
    conversations: dict[str, list[Message]] = {"a": [], "b": []}
    for name, kept, more in taken:
        conversations[name] = [*conversations[name][: kept or None], *more]
        assert text.json(name, tuple(conversations[name]), write) == write(conversations[name])


def test_only_what_is_new_or_passing_is_written() -> None:
    written: list[int] = []

    def counted(some: Sequence[Message]) -> bytes:
        written.append(len(some))
        return write(some)

    text, conversation = MessageJson(), [Message(Role.USER, str(number)) for number in range(100)]
    text.json("a", tuple(conversation), counted)
    written.clear()
    text.json("a", (*conversation, Message(Role.USER, "next"), Message(Role.USER, "a reminder")), counted)
    assert sum(written) == 2 + PASSING
