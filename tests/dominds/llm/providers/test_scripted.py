import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.messages import Message, Request, Role, ToolCall
from dominds.llm.provider import (
    AuthFailed,
    ContextOverflow,
    MalformedStream,
    Overloaded,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    RequestRefused,
    StreamAborted,
)
from dominds.llm.providers.script_file import BadScript, load_script, script_from
from dominds.llm.providers.scripted import SCRIPTS, Scripted, size_chars, step_for
from dominds.llm.stream import Finished, FinishReason, Started, StreamEvent, TextDelta
from dominds.llm.usage import Usage, UsageUnavailable
from tests.dominds.llm.asking import ADD_REMINDER, CLEAR_MIND, HELLO, Outcome, ask, events_of


def scripted(folder: Path, script: str) -> Scripted:
    path = folder / "script.yaml"
    path.write_text(script, encoding="utf-8")
    return Scripted(path)


def messages_of(*texts: str) -> tuple[Message, ...]:
    return (Message(Role.USER, "old guidance"), Message(Role.ASSISTANT, "hm"), *(Message(Role.USER, t) for t in texts))


def test_steps_are_taken_in_order_and_the_last_one_repeats(tmp_path: Path) -> None:
    provider = scripted(tmp_path, "steps: [{text: one}, {text: two}, {text: three}]")
    request, texts = HELLO, []
    for _ in range(5):
        outcome = ask(provider, request)
        texts.append(outcome.text)
        request = replace(request, cursor=outcome.started.cursor)
    assert texts == ["one", "two", "three", "three", "three"]


MATCHING = """
steps:
  - {match: "guidance.*long", text: cleared}
  - {match: "result 7", text: seen}
  - {text: one}
  - {text: two}
"""


@pytest.mark.parametrize(
    ("messages", "cursor", "text", "next_cursor"),
    [
        (messages_of("hi"), "", "one", "1"),
        (messages_of("hi"), "1", "two", "2"),
        (messages_of("hi", "guidance\nis long"), "1", "cleared", "1"),
        (messages_of("GUIDANCE is long"), "", "one", "1"),
        ((*messages_of("hi"), Message(Role.TOOL, "result 7", tool_call_id="a")), "", "seen", ""),
        ((*messages_of("guidance long"), Message(Role.ASSISTANT, "x")), "", "one", "1"),
        ((), "nonsense", "one", "1"),
    ],
)
def test_a_match_looks_at_what_came_after_the_last_answer(
    messages: tuple[Message, ...], cursor: str, text: str, next_cursor: str, tmp_path: Path
) -> None:
    outcome = ask(scripted(tmp_path, MATCHING), Request("m", "", messages, cursor=cursor))
    assert (outcome.text, outcome.started.cursor) == (text, next_cursor)


def test_calls_carry_mappings_or_raw_text_and_unique_ids(tmp_path: Path) -> None:
    script = """
    steps:
      - text: Now
        tool_calls:
          - {name: clear_mind, arguments: {reminder_content: "ä"}}
          - {name: add_reminder, arguments: '{"cut', id: x}
          - {name: add_reminder, id: x}
    """
    finished = ask(scripted(tmp_path, script)).finished
    first, second, third = finished.tool_calls
    assert (first.name, first.arguments) == ("clear_mind", '{"reminder_content":"ä"}')
    assert second == ToolCall("x", "add_reminder", '{"cut')
    assert third.arguments == "{}"
    assert len({first.id, second.id, third.id, ""}) == 4
    assert finished.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ("usage: {prompt_tokens: 1200, completion_tokens: 80}", Usage(1200, 80)),
        ("usage: {prompt_tokens: 1200}", Usage(1200, 0)),
        ("usage: none", UsageUnavailable("the script reports none")),
        ("usage:", UsageUnavailable("the script reports none")),
        # 9 + 5 characters ask, 4 answer: 14 / 4 = 3.5 -> 4, 4 / 4 = 1
        ("usage: estimate", Usage(4, 1)),
        ("match: Hello", Usage(4, 1)),
    ],
)
def test_usage_is_reported_as_the_step_says(usage: str, expected: object, tmp_path: Path) -> None:
    assert ask(scripted(tmp_path, f"steps: [{{text: four, {usage}}}]")).finished.usage == expected


def test_nonsense_counts_are_unavailable_like_any_providers(tmp_path: Path) -> None:
    usage = ask(scripted(tmp_path, "steps: [{text: x, usage: {prompt_tokens: -5}}]")).finished.usage
    assert isinstance(usage, UsageUnavailable)


def test_a_script_sets_defaults_for_its_steps(tmp_path: Path) -> None:
    provider = scripted(
        tmp_path, "{usage: none, chars_per_token: 2, steps: [{text: x}, {text: four, usage: estimate}]}"
    )
    assert isinstance(ask(provider).finished.usage, UsageUnavailable)
    assert ask(provider, replace(HELLO, cursor="1")).finished.usage == Usage(7, 2)  # 14 / 2, 4 / 2


@given(st.lists(st.text(max_size=20), max_size=5), st.text(max_size=20))
def test_an_estimate_grows_with_all_that_is_sent(texts: list[str], instructions: str) -> None:
    messages = tuple(Message(Role.USER, text) for text in texts)
    bare = Request("m", instructions, messages)
    assert size_chars(bare) == len(instructions) + sum(map(len, texts))
    assert size_chars(replace(bare, tools=(CLEAR_MIND, ADD_REMINDER))) > size_chars(bare)
    call = Message(Role.ASSISTANT, "", (ToolCall("a", "one", "{}"),))
    assert size_chars(replace(bare, messages=(*messages, call))) == size_chars(bare) + 5


