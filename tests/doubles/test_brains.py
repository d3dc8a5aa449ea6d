"""The models behind the doubles."""

import pytest

from remediation.guidance import CLEAR_ONLY, CLEAR_OR_REMIND
from tests.doubles.brains import Call, Message, Prompt, Reply, Scripted, Story, cut, echo

TOOLS = ("read_file", "clear_mind", "add_reminder")


def prompt(text: str, tools: tuple[str, ...] = TOOLS, forced: tuple[str, ...] = ()) -> Prompt:
    return Prompt("model", (Message("user", text),), tools, forced)


def names(reply: Reply) -> list[str]:
    return [call.name for call in reply.calls]


def test_a_script_is_played_in_order_and_its_end_repeats() -> None:
    brain = Scripted(Reply("one"), echo)
    assert [brain(prompt("x")).text for _ in range(3)] == ["one", "You said: x", "You said: x"]


def test_echo_calls_what_it_must() -> None:
    assert names(echo(prompt("x", forced=("read_file",)))) == ["read_file"]


@pytest.mark.parametrize(
    ("heeds", "expected"), [("clear_mind", ["clear_mind"]), ("add_reminder", ["add_reminder"]), ("", [])]
)
def test_a_story_heeds_guidance_or_not(heeds: str, expected: list[str]) -> None:
    story = Story(heeds=heeds)  # type: ignore[arg-type]
    assert story(prompt("hello")).text == "Answer 1."
    assert names(story(prompt(CLEAR_OR_REMIND))) == expected
    assert names(story(prompt("hello"))) == []


BLANK = Reply(calls=(Call("clear_mind", {"reminder_content": " "}),))
REFUSAL = Reply("I would rather go on as I am.")


@pytest.mark.parametrize(("forced", "refusal"), [(("clear_mind",), BLANK), ((), REFUSAL)])
def test_a_story_refuses_the_first_forced_attempts_of_each_row(forced: tuple[str, ...], refusal: Reply) -> None:
    story = Story(refuses=2, heeds="")
    accepted = Reply(calls=(Call("clear_mind", {"reminder_content": story.package}),))
    for _ in range(2):
        attempts = [story(prompt(CLEAR_ONLY, forced=forced)) for _ in range(3)]
        assert attempts == [refusal, refusal, accepted]


def test_a_story_calls_no_tool_that_it_was_not_offered() -> None:
    assert Story()(prompt(CLEAR_ONLY, tools=())) == Reply("I have no tool clear_mind.")


def test_a_reply_is_cut_at_its_budget_from_the_end() -> None:
    reply = Reply("t" * 40, (Call("weather", {"city": "Ulm"}),), "r" * 40)
    assert cut(reply, None) == (reply, False)
    assert cut(reply, reply.tokens) == (reply, False)
    shorter, is_cut = cut(reply, 15)
    assert (shorter.reasoning, shorter.text, shorter.calls, is_cut) == ("r" * 40, "t" * 20, (), True)
    assert cut(reply, 5)[0] == Reply(reasoning="r" * 20)


def test_of_a_call_that_is_cut_its_beginning_may_stay() -> None:
    reply = Reply("t" * 40, (Call("weather", {"city": "Ulm"}), Call("weather", {})))
    assert cut(reply, 12, keeps_half_calls=True)[0].calls == (Call("weather", '{"city":'),)
    assert cut(reply, 10, keeps_half_calls=True)[0].calls == ()


def test_a_reply_is_cut_by_another_count() -> None:
    reply = Reply("one two three", (Call("weather", {}),))
    shorter, is_cut = cut(reply, 2, lambda text: len(text.split()))
    assert (shorter.text.strip(), shorter.calls, is_cut) == ("one two", (), True)
