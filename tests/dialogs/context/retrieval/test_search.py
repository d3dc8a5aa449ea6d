"""Search of what was said, on both databases: one dialog, its archive, all dialogs of a person."""

from collections.abc import Callable, Collection

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from dialogs.context.retrieval import search
from dialogs.context.retrieval.text_index import AT_ONCE_CHARS, TURNS
from dialogs.models import Dialog
from remediation.models import RemovedUnit
from tests.dialogs.context.retrieval.holding import hold
from tests.dialogs.factories import RewriteFactory, UserFactory, make_dialog
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def seqs(dialog: Dialog, query: str, **options: object) -> list[int]:
    return [hit.text.number for hit in search.in_turns(dialog.pk, query, **options)]  # type: ignore[arg-type]


def marked(hit: search.Hit) -> list[str]:
    return [part.text for part in hit.text.parts if part.is_match]


def test_what_holds_more_of_the_words_comes_first_between_its_neighbours() -> None:
    dialog = hold(make_dialog(), "the red boat", "hello", "a blue sail on a red boat", "green hills", "so", "RED house")
    (best, *_) = search.in_turns(dialog.pk, "Which boats have blue sails?")
    assert best.text.number == 3
    assert marked(best) == ["blue", "sail", "boat"]
    assert [text.number for text in best.beside] == [2, 4]
    assert seqs(dialog, "violet") == []
    assert 3 not in seqs(dialog, "blue sail", hidden=[3])


def test_parts_of_identifiers_and_paths_and_chinese_are_found() -> None:
    noise = ("one", "two", "three")
    dialog = hold(
        make_dialog(), "see /srv/app/main_window.py", *noise, "error E1042b in depot", *noise, "日本語のテスト"
    )
    for query, seq in (("window", 1), ("E1042", 5), ("日本語", 9), ("/srv/app", 1)):
        assert seqs(dialog, query)[0] == seq, query


@pytest.mark.parametrize("query", ["the", "%%", "a_b", "'; DROP", "(((", "\\\\", "!x", "<->", "'", "\x00", ""])
def test_odd_queries_find_nothing_and_break_nothing(query: str) -> None:
    dialog = hold(make_dialog(), "plain words")
    assert search.in_turns(dialog.pk, query) == search.in_removed_units(dialog.pk, query) == []
    assert search.everywhere(dialog.owner, query)[0] == []


def test_turns_that_came_since_are_found_without_reading_the_others_again(
    django_assert_num_queries: Callable[[int], object],
) -> None:
    dialog = hold(make_dialog(), "the heron flies")
    assert seqs(dialog, "heron") == [1]
    hold(dialog, "so", "so", "another heron sits")
    with django_assert_num_queries(1):  # type: ignore[attr-defined]
        assert sorted(seqs(dialog, "heron")) == [1, 4]


def test_what_a_transaction_rolls_back_is_not_remembered() -> None:
    dialog = hold(make_dialog(), "so")
    with pytest.raises(RuntimeError), transaction.atomic():
        hold(dialog, "the heron flies")
        assert seqs(dialog, "heron") == [2]
        raise RuntimeError
    assert seqs(dialog, "heron") == []


def test_an_index_larger_than_all_may_be_is_still_kept() -> None:
    dialog = hold(make_dialog(), "the heron flies")
    with TURNS.of(dialog.pk) as first:
        pass
    with TURNS.of(dialog.pk) as second:
        assert first is second


def test_a_message_waits_for_the_newest_turns_only() -> None:
    dialog = hold(
        make_dialog(), "the heron flies", "so it does. " * (AT_ONCE_CHARS // 12 + 1), "herons", "a heron sits"
    )

    def herons(in_sight: Collection[int] = (), pinned: Collection[int] = ()) -> set[int]:
        with TURNS.at_once(dialog.pk, in_sight, pinned) as index:
            return {passage.turn for passage in index.passages(index.postings(["heron"]).entries.tolist())}

    assert herons() == {3, 4}
    eventually(lambda: herons() == {1, 3, 4})
    with TURNS.of(dialog.pk) as index:
        assert index.entries_of([1, 2, 3, 4])[-1] == index.corpus.entries - 1, "each turn once"


def test_a_pinned_or_old_turn_comes_at_once() -> None:
    long = "so it does. " * (AT_ONCE_CHARS // 12 + 1)
    for in_sight, pinned in (((), (1,)), ((2,), ())):
        dialog = hold(make_dialog(), "the heron flies", long, "a heron sits")
        with TURNS.at_once(dialog.pk, in_sight, pinned) as index:
            assert index.entries_of([1]).tolist() == [0] and index.entries_of([3]).tolist() == [1]
            assert not len(index.entries_of([2]))


def test_a_search_waits_for_no_index_and_finds_old_turns_too() -> None:
    long = "so it does. " * (AT_ONCE_CHARS // 12 + 1)
    dialog = hold(make_dialog(), "the heron flies", long, "herons", "a boat", "a heron sits")

    def holding_it() -> list[int]:
        hits = search.in_turns(dialog.pk, "heron", hidden=[5])
        return sorted(hit.text.number for hit in hits if hit.text.is_match)

    assert holding_it() == [1, 3]
    assert search.searches_newest(dialog.pk)
    eventually(lambda: not search.searches_newest(dialog.pk))
    assert holding_it() == [1, 3]


def test_a_search_of_a_large_archive_waits_for_no_index() -> None:
    dialog = make_dialog()
    run = RewriteFactory.create(dialog=dialog)
    texts = ("red boat", "so it does. " * (AT_ONCE_CHARS // 12 + 1), "a blue sail on a red boat", "hills")
    made = [
        RemovedUnit.objects.create(
            run=run, dialog=dialog, unit_id=f"u{n}", kind="log", role="user", est_tokens=1, text=text
        )
        for n, text in enumerate(texts)
    ]
    hits = search.in_removed_units(dialog.pk, "blue sail, red")
    assert [hit.text.number for hit in hits] == [made[2].pk, made[0].pk]
    assert search.searches_newest(dialog.pk)
    eventually(lambda: not search.searches_newest(dialog.pk))


def test_the_archive_is_searched_by_the_same_ranking() -> None:
    dialog = make_dialog()
    run = RewriteFactory.create(dialog=dialog)
    for number, text in enumerate(("red boat", "a blue sail on a red boat", "hills")):
        RemovedUnit.objects.create(
            run=run, dialog=dialog, unit_id=f"u{number}", kind="log", role="user", est_tokens=1, text=text
        )
    (best, *_) = search.in_removed_units(dialog.pk, "blue sails")
    assert RemovedUnit.objects.get(pk=best.text.number).unit_id == "u1"


def test_all_dialogs_of_a_person_are_searched_and_nobody_elses() -> None:
    ann, ben = UserFactory.create(), UserFactory.create(is_staff=True)
    first = hold(owned_by(ann), "the companies met", "in Larch Street")
    second = hold(owned_by(ann), "one company alone has a heron, Larch Street 7")
    hold(owned_by(ben), "another company in Larch Street has a heron")
    result, _ = search.everywhere(ann, "Which company has the heron?")
    assert result[0].dialog_id == second.pk
    assert {one.dialog_id for one in result} == {first.pk, second.pk}
    met = next(one for one in result if one.dialog_id == first.pk)
    assert met.hit.text.number == 1
    assert all(other.number != 3 for one in result for other in one.hit.beside), "neighbours are of the same dialog"


def owned_by(user: User) -> Dialog:
    dialog = make_dialog()
    dialog.owner = user
    dialog.save()
    return dialog
