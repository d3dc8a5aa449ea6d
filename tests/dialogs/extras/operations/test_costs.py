"""Costs of the whole server, by day, model, agent and person."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo, available_timezones

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from dialogs.actions.messages import create_dialog
from dialogs.context.spending import cost_this_month
from dialogs.extras.operations import costs
from dialogs.extras.operations.costs import Cost, tables
from dialogs.extras.operations.running_totals import PARTS, sum_columns
from dialogs.models import CallTotals, Dialog, EmbeddingUse, Generation, PersonSettings
from dialogs.queries.usage_totals import statistics_of
from dialogs.store.charging import quarter_of
from remediation.spending import Spent
from tests.dialogs.api.caller import Caller
from tests.dialogs.browsing import browser_of
from tests.dialogs.calls import generation
from tests.dialogs.factories import AgentFactory, UserFactory, make_dialog, make_operator
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db


def test_the_same_calls_are_summed_four_times() -> None:
    anna, ben = UserFactory.create(username="anna"), UserFactory.create(username="ben")
    agent = AgentFactory.create()
    first, second = create_dialog(anna, agent.pk), create_dialog(ben, agent.pk)
    generation(first, prompt_tokens=1_000, completion_tokens=10, cache_read_tokens=800, cost_usd=Decimal("0.25"))
    generation(first, prompt_tokens=None, completion_tokens=None)
    generation(first, outcome="failed", prompt_tokens=None, completion_tokens=None)
    generation(second, prompt_tokens=100, completion_tokens=1, cost_usd=Decimal("1.5"))
    EmbeddingUse.objects.create(
        person=ben,
        began_at=timezone.now(),
        agent=agent.pk,
        provider="test",
        model="model",
        calls=2,
        prompt_tokens=30,
        cost_usd="0.5",
    )
    day, model, _, person = tables()
    every = Cost(6, 1_130, 800, 11, Decimal("2.25"), 1)
    assert day.rows == [(timezone.now().date().isoformat(), every)]
    assert model.rows == [("test/model", every)]
    assert person.rows == [
        ("ben", Cost(3, 130, 0, 1, Decimal("2.0"), 0)),
        ("anna", Cost(3, 1_000, 800, 10, Decimal("0.25"), 1)),
    ]


def test_a_bar_leads_to_less_down_to_the_calls() -> None:
    first, second = make_dialog(), make_dialog(id="other")
    spent = generation(first, cost_usd=Decimal("0.25"), prompt_tokens=1_000)
    older = generation(second, ago=timedelta(days=1), model="old", cost_usd=Decimal("1.5"))
    theirs = make_operator()
    operator = browser_of(theirs)
    assert "$0.25" not in operator.get("/statistics/").content.decode(), "one's own comes first"
    assert "$0.25" in operator.get("/statistics/?person=*").content.decode()
    Dialog.objects.update(owner=theirs)
    page = in_one_line(operator.get("/statistics/").content.decode())
    assert '<data value="1.75">' not in page and page.count('<data value="0.25">$0.25</data>') == 4
    day = older.started_at.date().isoformat()
    bar = re.search(rf'<a href="(/statistics/\?day={day})" aria-label="([^"]*)">', page)
    assert bar is not None and bar[2].endswith(" · $1.50")
    page = in_one_line(operator.get(bar[1]).content.decode())
    assert f"/d/{second.pk}/calls/{older.pk}/" in page and f"/calls/{spent.pk}/" not in page
    listed = page.partition("Dialogs of these calls")[2].partition("</table>")[0]
    assert f"/d/{second.pk}/" in listed and "$1.50" in listed and f"/d/{first.pk}/" not in listed
    assert "test/old" in page and page.count("/statistics/?day=") == 2, "of others' and one's own, and no further"
    again = generation(second, ago=timedelta(days=1), model="newer")
    page = in_one_line(operator.get(bar[1]).content.decode())
    assert f'href="/statistics/?day={day}&amp;model=test%2Fold"' in page and f"/calls/{again.pk}/" in page
    page = in_one_line(operator.get("/statistics/?agent=other&model=test/old").content.decode())
    assert 'href="/statistics/?model=test%2Fold" aria-label="Without agent other"' in page
    assert f"/calls/{older.pk}/" in page and f"/calls/{spent.pk}/" not in page
    for odd in ("day=never", "agent=%00", "model=" + "x" * 300):
        assert operator.get(f"/statistics/?{odd}").status_code == 200


def test_a_program_reads_the_same_sums() -> None:
    dialog = make_dialog()
    generation(dialog, cost_usd=Decimal("0.25"), prompt_tokens=1_000)
    line = {
        "calls": 1,
        "prompt_tokens": 1_000,
        "cache_read_tokens": 0,
        "completion_tokens": 0,
        "cost_usd": "0.25",
        "unpriced": 0,
    }
    own = Caller(dialog.owner).get("/statistics")
    assert own["person"] == dialog.owner.username and own["by_person"] == [{"name": own["person"], **line}]
    assert [{**one, "name": ""} for one in own["model"]] == [{"name": "", **line}]
    operator = Caller(make_operator())
    assert operator.get("/statistics")["day"] == []
    assert operator.get("/statistics?person=*")["by_person"] == own["by_person"]
    assert operator.get(f"/statistics?person={dialog.owner.username}&model=none/such")["day"] == []
    other = Caller(UserFactory.create())
    assert other.get(f"/statistics?person={dialog.owner.username}")["day"] == [], "of others only for operators"


def test_what_has_no_known_price_is_never_shown_as_free() -> None:
    """On the statistics, in the settings, in the admin: a sum of nothing known is unknown,
    any other names what it leaves out."""
    local, mixed = make_dialog(id="local"), make_dialog(id="mixed")
    day = timedelta(days=1)
    for _ in range(2):
        generation(local, model="local", ago=day)
    generation(mixed, model="dear", cost_usd=Decimal("1.2"))
    generation(mixed, model="local")
    generation(mixed, model="broken", outcome="failed")
    theirs = make_operator(is_superuser=True)
    browser = browser_of(theirs)
    assert "this month: unknown price." in browser_of(local.owner).get("/settings/costs/").content.decode()
    Dialog.objects.update(owner=theirs)
    page = in_one_line(browser.get("/statistics/").content.decode())
    rows = dict(
        re.findall(r"/statistics/\?(?:model|agent)=([^\"]*)\".*?</td> ?<td class=\"right\"> ?(.*?) ?</td>", page)
    )
    rest = '<data value="1.20">$1.20</data> <span class="muted rest">and 1 call of unknown price</span>'
    assert (rows["local"], rows["test%2Flocal"], rows["mixed"]) == ("unknown price", "unknown price", rest)
    assert rows["test%2Fbroken"] == '<data value="0.00">$0.00</data>'  # refused before it cost anything
    assert "Not in the bars: 3 calls of unknown price." in page
    assert re.search(r"\$1\.20 · 1 call of unknown price ?</text>", page)
    assert re.search(" · unknown price ?</text>", page)
    for dialog, cost, unpriced in ((local, "0", 2), (mixed, "1.2", 1)):
        Dialog.objects.filter(pk=dialog.pk).update(cost_usd=cost, unpriced_generations=unpriced)
    page = browser.get("/admin/dialogs/dialog/").content.decode()
    assert "unknown price</td>" in page and "$1.20 and 1 call of unknown price</td>" in page


def damage_cost(row: Generation | EmbeddingUse | CallTotals) -> None:
    """Write what no column of Django's takes."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {row._meta.db_table} SET cost_usd = 'NaN' WHERE id = %s", [row.pk])


