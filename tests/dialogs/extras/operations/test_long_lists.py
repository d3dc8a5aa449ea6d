"""That lists of any length are read by an index or among the newest, say so, and lead on to the rest."""

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from dialogs.context.retrieval import search
from dialogs.extras.operations import costs
from dialogs.models import CallTotals, Dialog, Generation, Question, Turn
from dialogs.pages.sidebar import recent_dialogs
from dialogs.queries.moments import moments
from dominds.db import bounded
from dominds.db.bounded import NewestFirst
from tests.dialogs.browsing import browser_of
from tests.dialogs.calls import an_old_dialog, analysed, generation
from tests.dialogs.factories import make_dialog, make_operator

pytestmark = pytest.mark.django_db(transaction=True)


def titled(number: int) -> list[Dialog]:
    """Dialogs ``N of many``, each more active than the one before."""
    first, now = make_dialog(), timezone.now()
    rows = [
        Dialog(owner=first.owner, agent=first.agent, title=f"{n} of many", active_at=now + timedelta(minutes=n))
        for n in range(number)
    ]
    Dialog.objects.bulk_create(rows, batch_size=500)
    return rows


def selects(asked: CaptureQueriesContext, table: str) -> list[str]:
    """Statements that read a part of this table."""
    results = [query["sql"] for query in asked.captured_queries if f'FROM "{table}"' in query["sql"]]
    return [sql for sql in results if "LIMIT" in sql and "COUNT" not in sql]


def test_the_newest_calls_come_in_the_order_of_their_index() -> None:
    """No other index has that order, however many calls others made since."""
    old = an_old_dialog(calls=300, newer=2_700)
    with transaction.atomic():
        _execute("SET LOCAL enable_sort = off", "SET LOCAL enable_seqscan = off", "SET LOCAL enable_bitmapscan = off")
        rows = Generation.objects.newest_of(old.pk).select_related("snapshot")[:50]
        plan = rows.explain()
    assert "generation_newest" in plan and "Sort" not in plan, plan
    assert [row.pk for row in rows] == list(old.generations.order_by("-pk").values_list("pk", flat=True)[:50])


IN_THEIR_ORDER = '"dialogs_generation"."dialog_id" ASC'


@pytest.mark.parametrize(
    ("address", "table", "has"),
    [
        ("/d/{}/context/", "dialogs_generation", IN_THEIR_ORDER),
        ("/admin/health/healthsnapshot/?q={}", "health_healthsnapshot", IN_THEIR_ORDER),
        ("/admin/dialogs/generation/?q={}", "dialogs_generation", 'SELECT "dialogs_generation"."id" AS "pk" FROM'),
        (
            "/admin/dialogs/generation/?dialog__id__exact={}",
            "dialogs_generation",
            'SELECT "dialogs_generation"."id" AS "pk" FROM',
        ),
    ],
)
def test_pages_find_calls_of_a_dialog_by_index_or_keys_alone(address: str, table: str, has: str) -> None:
    old = an_old_dialog(calls=300, newer=2_700)
    browser = browser_of(make_operator(is_superuser=True))
    with CaptureQueriesContext(connection) as asked:
        assert browser.get(address.format(old.pk)).status_code == 200
    result = selects(asked, table)
    assert any(has in sql for sql in result), result


def test_the_timeline_shows_a_dialogs_newest_calls_in_order() -> None:
    old = an_old_dialog(calls=300, newer=2_700)
    shown = [moment.generation.pk for moment in moments(old, limit=20)]
    assert shown == sorted(Generation.objects.filter(dialog=old).values_list("pk", flat=True))[-20:]


def test_pages_lead_on_behind_their_end_and_show_each_dialog_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = titled(70)
    monkeypatch.setattr(bounded, "MOST_ROWS", 40)
    browser, address, seen, parts = browser_of(rows[0].owner), "/dialogs/", list[str](), 1
    while address:
        page = browser.get(address).content.decode()
        part = page[page.index('id="dialog-rows"') :]
        seen += re.findall(r'<strong class="cut">(\d+) of many', part)
        older = re.search(r'href="([^"]*)"[^>]*>(?:Older|Go on with older ones)<', part)
        parts += "Go on with older ones" in part
        assert ("Pages end after 40 rows." in part) == (parts == 1 or "Go on with older ones" in part)
        assert ("Back to the newest" in part) == ("until=" in address)
        address = f"/dialogs/{unescape(older[1])}" if older else ""
    assert [int(number) for number in seen] == list(range(69, -1, -1))
    assert parts == 2


@pytest.mark.parametrize("until", ["never", "\0", "9" * 50, "-1", "", "2026-02-31T00:00"])
def test_an_odd_place_to_go_on_from_is_no_error(until: str) -> None:
    dialog = make_dialog()
    browser = browser_of(dialog.owner)
    for address in ("/dialogs/", f"/d/{dialog.pk}/context/", "/q4h/"):
        assert browser.get(address, {"until": until}).status_code in (200, 400)
    assert NewestFirst(Generation.objects.newest_of(dialog.pk), 5, until=until).count == 0


