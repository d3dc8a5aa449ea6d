"""The operator's dashboard: its numbers against rows, what it offers for a stuck dialog, and who may see it."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from dialogs.actions import interventions, messages
from dialogs.errors import Conflict
from dialogs.extras.operations import dashboard
from dialogs.models import Dialog, Generation, Question, Turn
from dialogs.pages.bar_chart import FLOOR, TOP, Words, stack
from dialogs.runtime.driver import drive
from dominds.worker import heartbeats
from remediation.models import CleanupTask, ContextEvent, Proposal
from tests.dialogs.calls import generation, snapshot
from tests.dialogs.conftest import Script
from tests.dialogs.factories import RewriteFactory, make_dialog, make_operator
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(make_operator(username="ada"))
    return client


# -- numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("hours", [0, 1, 2, 5, 9, 10])
def test_the_first_generation_since_a_moment_is_found_by_halving(hours: int) -> None:
    dialog = make_dialog()
    rows = [generation(dialog, ago=timedelta(hours=10 - n, minutes=-1)) for n in range(10)]  # gaps in ids do not matter
    Generation.objects.filter(pk__in=[rows[3].pk, rows[4].pk]).delete()
    since = timezone.now() - timedelta(hours=hours)
    wanted = {row.pk for row in Generation.objects.filter(started_at__gte=since)}
    results = set(
        Generation.objects.filter(pk__gte=dashboard.first_generation_since(since)).values_list("pk", flat=True)
    )
    assert results == wanted


def test_providers_are_judged_by_the_last_hour_only() -> None:
    dialog = make_dialog()
    generation(dialog, outcome="failed", ago=timedelta(hours=3), error="long ago")
    for outcome in ("kept", "kept", "failed", "crashed", "discarded"):
        generation(dialog, outcome=outcome, error="broke" if outcome == "failed" else "")
    generation(dialog, provider="other", first_token_ms=120)
    other, test = dashboard.recent().providers
    assert (other.provider, other.calls, other.failures) == ("other", 1, 0)
    assert (test.kept, test.failed, test.crashed, test.discarded, test.calls) == (2, 1, 1, 1, 5)
    assert test.last_error == "broke"
    assert test.failed_share == pytest.approx(2 / 5)
    latency = dashboard.recent().latencies[0]
    assert (latency.provider, latency.calls, latency.first_token_p50, latency.whole_p50) == ("other", 1, 120, 2000)


def test_percentiles_of_known_values() -> None:
    # 0, 1, ... 100: the 50th percentile is 50, the 95th 95; nothing known stays unknown
    assert dashboard.percentiles(list(range(101))) == (50, 95)
    assert dashboard.percentiles([7]) == (7, 7)
    assert dashboard.percentiles([]) == (None, None)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=60))
def test_percentiles_lie_among_the_values(values: list[float]) -> None:
    half, most = dashboard.percentiles(values)
    assert half is not None and most is not None
    assert round(min(values)) <= half <= most <= round(max(values))


def test_levels_and_compactions_are_counted_by_hour_and_day() -> None:
    dialog = make_dialog()
    Dialog.objects.update(created_at=timezone.now() - timedelta(days=30))
    for level, ago in (("healthy", 30), ("critical", 3), ("caution", 0), ("caution", 0)):
        snapshot(generation(dialog, ago=timedelta(hours=ago)), level)
    for policy, days in (("breaking", 20), ("breaking", 1), ("retention", 0)):
        RewriteFactory.create(dialog=dialog, policy=policy, created_at=timezone.now() - timedelta(days=days))
    hours = dashboard.levels_by_hour()
    assert len(hours) == 24
    assert hours[-1][1] == {"healthy": 0, "caution": 2, "critical": 0, "unknown": 0}
    assert hours[-4][1]["critical"] == 1
    assert sum(counts["healthy"] for _, counts in hours) == 0, "older than a day"
    by_day = [counts for _, counts in dashboard.compactions_by_day()]
    assert len(by_day) == 14
    assert (by_day[-1]["retention"], by_day[-2]["breaking"]) == (1, 1)
    assert sum(sum(counts.values()) for counts in by_day) == 2


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "Pacific/Kiritimati", "America/St_Johns"])
def test_days_are_cut_and_hours_named_by_the_readers_clock(zone: str) -> None:
    dialog = make_dialog()
    Dialog.objects.update(created_at=timezone.now() - timedelta(days=30))
    with timezone.override(zone):
        midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
        for policy, minutes in (("breaking", -1), ("retention", 1)):
            RewriteFactory.create(dialog=dialog, policy=policy, created_at=midnight + timedelta(minutes=minutes))
        days = dashboard.compactions_by_day()
        assert [day.date() for day, _ in days[-2:]] == [midnight.date() - timedelta(days=1), midnight.date()]
        assert (days[-2][1]["breaking"], days[-2][1]["retention"]) == (1, 0)
        assert (days[-1][1]["breaking"], days[-1][1]["retention"]) == (0, 1)
        hours = [hour for hour, _ in dashboard.levels_by_hour()]
        assert hours[-1] <= timezone.now() < hours[-1] + timedelta(hours=1)
        assert {hour.utcoffset() for hour in hours} <= {timezone.localtime(hour).utcoffset() for hour in hours}


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=30))
def test_bars_stand_on_each_other_and_never_leave_the_drawing(counts: list[tuple[int, int]]) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    table = [(moment + timedelta(hours=n), {"a": a, "b": b}) for n, (a, b) in enumerate(counts)]
    chart = stack(table, Words("%H:00"))
    tallest = max(a + b for a, b in counts)
    top = int(chart.ticks[0][1])
    assert top in range(tallest, max(2, 2 * tallest) + 1)
    assert chart.is_empty == (tallest == 0)
    for (a, b), bar in zip(counts, chart.bars, strict=True):
        assert 0 <= bar.x < bar.x + bar.width <= 100
        assert [block.kind for block in bar.blocks] == [kind for kind, count in (("a", a), ("b", b)) if count]
        y = FLOOR
        for block in bar.blocks:
            assert block.y + block.height == pytest.approx(y, abs=0.1)
            y = block.y
        assert y >= TOP - 0.1
        assert y == pytest.approx(FLOOR - (FLOOR - TOP) * (a + b) / top, abs=0.1)


# -- parts ------------------------------------------------------------------------------------------


def test_a_part_is_heard_late_and_then_forgotten(redis_client: Any) -> None:
    heartbeats.beat("worker", "one", busy=3, waiting=1, unheard=0)
    heartbeats.beat("sweeper", "two")
    result = {part.name: part for part in heartbeats.heartbeats()}
    assert (result["one"].busy, result["one"].waiting, result["one"].is_late) == (3, 1, False)
    redis_client.pexpire("dominds:part:one", (heartbeats.KEPT_SECONDS - 40) * 1000)
    assert next(part for part in heartbeats.heartbeats() if part.name == "one").is_late
    redis_client.delete("dominds:part:one")
    assert [part.name for part in heartbeats.heartbeats()] == ["two"]
    heartbeats.leave("two")
    assert heartbeats.heartbeats() == []


def test_a_worker_that_hears_nothing_of_itself_is_late() -> None:
    heartbeats.beat("worker", "deaf", busy=0, waiting=0, unheard=3)
    assert heartbeats.heartbeats()[0].is_late


def test_a_model_that_a_worker_lets_rest_is_on_the_page(operator: Client) -> None:
    heartbeats.beat(
        "worker",
        "one",
        busy=0,
        waiting=0,
        open_circuits=["stub/m is not called for now: <b>down</b>."],
        unknown="newer",
    )
    page = in_one_line(operator.get("/ops/").content.decode())
    assert re.search(r"stub/m is not called for now: &lt;b&gt;down&lt;/b&gt;\. Reported by one \d+ s ago", page)


def test_without_redis_the_page_still_shows_what_the_database_knows(operator: Client, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = operator.get("/ops/")
    assert answer.status_code == 200
    assert "Redis does not answer" in answer.content.decode()


# -- stuck dialogs ----------------------------------------------------------------------------------


def stuck_dialog(script: Script) -> Dialog:
    """A dialog whose worker vanished in the middle of a call."""
    script({"text": "Hello."})
    dialog = make_dialog()
    messages.post_message(dialog.pk, "Hi")
    Dialog.objects.filter(pk=dialog.pk).update(
        state="generating", lease_owner="gone", epoch=1, lease_until=timezone.now() - timedelta(minutes=2)
    )
    generation(dialog, outcome="running")
    return dialog


def test_stuck_dialogs_are_those_that_nobody_works_on(script: Script) -> None:
    vanished = stuck_dialog(script)
    left, fresh, patient = make_dialog(), make_dialog(), make_dialog()
    long_ago = timezone.now() - timedelta(minutes=2)
    Dialog.objects.filter(pk=left.pk).update(state="queued", active_at=long_ago)
    Dialog.objects.filter(pk=fresh.pk).update(state="queued")
    Dialog.objects.filter(pk=patient.pk).update(
        state="queued", active_at=long_ago, wake_at=timezone.now() + timedelta(minutes=1)
    )
    result = {row.dialog.pk: row.reason for row in dashboard.stuck_dialogs()}
    assert result == {
        vanished.pk: "its worker gone vanished",
        left.pk: "queued, and no worker takes it up",
    }
    assert dashboard.backing_off() == 1


def test_a_call_that_runs_for_minutes_is_shown(script: Script) -> None:
    dialog = stuck_dialog(script)
    Dialog.objects.filter(pk=dialog.pk).update(lease_until=timezone.now() + timedelta(seconds=10))
    assert dashboard.stuck_dialogs() == []
    Generation.objects.filter(dialog=dialog).update(started_at=timezone.now() - timedelta(minutes=6))
    assert "runs for minutes" in dashboard.stuck_dialogs()[0].reason


def test_after_giving_up_a_late_worker_cannot_write(script: Script) -> None:
    dialog, operator = stuck_dialog(script), make_operator()
    interventions.fail(dialog.pk, operator)
    dialog.refresh_from_db()
    assert (dialog.state, dialog.lease_owner, dialog.epoch) == ("failed", "", 2)
    assert "operator gave this message up" in dialog.failure
    assert dialog.turns.get(role="user").status == Turn.Status.FAILED
    assert dialog.generations.get().outcome == "crashed"
    with pytest.raises(Conflict):
        interventions.fail(dialog.pk, operator)
    interventions.retry(dialog.pk, operator)
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert dialog.state == "idle"
    assert dialog.turns.get(role="assistant").text == "Hello."
    notes = LogEntry.objects.filter(object_id=str(dialog.pk)).order_by("pk").values_list("change_message", flat=True)
    assert list(notes) == ["Failed from the dashboard.", "Retried from the dashboard."]


def test_giving_up_ends_one_message_and_the_next_takes_its_turn(script: Script) -> None:
    dialog = stuck_dialog(script)
    messages.post_message(dialog.pk, "And then?")
    interventions.fail(dialog.pk, make_operator())
    drive(dialog.pk)
    assert list(dialog.turns.filter(role="user").values_list("status", flat=True)) == ["failed", "answered"]


@pytest.mark.parametrize("action", ["interrupt", "wake", "fail"])
def test_actions_are_posts_that_come_back_to_the_page(operator: Client, script: Script, action: str) -> None:
    dialog = stuck_dialog(script)
    assert operator.get(f"/ops/{dialog.pk}/{action}/").status_code == 405
    answer = operator.post(f"/ops/{dialog.pk}/{action}/", follow=True)
    assert answer.redirect_chain == [("/ops/", 302)]
    assert 'class="message success"' in answer.content.decode()
    assert LogEntry.objects.filter(object_id=str(dialog.pk), user__username="ada").count() == 1
    dialog.refresh_from_db()
    assert dialog.stop_requested is (action == "interrupt")


def test_what_cannot_be_done_is_said(operator: Client, script: Script) -> None:
    dialog = make_dialog()
    for action in ("wake", "fail", "retry"):
        answer = operator.post(f"/ops/{dialog.pk}/{action}/", follow=True)
        assert 'class="message error"' in answer.content.decode()
    assert operator.post(f"/ops/{dialog.pk}/explode/").status_code == 404


def test_a_cleanup_task_is_told_in_words_and_done_once(operator: Client) -> None:
    dialog = make_dialog()
    task = CleanupTask.objects.create(dialog=dialog, reason="3 context warnings within an hour.")
    ContextEvent.objects.create(dialog=dialog, code=ContextEvent.Code.PRUNER_FAILED, message="It said nothing.")
    Proposal.objects.create(agent=dialog.agent, kind="limit", change={"context_limit": 4_200}, grounds="It is tight.")
    page = operator.get("/ops/").content.decode()
    assert "3 context warnings" in page and "Keep within 4,200 tokens." in page and "no summary was written" in page
    assert "context_limit" not in page and "PRUNER_FAILED" not in page
    operator.post(f"/ops/tasks/{task.pk}/finish/")
    task.refresh_from_db()
    assert task.done_by is not None
    assert (task.state, task.done_by.username) == ("done", "ada")
    answer = operator.post(f"/ops/tasks/{task.pk}/finish/", follow=True)
    assert "done already" in answer.content.decode()


# -- the page ---------------------------------------------------------------------------------------


def test_it_is_for_staff_only(client: Client, script: Script) -> None:
    dialog = stuck_dialog(script)
    addresses = ["/ops/", f"/ops/{dialog.pk}/fail/", "/ops/tasks/1/finish/"]
    assert client.get("/ops/").headers["Location"].startswith("/login/")
    client.force_login(dialog.owner)
    assert client.get("/ops/").status_code == 404
    for address in addresses[1:]:
        assert client.post(address).status_code == 404
    dialog.refresh_from_db()
    assert dialog.state == "generating"


def test_a_count_of_failures_leads_to_them_and_words_find_one(operator: Client, script: Script) -> None:
    dialog = make_dialog()
    generation(dialog)
    failed = [generation(dialog, outcome=outcome, error=f"{outcome} in room 7") for outcome in ("failed", "crashed")]
    led = re.search(r'href="(/admin/dialogs/generation/\?[^"]+)"\s*>2</a>', operator.get("/ops/").content.decode())
    assert led and set(operator.get(led[1]).context["cl"].result_list) == set(failed)
    found = operator.get("/admin/dialogs/generation/", {"q": "crashed in room"}).context["cl"].result_list
    assert list(found) == failed[1:]


def test_it_shows_what_there_is_and_escapes_it(operator: Client, script: Script) -> None:
    dialog = stuck_dialog(script)
    Dialog.objects.filter(pk=dialog.pk).update(title="<script>alert(1)</script>")
    generation(make_dialog(), outcome="failed", error="<img src=x>")
    Question.objects.create(dialog=make_dialog(), kind="question", text="Which?")
    ContextEvent.objects.create(dialog=dialog, code="CONTEXT_OVER_HIT", message="est. 9,000 tokens, over 5,000")
    heartbeats.beat("worker", "worker-7@host", busy=1, waiting=0, unheard=0)
    heartbeats.beat("sweeper", "sweeper@host:1")
    page = operator.get("/ops/").content.decode()
    for shown in (
        "its worker gone vanished",
        "over its limit",
        "over 5,000",
        "worker-7@host",
        "just now",
    ):
        assert shown in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "No worker has reported" not in page


def test_the_page_costs_a_bounded_number_of_queries(
    operator: Client, script: Script, django_assert_max_num_queries: Any
) -> None:
    for _ in range(5):
        dialog = stuck_dialog(script)
        ContextEvent.objects.create(dialog=dialog, code="CONTEXT_WARNING", message="x")
    with django_assert_max_num_queries(50):
        operator.get("/ops/", headers={"HX-Request": "true"})
