"""Nothing that reads texts of a conversation takes more than their length, whatever shape they have."""

import random
from collections.abc import Callable
from itertools import count as numbers
from typing import Any

import pytest

from remediation.context import UnitRole, Units, total_tokens
from remediation.loops import loop_detected
from remediation.policies.conformance import task
from remediation.policies.conformance import words as count
from remediation.policies.policy import Policy
from remediation.policies.registry import registry
from remediation.strategies.digest import shorten
from remediation.text.classify import classify, priority_of, tags_of
from remediation.text.coverage import Shown, is_about, missing_from, required_of, stems_of
from remediation.text.exact_tokens import tokens_in
from remediation.text.ledger import key_facts
from remediation.text.listing import listing
from remediation.text.secret_masking import redact
from remediation.text.statements import statements_of
from remediation.text.summaries import summary_problem, without_reasoning
from remediation.text.words import words
from tests.harness.complexity import assert_linear
from tests.remediation.building import model, numbered, prose, system, tool, toolbox, user

CHARS = 8_000  # what takes the square of them is told by it; of texts over 120,000 the beginning and the end are read
MESSAGES = 150

SENTENCES = (
    "the pool of db-07 gives 4 connections, error E123: never push to main. PORT=8443 at 12:30 and then CamelCase "
    "in src/app/views.py; I prefer tabs. Why did https://example.com/a?b=c fail?"
).split()


def of_words(chars: int, between: str) -> str:
    chance = random.Random(3)
    return between.join(chance.choices(SENTENCES, k=chars // 5))[:chars]


SHAPES: dict[str, Callable[[int], str]] = {
    "one line": lambda chars: of_words(chars, " "),
    "a word a line": lambda chars: of_words(chars, "\n"),
    "no spaces": lambda chars: of_words(chars, "-"),
    "sentences": lambda chars: of_words(chars, ". "),
    "letters": lambda chars: "aB3" * (chars // 3),
    "paths": lambda chars: "/a" * (chars // 2),
    "a call": lambda chars: "f(" + " " * chars + "x",
    "halves of tags": lambda chars: "<think [THINK] </think" * (chars // 21),
    "brackets": lambda chars: "<think>{[(`" * (chars // 11),
    "spaces": lambda chars: "a" + " " * chars,
    "Chinese": lambda chars: "数据库连接池" * (chars // 6),
}
READERS: dict[str, Callable[[str], Any]] = {
    "statements": lambda text: list(statements_of([("user", text)])),
    "facts of people": lambda text: key_facts([("user", text)], 500, count),
    "what must not be lost": lambda text: missing_from(Shown(text[: len(text) // 2]), required_of([("user", text)])),
    "what a summary is about": lambda text: is_about(text, Shown(text), required_of([("assistant", text)])),
    "telling words": stems_of,
    "exact tokens": lambda text: (tokens_in(text), listing(text, 200, count)),
    "a shortened text": lambda text: shorten(text, 200, count),
    "a summary's fault": lambda text: summary_problem(without_reasoning(text), text, count, 10_000),
    "kind": lambda text: [classify(text, role) for role in UnitRole],
    "priority": lambda text: (priority_of(text, ["pool", "main"], 2), tags_of(text)),
    "secrets": redact,
    "words to search": words,
    "loops": lambda text: loop_detected([("read", text), ("read", text + " "), ("read", text)], 2),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reader", READERS)
def test_time_grows_with_length_alone(reader: str, shape: str) -> None:
    number = numbers()

    def read_anew(text: str) -> Any:
        """What was read of a text is remembered."""
        return READERS[reader](f"{text} {next(number)}")

    assert_linear(read_anew, SHAPES[shape], CHARS)


def test_each_value_of_a_long_text_is_looked_up() -> None:
    """A rewrite asks of each fact that goes whether what stays says it: both grow with the conversation."""

    def looked_up(values: int) -> list[bool]:
        shown = Shown(" ".join(f"item{at} of {values}" for at in range(values)))
        return [shown.has_value(f"item{at} is") for at in range(values)]

    assert_linear(looked_up, lambda values: values, 8_000)


def history(units: int) -> Units:
    """Questions, answers and what tools printed, about ever other things."""
    talk = []
    for at in range(units):
        text = prose(f"topic{units}-{at}", 20)
        talk.append((user(text), model(text), tool(text, id=f"t{at}"))[at % 3])
    return numbered(system(), *talk)


@pytest.mark.parametrize(
    "policy", [policy for policy in registry().policies if policy.rewrite], ids=lambda one: one.name
)
def test_rewrites_take_time_by_the_number_of_messages(policy: Policy) -> None:
    def rewritten(units: Units) -> Any:
        tokens = total_tokens(units)
        assert policy.rewrite is not None
        return policy.rewrite(task(units, tokens, tokens // 3), toolbox())

    assert_linear(rewritten, history, MESSAGES)