def test_words_are_searched_among_the_newest_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = titled(30)
    Turn.objects.create(dialog=rows[1], seq=1, position=1, round_number=1, role="user", status="answered", text="heron")
    browser = browser_of(make_operator())
    assert "were searched" not in browser.get("/dialogs/?whose=all&q=0+of+many").content.decode()
    monkeypatch.setattr(bounded, "MOST_ROWS", 20)
    for words, title in (("2 of many", "2 of many"), ("heron", "1 of many")):
        page = browser.get("/dialogs/", {"whose": "all", "q": words}).content.decode()
        assert f'<strong class="cut">{title}<' not in page and "Search all" in page
        page = browser.get("/dialogs/", {"whose": "all", "q": words, "all": "1"}).content.decode()
        assert f'<strong class="cut">{title}<' in page and "Search all" not in page
    assert '<strong class="cut">29 of many<' in browser.get("/dialogs/?whose=all&q=29+of").content.decode()


def test_a_search_of_all_dialogs_says_what_it_covers(monkeypatch: pytest.MonkeyPatch) -> None:
    dialog = make_dialog()
    Turn.objects.bulk_create(
        Turn(
            dialog=dialog, seq=n, position=n, round_number=1, role="user", status="answered", text=f"Case {n} of heron"
        )
        for n in range(1, 31)
    )
    Dialog.objects.filter(pk=dialog.pk).update(last_turn_seq=30, last_position=30)
    browser = browser_of(dialog.owner)

    def oldest() -> int:
        """Of those that are found; each hit shows its neighbours too."""
        page = browser.get("/find/", {"q": "heron"}).content.decode()
        leaves_out = "Only the newest 20,000 or so messages were searched" in page
        assert leaves_out == search.everywhere(dialog.owner, "heron")[1]
        return min(int(seq) for seq in re.findall(r">Turn (\d+) of", page))

    def oldest_by_program(**more: str) -> int:
        found = browser.get("/api/search", {"q": "heron", "limit": "50", **more}).json()
        return min(int(one["seq"]) for one in found)

    assert oldest() == oldest_by_program() <= 2
    monkeypatch.setattr(search, "NEWEST_TURNS", 10)
    assert oldest() == oldest_by_program() > 20
    assert oldest_by_program(all="true") <= 2
    page = browser.get("/find/?q=heron&all=1").content.decode()
    assert ">Turn 1 of" in page and "Only the newest" not in page


def test_what_the_admin_narrows_is_looked_for_among_the_newest_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = titled(30)
    Dialog.objects.filter(pk=rows[2].pk).update(state="failed")
    monkeypatch.setattr(bounded, "MOST_ROWS", 20)
    browser, address = browser_of(make_operator()), reverse("admin:dialogs_dialog_changelist")
    for narrowed in ("q=2+of+many", "state__exact=failed", "o=1"):
        page = browser.get(f"{address}?{narrowed}").content.decode()
        assert ">2 of many<" not in page and "the newest 10,000" in page, narrowed
        page = browser.get(f"{address}?{narrowed}&among=all").content.decode()
        assert ">2 of many<" in page or narrowed == "o=1"
    assert ">2 of many<" in browser.get(f"{address}?q={rows[2].pk}").content.decode(), "an id is found among all"


def test_the_admin_offers_the_values_that_newest_rows_have(monkeypatch: pytest.MonkeyPatch) -> None:
    generation(make_dialog(), provider="older")
    generation(make_dialog(), provider="newer")
    browser, address = browser_of(make_operator()), reverse("admin:dialogs_generation_changelist")
    with CaptureQueriesContext(connection) as asked:
        page = browser.get(address).content.decode()
    assert "?provider=older" in page and "?provider=newer" in page
    assert not any("DISTINCT" in query["sql"] for query in asked.captured_queries)


def test_tabs_of_questions_count_no_further_than_they_show() -> None:
    dialog = make_dialog()
    Question.objects.bulk_create(
        Question(dialog=dialog, kind="question", state="answered", text="?") for _ in range(120)
    )
    Question.objects.create(dialog=dialog, kind="question", text="?")
    operator = make_operator()
    Question.objects.create(dialog=make_dialog(), kind="question", state="resolved", text="?", resolved_by=operator)
    with CaptureQueriesContext(connection) as asked:
        page = browser_of(operator).get("/q4h/").content.decode()
    counts = re.findall(r'tab=(\w+)"[^>]*>[^<]*(?:<span class="count">([\d+]+)<)?', page)
    assert dict(counts) == {"open": "1", "mine": "1", "answered": "99+", "resolved": "1", "cancelled": ""}
    counting = [
        query["sql"] for query in asked.captured_queries if "subquery" in query["sql"] and "question" in query["sql"]
    ]
    assert len(counting) >= 5
    assert all("LIMIT" in sql for sql in counting)
    own = browser_of(dialog.owner).get("/q4h/?tab=mine").content.decode()
    assert own.count("data-row=") == 1