def test_a_damaged_cost_is_left_out_of_sums_and_counted() -> None:
    dialog = make_dialog()
    one = {"person": dialog.owner, "began_at": timezone.now(), "agent": dialog.agent_id, "provider": "p", "model": "m"}
    tokens = {"prompt_tokens": 0, "cache_read_tokens": 0, "completion_tokens": 0}
    today = timezone.now().replace(hour=0, minute=0)
    for cost in (Decimal("0.25"), Decimal(7)):
        call = generation(dialog, cost_usd=cost)
        use = EmbeddingUse.objects.create(**{**one, "model": str(cost)}, calls=2, cost_usd=cost)
        total = CallTotals.objects.create(
            **{**one, **tokens, "model": str(cost), "began_at": today - timedelta(days=3)},
            calls=4,
            cost_usd=cost,
            unpriced=1,
        )
    damage_cost(call)
    damage_cost(use)
    damage_cost(total)
    page = browser_of(dialog.owner).get("/statistics/").content.decode()
    assert "$0.75" in page and "and 8 calls of unknown price" in in_one_line(page), "1 + 2 + 4, and 1 of the sound sum"
    assert cost_this_month(dialog.owner.pk) == Spent(Decimal("0.50"), 3)
    reported = statistics_of(dialog)["reported"]
    assert (reported["cost_usd"], reported["unpriced"]) == ("0.25", 1)
    assert sum_columns(Generation.objects.all(), ("model",), cost="cost_usd") == {("cost", "model"): PARTS // 4}


def test_everybody_else_sees_their_own(client: Client) -> None:
    person = UserFactory.create(username="anna")
    own, other = create_dialog(person, AgentFactory.create().pk), make_dialog()
    mine = generation(own, cost_usd=Decimal("0.25"))
    theirs = generation(other, model="secret", cost_usd=Decimal("0.5"))
    for address in ("/statistics/", f"/statistics/?person={other.owner}", "/statistics/?model=test/secret"):
        page = browser_of(person).get(address).content.decode()
        assert f"/calls/{theirs.pk}/" not in page and "$0.50" not in page and "By person" not in page
    assert f"/calls/{mine.pk}/" in browser_of(person).get("/statistics/").content.decode()
    operator = browser_of(make_operator())
    assert "$0.50" not in operator.get("/statistics/").content.decode(), "an operator's own come first"
    assert "$0.50" in operator.get("/statistics/?person=*").content.decode()
    assert client.get("/statistics/").status_code == 302


@pytest.mark.parametrize(
    ("zone", "now", "moments"),
    [
        # Half an hour decides: 18:29 UTC is 23:59 in India, 18:30 is midnight.
        ("Asia/Kolkata", "2026-11-10T12:00", {"2026-11-05T18:29": "2026-11-05", "2026-11-05T18:30": "2026-11-06"}),
        ("Asia/Shanghai", "2026-11-10T12:00", {"2026-11-05T15:59": "2026-11-05", "2026-11-05T16:00": "2026-11-06"}),
        ("Asia/Kathmandu", "2026-11-10T12:00", {"2026-11-05T18:14": "2026-11-05", "2026-11-05T18:15": "2026-11-06"}),
        # Clocks go back on 1 November at 06:00 UTC: the day begins at 04:00 UTC, has 25 hours, and ends at 05:00.
        (
            "America/New_York",
            "2026-11-10T12:00",
            {
                "2026-11-01T03:59": "2026-10-31",
                "2026-11-01T04:00": "2026-11-01",
                "2026-11-02T04:59": "2026-11-01",
                "2026-11-02T05:00": "2026-11-02",
            },
        ),
        # And forward on 8 March at 07:00 UTC: that day ends at 04:00, after 23 hours.
        (
            "America/New_York",
            "2026-03-12T12:00",
            {"2026-03-08T05:00": "2026-03-08", "2026-03-09T03:59": "2026-03-08", "2026-03-09T04:00": "2026-03-09"},
        ),
    ],
)
def test_days_of_costs_are_those_of_the_readers_zone(
    zone: str, now: str, moments: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dialog = make_dialog()
    expected: Counter[str] = Counter()
    for number, (moment, day) in enumerate(moments.items()):
        call = generation(dialog, cost_usd=Decimal(10**number), prompt_tokens=1)
        Generation.objects.filter(pk=call.pk).update(started_at=datetime.fromisoformat(f"{moment}+00:00"))
        expected[day] += 10**number
    monkeypatch.setattr(timezone, "now", lambda: datetime.fromisoformat(f"{now}+00:00"))

    def days() -> dict[str, int]:
        with timezone.override(zone):
            shown = {moment.date().isoformat(): cost.cost_usd for moment, cost in costs.by_day(tables()[0])}
            assert len(shown) == costs.DAYS
            for day, cost in expected.items():
                assert costs.tables({"day": day})[0].rows[0][1].cost_usd == cost
            return {day: int(cost) for day, cost in shown.items() if cost}

    assert days() == expected
    assert costs.sum_up_days() == len(moments)
    Generation.objects.update(cost_usd=0)  # never happens: it shows which rows are read
    assert days() == expected


def test_the_days_of_every_zone_begin_at_a_quarter_hour() -> None:
    for name in available_timezones():
        for month in range(1, 13):
            begins = datetime(2026, month, 1, tzinfo=ZoneInfo(name)).astimezone(UTC)
            assert quarter_of(begins) == begins, name


def test_the_page_names_the_zone_of_its_days() -> None:
    dialog = make_dialog()
    generation(dialog, cost_usd=Decimal(1))
    browser = browser_of(dialog.owner)
    assert "days (UTC):" in browser.get("/statistics/").content.decode()
    assert "there is no chart of costs" not in browser.get("/statistics/").content.decode()
    browser.cookies["zone"] = "Asia/Shanghai"
    assert "days (Asia/Shanghai):" in browser.get("/statistics/").content.decode()
    PersonSettings.objects.update_or_create(user=dialog.owner, defaults={"zone": "Asia/Kolkata"})
    assert "days (Asia/Kolkata):" in browser.get("/statistics/").content.decode(), "the choice comes first"


def test_unknown_prices_are_said_in_place_of_a_chart() -> None:
    dialog = make_dialog()
    browser = browser_of(dialog.owner)
    page = in_one_line(browser.get("/statistics/").content.decode())
    assert page.count('<figure class="figure">') == 1 and "no chart of costs" not in page, "nothing was called"
    generation(dialog, prompt_tokens=100)
    page = in_one_line(browser.get("/statistics/").content.decode())
    assert page.count('<figure class="figure">') == 1 and "No call has a known price, so there is no chart" in page
    generation(dialog, cost_usd=Decimal(1))
    page = in_one_line(browser.get("/statistics/").content.decode())
    assert page.count('<figure class="figure">') == 2 and "no chart of costs" not in page
