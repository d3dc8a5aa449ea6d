"""Records of requests, as their column holds them."""

from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from dialogs.context.sent import Category, Sent, sizes_of

DIGEST = "2854a3ea3cc3212e081cf048b38d55d4663a903ba61f91301cd2be0f9ba56235"
parts = st.sampled_from(["", DIGEST[:32], DIGEST[32:]])
numbers = st.integers(0, 10**9)
uses = st.lists(st.tuples(st.text(), st.text(), parts), max_size=2).map(tuple)
records = st.builds(
    Sent,
    digest=st.just(DIGEST),
    epoch=numbers,
    position=numbers,
    messages=numbers,
    instructions=parts,
    tools=parts,
    traits=parts,
    statements=parts,
    system=st.lists(st.tuples(numbers, parts), max_size=2).map(tuple),
    as_user=st.booleans(),
    goes_on=st.booleans(),
    recalled=st.lists(st.tuples(numbers, numbers) | st.tuples(*[numbers] * 4), max_size=2).map(tuple),
    nudge=uses,
    guidance=uses,
    called=st.text(),
    force=st.text(),
    output=st.none() | st.integers(1, 10**9),
    sizes=st.lists(numbers, max_size=len(Category)).map(tuple),
)


@given(record=records)
def test_each_value_is_read_again(record: Sent) -> None:
    assert Sent.of(record.stored) == record


@given(record=records)
def test_rows_with_named_values_stay_readable(record: Sent) -> None:
    assert Sent.of({**asdict(record), "of_another_version": 1}) == record


def test_a_row_without_a_record_has_no_sizes() -> None:
    assert Sent.of(None) == Sent() and sizes_of(Sent.of(None)) == {}


def test_what_is_stored_is_short() -> None:
    part = DIGEST[:32]
    record = Sent(DIGEST, 0, 1_091, 1_091, part, part, part, sizes=(9, 2_550, 0, 272_600))
    assert len(record.stored) <= 153  # as named values 265, which PostgreSQL stores in 348 bytes