def test_recent_dialogs_include_those_of_groups() -> None:
    rows = titled(4)
    group, other = Group.objects.create(name="team"), make_dialog()
    rows[0].owner.groups.add(group)
    Dialog.objects.filter(pk=other.pk).update(group=group, active_at=rows[2].active_at + timedelta(seconds=1))
    person = type(rows[0].owner).objects.get(pk=rows[0].owner_id)
    assert [dialog.pk for dialog in recent_dialogs(person, 3)] == [rows[3].pk, other.pk, rows[2].pk]
    with CaptureQueriesContext(connection) as asked:
        recent_dialogs(person, 3)
    assert not any(" OR " in query["sql"] for query in asked.captured_queries), "which no index answers"


def test_statistics_read_the_sums_of_days_that_are_over() -> None:
    dialog = make_dialog()
    day = timezone.now().replace(hour=12) - timedelta(days=3)
    for ago, cost in ((3, "1"), (3, "2"), (2, None), (0, "8")):
        generation(dialog, ago=timedelta(days=ago), cost_usd=cost and Decimal(cost), prompt_tokens=10)
    before = costs.tables()
    assert costs.sum_up_days() == 2
    assert costs.sum_up_days() == 0, "each day once"
    assert costs.tables() == before
    assert costs.tables({"day": day.date().isoformat()})[0].rows[0][1].cost_usd == 3
    assert costs.tables({"person": "nobody"})[0].rows == []
    Generation.objects.filter(cost_usd=1).update(cost_usd=100)  # never happens: it shows which row is read
    assert costs.tables() == before


def test_a_finished_day_is_summed_up_and_kept_for_two_weeks() -> None:
    dialog = make_dialog()
    running = generation(dialog, ago=timedelta(days=2), outcome="running", cost_usd=Decimal(1))
    assert costs.sum_up_days() == 0
    Generation.objects.filter(pk=running.pk).update(outcome="kept")
    assert costs.sum_up_days() == 1
    CallTotals.objects.update(began_at=timezone.now() - timedelta(days=costs.DAYS + 1))
    costs.sum_up_days()
    days = {row.began_at.date() for row in CallTotals.objects.all()}
    assert days == {timezone.now().date() - timedelta(days=2)}


def test_statistics_list_those_who_took_most_and_count_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from dialogs.extras.operations import views as ops

    for number in range(4):
        generation(make_dialog(id=f"agent-{number}"), cost_usd=Decimal(number + 1))
    monkeypatch.setattr(ops, "MOST_LINES", 2)
    page = browser_of(make_operator()).get("/statistics/?person=*").content.decode()
    assert "?agent=agent-3" in page and "?agent=agent-1" not in page and "And 2 others, who took less." in page


# -- An index of words -------------------------------------------------------------------------------------------------


def _execute(*statements: str) -> list[Any]:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


def test_an_index_of_words_is_used_or_suggested() -> None:
    rows = titled(2_000)
    texts = [f"Case {n} of {hash(str(n))}" for n in range(2_000)]
    Turn.objects.bulk_create(
        (
            Turn(dialog=row, seq=1, position=1, round_number=1, role="user", status="answered", text=text)
            for row, text in zip(rows, texts, strict=True)
        ),
        batch_size=500,
    )
    if not _execute("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'"):
        with pytest.raises(CommandError, match="contrib"):
            call_command("index_words")
        return
    try:
        call_command("index_words")
        call_command("index_words")  # again does no harm
        analysed()
        result = search.holding_words(Dialog.objects.all(), "1234 of", rows[0].owner, everywhere=True)
        plan = result.explain()
        assert "words_of_turns" in plan and "words_of_titles" in plan, plan
        assert [dialog.title for dialog in result.order_by("pk")] == ["1234 of many"]
    finally:
        call_command("index_words", drop=True)
        _execute("DROP EXTENSION IF EXISTS pg_trgm")
    assert search.holding_words(Dialog.objects.all(), "1234 of", rows[0].owner, everywhere=True).count() == 1


def test_without_the_right_to_extend_all_is_still_found() -> None:
    row = titled(1)[0]
    _execute("DROP EXTENSION IF EXISTS pg_trgm", "CREATE ROLE wordless", "SET ROLE wordless")
    try:
        with pytest.raises(CommandError, match="CREATE EXTENSION pg_trgm"):
            call_command("index_words")
    finally:
        _execute("RESET ROLE", "DROP ROLE wordless")
    assert search.holding_words(Dialog.objects.all(), "0 OF", row.owner, everywhere=True).get() == row
