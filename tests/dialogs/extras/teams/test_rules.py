"""Whom an agent may ask."""

import pytest

from dialogs.extras.teams.rules import Bounds, beginning_and_end, bounds, refusal, shown_chars
from dominds.yaml_fields import Bad


@pytest.mark.parametrize(
    ("agent", "chain", "at_work", "says"),
    [
        ("scout", ["lead"], 0, ""),
        ("scout", ["lead"], 7, ""),
        ("scout", ["lead"], 8, "8 side dialogs are at work, the most allowed"),
        ("clerk", ["lead"], 0, "You have no colleague 'clerk'. You may ask: scout, lead."),
        ("lead", ["lead", "scout"], 0, "lead asks scout asks lead: that would go in a circle"),
        ("scout", ["a", "b", "c"], 0, ""),
        ("scout", ["a", "b", "c", "d"], 0, "You are 3 levels below the first dialog, and at most 3 are allowed"),
    ],
)
def test_an_ask_beyond_a_bound_is_a_sentence(agent: str, chain: list[str], at_work: int, says: str) -> None:
    why = refusal(agent, ["scout", "lead"], chain, at_work, Bounds())
    assert why.startswith(says) and bool(why) is bool(says)


def test_bounds_are_read_as_they_are_stored() -> None:
    assert Bounds.of(bounds({"levels": 2, "usd": 0.5})) == Bounds(2, 8, Bounds.of({"usd": "0.5"}).usd)
    assert Bounds.of({}) == Bounds(3, 8, None)
    for wrong in (3, {"levels": 4}, {"depth": 1}):
        with pytest.raises(Bad):
            bounds(wrong)


@pytest.mark.parametrize(("text", "chars"), [("hut " * 50_000, 6_000), ("山小屋" * 9_000, 1_500), ("ja山", 3_000)])
def test_a_report_takes_as_many_tokens_in_any_writing(text: str, chars: int) -> None:
    assert shown_chars(text) == chars


def test_a_long_report_shows_its_beginning_and_its_end() -> None:
    shown = beginning_and_end("a" * 9_000 + "z" * 9_000, 400)
    assert shown.startswith("The report has 18,000 characters.") and "a" * 300 in shown and shown.endswith("z" * 100)
    assert "17,600 characters are left out" in shown
