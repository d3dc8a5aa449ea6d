"""The breaking chain's third strategy: each type is shortened in its own way."""

from typing import Any

import pytest
from hypothesis import given

from dominds.llm.messages import Message, Role
from remediation.config import ContentTypeChunking
from remediation.context import Unit, UnitKind, UnitRole, total_tokens
from remediation.strategies.breaking.chunk_by_type import content_type_chunking
from tests.remediation.building import count, model, numbered, system, tool, toolbox, unit, user, words
from tests.remediation.strategies.laws import check_laws, context, gone_priorities, rows, talk

OPTIONS = ContentTypeChunking()
CODE = "def area(r):\n    # the area of a circle, as everybody learns at school\n\n    return 3 * r\n" * 4


def distinct(length: int) -> str:
    """Sentences of five words that do not repeat each other."""
    return " ".join(f"word{i}." if i % 5 == 4 else f"word{i}" for i in range(length))


def alone(u: Unit) -> Unit:
    """What the strategy makes of one unit."""
    units = numbered(system(), u, user("now"))
    return content_type_chunking(units, OPTIONS, toolbox(), 1).units[1]


@pytest.mark.parametrize(("kind", "ratio"), [(UnitKind.MESSAGE, 0.5), (UnitKind.LOG, 0.4), (UnitKind.OTHER, 0.6)])
def test_text_is_cut_to_its_types_share(kind: UnitKind, ratio: float) -> None:
    shortened = alone(model(distinct(100), kind=kind))
    assert 100 * ratio - 5 <= words(shortened.text) <= 100 * ratio


@pytest.mark.parametrize("kind", [UnitKind.PLAN_REF, UnitKind.SUMMARY, UnitKind.PLACEHOLDER])
def test_plans_and_stand_ins_stay_verbatim(kind: UnitKind) -> None:
    assert alone(model(distinct(100), kind=kind)).text == distinct(100)


def test_code_loses_comments_and_keeps_its_lines() -> None:
    shortened = alone(model(CODE, kind=UnitKind.CODE))
    assert "school" not in shortened.text
    assert shortened.text.count("    return 3 * r") == 4


def test_code_that_cannot_be_minified_stays() -> None:
    code = "\n".join(f"total = total + value{i}" for i in range(30))
    assert alone(model(code, kind=UnitKind.CODE)).text == code


def test_short_texts_are_left_alone() -> None:
    assert alone(model(distinct(23))).text == distinct(23)


def test_a_configured_ratio_of_one_is_verbatim() -> None:
    options = ContentTypeChunking({"text": 1.0})
    units = numbered(system(), model(distinct(100)), user("now"))
    assert content_type_chunking(units, options, toolbox(), 1).units == units


def test_a_type_without_a_ratio_takes_the_ratio_of_other() -> None:
    options = ContentTypeChunking({"other": 0.2})
    units = numbered(system(), model(distinct(100), kind=UnitKind.LOG), user("now"))
    assert words(content_type_chunking(units, options, toolbox(), 1).units[1].text) <= 20


def test_identity_and_origin_survive() -> None:
    u = model(distinct(100), priority=2)
    before = numbered(system(), u, user("now"))[1]
    after = content_type_chunking(numbered(system(), u, user("now")), OPTIONS, toolbox(), 1).units[1]
    assert (after.id, after.source, after.priority, after.kind) == (
        before.id,
        before.source,
        before.priority,
        before.kind,
    )


def test_counts_are_taken_anew() -> None:
    shortened = alone(model(distinct(100)))
    assert shortened.est_tokens == count(shortened.messages)


def test_what_tools_brought_is_left_to_masking() -> None:
    before = numbered(system(), tool(distinct(100), id="t"), user("now"))
    assert content_type_chunking(before, OPTIONS, toolbox(), 1).units == before


def test_a_plain_message_drops_the_providers_opaque_items() -> None:
    message = Message(Role.ASSISTANT, distinct(100), provider_items=('{"signed": true}',))
    u = Unit("u", UnitKind.MESSAGE, UnitRole.ASSISTANT, (message,), est_tokens=count((message,)))
    assert alone(u).messages[0].provider_items == ()


def test_it_stops_at_the_target() -> None:
    units = numbered(system(), *(model(distinct(100)) for _ in range(6)), user("now"))
    after = content_type_chunking(units, OPTIONS, toolbox(), total_tokens(units) - 90).units
    assert [words(u.text) < 100 for u in after[1:7]] == [True, True, False, False, False, False]


def test_nothing_changes_below_the_target() -> None:
    units = talk(6, 100)
    assert content_type_chunking(units, OPTIONS, toolbox(), 10_000).units == units


def test_priority_three_is_shortened_before_priority_two() -> None:
    units = numbered(system(), *(model(distinct(100), priority=2 + i % 2) for i in range(6)), user("now"))
    some = content_type_chunking(units, OPTIONS, toolbox(), total_tokens(units) - 120).units
    assert gone_priorities(units, some) == {3}
    assert gone_priorities(units, content_type_chunking(units, OPTIONS, toolbox(), 1).units) == {2, 3}


@pytest.mark.parametrize("kind", list(UnitKind))
def test_priority_one_stays_verbatim_whatever_its_type(kind: UnitKind) -> None:
    assert alone(model(distinct(100), kind=kind, priority=1)).text == distinct(100)


@pytest.mark.parametrize("role", [UnitRole.USER, UnitRole.ASSISTANT])
def test_pinned_units_stay_verbatim(role: UnitRole) -> None:
    assert alone(unit(distinct(100), role, pinned=True)).text == distinct(100)


def test_failures_and_identifiers_are_extracted_first() -> None:
    log = "\n".join(
        ["INFO nothing happened here at all"] * 40 + ["ERROR E7781: /srv/data.db is locked"] + ["INFO fine"] * 40
    )
    assert "ERROR E7781: /srv/data.db is locked" in alone(tool(log, id="t")).text


def test_no_model_is_asked() -> None:
    def forbidden(text: str, tokens: int) -> str:
        raise AssertionError("fifty model calls would cost more than they save")

    units = talk(10, 100)
    content_type_chunking(units, OPTIONS, toolbox(summarise=forbidden), 1)


def test_the_note_says_how_many() -> None:
    units = numbered(system(), model(distinct(100)), model("short"), user("now"))
    assert content_type_chunking(units, OPTIONS, toolbox(), 1).note == "shortened 1 unit by type"


def test_passes_accumulate() -> None:
    units = numbered(system(), *(model(distinct(100)) for _ in range(6)), user("now"))
    once = content_type_chunking(units, OPTIONS, toolbox(), 1).units
    twice = content_type_chunking(once, OPTIONS, toolbox(), 1).units
    assert total_tokens(twice) < total_tokens(once) < total_tokens(units)


def test_an_empty_context_is_left_alone() -> None:
    assert content_type_chunking((), OPTIONS, toolbox(), 1).units == ()


@given(rows)
def test_the_laws_hold_for_any_context(made: list[Any]) -> None:
    units = context(made)
    outcome = content_type_chunking(units, OPTIONS, toolbox(), 50)
    check_laws(units, outcome)
    assert [u.id for u in outcome.units] == [u.id for u in units]