def test_text_may_quote_the_user_and_repeat_itself(tmp_path: Path) -> None:
    outcome = ask(scripted(tmp_path, 'steps: [{text: "<{{last_user}}>", repeat: 3}]'))
    assert outcome.text == "<Hello><Hello><Hello>"


def test_text_arrives_in_small_pieces(tmp_path: Path) -> None:
    events = events_of(scripted(tmp_path, '{chunk_chars: 4, steps: [{text: "0123456789"}]}').stream(HELLO))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["0123", "4567", "89"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("rate_limit", RateLimited),
        ("overloaded", Overloaded),
        ("context_overflow", ContextOverflow),
        ("auth", AuthFailed),
        ("refused", RequestRefused),
        ("malformed_stream", MalformedStream),
        ("timeout", ProviderTimeout),
        ("{kind: rate_limit, message: slow down, retry_after: 3}", RateLimited),
    ],
)
def test_each_error_can_be_played_before_and_after_text(error: str, kind: type[ProviderError], tmp_path: Path) -> None:
    provider = scripted(tmp_path, f"steps: [{{error: {error}}}, {{text: half, error: {error}}}]")
    with pytest.raises(kind):
        events_of(provider.stream(HELLO))
    seen: list[StreamEvent] = []
    with pytest.raises(kind) as caught:
        provider.stream(replace(HELLO, cursor="1")).run(seen.append)
    assert seen == [Started("2"), TextDelta("half")]
    if "slow" in error:
        assert (str(caught.value), caught.value.retry_after_seconds) == ("slow down", 3)


@pytest.mark.parametrize("delays", ["delay_ms: 60000", "chunk_delay_ms: 60000"])
def test_a_delay_can_be_aborted(delays: str, tmp_path: Path) -> None:
    stream = scripted(tmp_path, f"steps: [{{text: some longer text, {delays}}}]").stream(HELLO)
    threading.Timer(0.1, stream.abort).start()
    started_at = time.monotonic()
    with pytest.raises(StreamAborted):
        events_of(stream)
    assert time.monotonic() - started_at < 1


def test_a_changed_script_is_read_again(tmp_path: Path) -> None:
    provider = scripted(tmp_path, "steps: [{text: one}]")
    assert ask(provider).text == "one"
    scripted(tmp_path, "steps: [{text: another}]")
    assert ask(provider).text == "another"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "the file: expected a mapping"),
        ("steps: []", "steps: expected a list"),
        ("steps: [5]", "steps[0]: expected a mapping"),
        ("steps: [{txt: x}]", "steps[0].txt: unknown key"),
        ("steps: [{text: 5}]", "steps[0].text: expected text"),
        ("steps: [{match: '('}]", "steps[0].match: no regular expression"),
        ("steps: [{text: x, error: bad luck}]", "steps[0].error: expected one of"),
        ("steps: [{tool_calls: [{arguments: {}}]}]", "steps[0].tool_calls[0].name: expected text"),
        ("steps: [{tool_calls: 5}]", "steps[0].tool_calls: expected a list"),
        ("steps: [{text: x, repeat: 99999999}]", "steps[0].repeat: expected a number"),
        ("steps: [{text: x, delay_ms: -1}]", "steps[0].delay_ms: expected a number"),
        ("steps: [{text: x, usage: much}]", "steps[0].usage: expected a mapping"),
        ("steps: [{text: x, text: y}]", "steps[0].text: the key occurs twice"),
        ("steps: [{match: nothing like it}]", "none matches"),
        ("steps: [", "is not YAML in line"),
        ("steps: !!python/object/apply:os.getcwd []", "is not YAML"),
    ],
)
def test_a_bad_script_says_file_path_and_reason(script: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(RequestRefused) as caught:
        events_of(scripted(tmp_path, script).stream(HELLO))
    assert "script.yaml" in str(caught.value)
    assert words in str(caught.value)


def test_a_missing_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestRefused, match="cannot be read"):
        events_of(Scripted(tmp_path / "gone.yaml").stream(HELLO))


anything: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["steps", "text", "usage", "tool_calls", "match", "error", "name"]), inner, max_size=4
        )
    ),
    max_leaves=10,
)


@given(anything)
def test_any_document_is_a_script_or_a_named_fault(document: Any) -> None:
    try:
        script = script_from(document)
        step_for(script, HELLO)
    except BadScript as error:
        assert str(error)


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_script_can_be_played(path: Path) -> None:
    assert load_script(path).steps


def test_the_echo_answers() -> None:
    outcome: Outcome = ask(Scripted(SCRIPTS / "echo.yaml"))
    assert outcome.text == "You said: Hello"
    assert isinstance(outcome.finished, Finished)


def test_a_step_may_think_and_end_as_it_likes(tmp_path: Path) -> None:
    outcome = ask(scripted(tmp_path, "steps: [{reasoning: They greet me., text: No., finish: refusal}]"))
    assert (outcome.reasoning, outcome.text) == ("They greet me.", "No.")
    assert outcome.finished.finish_reason is FinishReason.REFUSAL


@pytest.mark.parametrize(
    ("field", "words"), [("finish: never", "finish: expected one of stop"), ("reasoning: 5", "reasoning: ")]
)
def test_a_reason_that_is_none_is_a_fault_of_the_script(field: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"steps: [{{text: x, {field}}}]")
    with pytest.raises(BadScript, match=words):
        load_script(tmp_path / "s.yaml")
