"""The account by rule of what went."""

from remediation.strategies.digest import digest
from tests.remediation.building import numbered, prose, toolbox, user

PARAGRAPH = "We moved the stand to the lake. It was windy. Anna brought the red boat and we sold forty rolls."


def test_a_paragraph_of_plain_talk_stands_whole_or_not_at_all() -> None:
    units = numbered(*(user(f"{PARAGRAPH} That was day {day}, {prose('x', 20)}.") for day in range(20)))
    lines = digest(units, 300, toolbox(), 0).splitlines()
    assert lines
    assert all(PARAGRAPH in line and "[…]" not in line for line in lines)


def test_of_plain_talk_what_nobody_else_says_goes_first() -> None:
    same = [user(f"It was so lovely to hear from you today, dear friend {sign}!") for sign in "abcdefghijklmnop"]
    told = user("My sister restores an antique harpsichord beside the lighthouse!")
    lines = digest(numbered(told, *same), 60, toolbox(), 0)
    assert "harpsichord" in lines


def test_of_plain_talk_no_rule_goes_for_rare_words() -> None:
    talk = [user(f"My cousin keeps heron{day}, otter{day} and marten{day} in barn{day}!") for day in range(12)]
    lines = digest(numbered(*talk, user("Never do it, please.")), 60, toolbox(), 0)
    assert "Never do it" in lines
