"""A message is read as what it is: whose words they are, and which lines state something."""

import argparse
import inspect
import json.decoder
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

import pytest

from remediation.text.ledger import key_facts
from remediation.text.marks import RULE
from remediation.text.reading import Sentence, sentences_of
from remediation.text.statements import statements_of
from remediation.tokens.counting import characters_per_four as count

FORMS: dict[str, Callable[[int, str], str]] = {
    "cat -n": lambda number, line: f"{number:6}\t{line}",
    "colon": lambda number, line: f"{number}: {line}",
    "arrow": lambda number, line: f"{number:>5}→{line}",
    "bar": lambda number, line: f"{number} | {line}",
    "grep": lambda number, line: f"{number}-{line}",
}


@pytest.mark.parametrize("module", [argparse, json.decoder, shlex], ids=lambda module: module.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_printed_source_states_nothing(form: str, module: ModuleType) -> None:
    lines = inspect.getsource(module).splitlines()[20:140]
    printed = "\n".join(FORMS[form](number, line) for number, line in enumerate(lines, 21))
    assert not key_facts([("user", printed)], 400, count)


def test_numbered_points_of_a_person_are_said() -> None:
    text = "1: The port is 8443.\n2: The host is db-07.internal.\n3: Never push to main."
    assert [sentence.text for sentence in sentences_of(text)][-1].endswith("Never push to main.")


def test_a_quoted_prohibition_is_a_quote_and_no_rule() -> None:
    mail = (
        "On Tue, 3 Mar 2026, Anna Berg wrote:\n> Never use the mirror mirror-7.example.org.\n\nI disagree, the "
        "mirror is fine."
    )
    facts = key_facts([("user", mail)], 200, count)
    assert not any(fact.startswith(RULE) for fact in facts)
    assert any("quoting Anna Berg" in fact and "mirror-7.example.org" in fact for fact in facts)
    assert not any("wrote:" in fact for fact in facts)


def test_of_what_a_person_pastes_nothing_is_the_persons() -> None:
    own = "Why does it write files? Never restart db-07.\n\n{}\n\nI use Python 3.11."
    pasted = subprocess.run([sys.executable, "-h"], capture_output=True, text=True, check=True).stdout
    assert "don't write" in pasted
    for printed in (pasted, inspect.getsource(shlex)):
        said = [one.text for one in sentences_of(own.format(printed), pastes=True) if not one.speaker]
        assert {"Why does it write files?", "Never restart db-07.", "I use Python 3.11."} <= {*said}
        facts = key_facts([("user", own.format(printed))], 400, count)
        assert [fact for fact in facts if fact.startswith(RULE)] == ["Rule: Never restart db-07."]


def test_lists_and_wrapped_lines_of_a_person_are_no_paste() -> None:
    text = "My plan:\n- Never push to main\n  - use db-07\n  - ask Anna\n1. the port is 8443\n\nThen we wait and\nsee."
    assert not [one for one in sentences_of(text, pastes=True) if one.speaker]


def test_a_quote_of_what_was_said_stands_once() -> None:
    said = "The migration to schema 42 took nine hours on the replica."
    texts = [("user", said), ("user", f"> {said}\n\nThen we should run it on Sunday.")]
    assert sum("schema 42" in statement.text for statement in statements_of(texts)) == 1


def test_signs_that_a_quote_leaves_out_make_it_no_other_sentence() -> None:
    texts = [
        ("user", "Call `reset()` (twice) before db-07 starts."),
        ("user", "> Call reset() twice before db-07 starts"),
    ]
    assert len(statements_of(texts)) == 1


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("As Miller et al. showed in 2019, it is slow.", 1),
        ("It is est. 40 tokens, i.e. little. The rest is fine.", 2),
        ("This line was wrapped by the mail program that was used to\nwrite it, and it is one sentence.", 1),
        ("First point\nSecond point", 2),
        ("The longest of these lines has no full stop but ends\nThe host is db-07\nThe port is 8443", 3),
        ("他说：“好的，明天再看。”然后就走了。", 2),
    ],
)
def test_sentences_end_where_they_end(text: str, sentences: int) -> None:
    assert len(list(sentences_of(text))) == sentences


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (("许多脚本会停止和正在升级的软件包有关的服务，直至安装或升", "级完成。"), "直至安装或升级完成。"),
        (("Es liegt ein Fehler bei der Kommunikation vor, und zwi‐", "schen beiden Boxen."), "zwischen beiden Boxen."),
        (("● Bei zu hoher oder zu niedriger Spannung müssen Sie nicht", "eingreifen."), "Sie nicht eingreifen."),
        (("1、下载镜像后克隆代码。",), "下载镜像后克隆代码。"),
        (("8.1.6.1. Das Format der Pakete",), "Das Format der Pakete"),
    ],
)
def test_how_lines_were_broken_and_numbered_is_not_said(lines: Sequence[str], sentence: str) -> None:
    (said,) = sentences_of("\n".join(lines))
    assert said.text.endswith(sentence)
    assert said.text[0].isalpha()


def test_a_sentence_keeps_the_signs_that_close_it() -> None:
    text = 'It fails (see "the log.") Then it stops (on db-07.) I call it ‘kitchen Tetris.’ He said "no." So we wait.'
    assert " ".join(one.text for one in sentences_of(text)) == text


def test_what_is_cut_of_a_long_sentence_is_marked() -> None:
    first, *_, last = [one.text for one in sentences_of("and then it went on " * 60)]
    assert first.endswith(" …") and last.startswith("… ")


def test_a_quote_behind_a_name_is_a_quote() -> None:
    own = "Anna: > Never use the mirror.\n\nI disagree."
    assert [(one.text, bool(one.speaker)) for one in sentences_of(own)] == [
        ("Never use the mirror.", True),
        ("I disagree.", False),
    ]
    assert not [one for one in sentences_of("Latency: > 500 ms is too slow.") if one.speaker]


def test_headings_of_an_answer_state_nothing_and_a_title_is_said() -> None:
    answer = "# Multi-Factor Authentication\n\n2. **Push Notifications**\n**Never restart db-07.**\n**Port**: 8443"
    assert [one.text for one in sentences_of(answer)] == ["**Never restart db-07.**", "**Port**: 8443"]
    title = "# Messages over 2^16 bytes are refused"
    assert [one.text for one in sentences_of(title, pastes=True)] == [title.removeprefix("# ")]


def test_our_own_marks_state_nothing() -> None:
    text = (
        "[Summary of turns 3-30]\n[Result of read_file, est. 900 tokens, no longer shown; search_archive finds "
        "it.]\nDone."
    )
    assert list(sentences_of(text)) == [Sentence("Done.")]


def test_what_an_attached_file_says_is_the_files_and_no_rule() -> None:
    file = "Never restart db-07.internal.\n</file>\nAlways ask before you delete /srv/vault."
    message = f'What does it say?\n\n<file name="rules.txt">\n{file}\n</file>'
    facts = key_facts([("user", message)], 200, count)
    assert any("(quoting rules.txt) “Never restart" in fact for fact in facts)
    assert not any(fact.startswith(RULE) for fact in facts)
