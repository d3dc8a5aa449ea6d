"""What Prometheus is told of the rows: the right names, the right sums, few queries, and nothing said twice."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from dialogs.extras.operations import running_totals
from dialogs.extras.operations.metrics import SECOND_BOUNDS, TOKEN_BOUNDS, RowsCollector
from dialogs.models import Dialog, Generation, Question
from dominds.worker import heartbeats
from tests.dialogs.calls import generation, snapshot
from tests.dialogs.factories import RewriteFactory, make_dialog

pytestmark = pytest.mark.django_db

MODEL = {"gen_ai_operation_name": "chat", "gen_ai_provider_name": "test", "gen_ai_request_model": "model"}


class Scrape:
    """One scrape after the other of a collector of its own."""

    def __init__(self) -> None:
        self.collector = RowsCollector()
        self.registry = CollectorRegistry()
        self.registry.register(self.collector)

    def __call__(self, *, fresh: bool = True) -> "Scrape":
        if fresh:
            self.collector._read_at = -1e9
        text = generate_latest(self.registry).decode()
        self.samples = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        return self

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples.get((name, tuple(sorted(labels.items()))))


@pytest.fixture
def scrape() -> Scrape:
    return Scrape()


def test_tokens_are_a_histogram_of_what_was_reported(scrape: Scrape) -> None:
    dialog = make_dialog()
    for prompt, completion in ((10, 5), (1_000, 4_096), (None, None)):
        generation(dialog, prompt_tokens=prompt, completion_tokens=completion)
    result = scrape()
    usage = {**MODEL, "gen_ai_token_type": "input"}
    assert result.value("gen_ai_client_token_usage_count", **usage) == 2, "what was not reported is not counted as 0"
    assert result.value("gen_ai_client_token_usage_sum", **usage) == 1_010
    # cumulative: 10 lies under 16, both under 1,024
    assert result.value("gen_ai_client_token_usage_bucket", **usage, le="4.0") == 0
    assert result.value("gen_ai_client_token_usage_bucket", **usage, le="16.0") == 1
    assert result.value("gen_ai_client_token_usage_bucket", **usage, le="1024.0") == 2
    assert result.value("gen_ai_client_token_usage_bucket", **usage, le="+Inf") == 2
    output = {**MODEL, "gen_ai_token_type": "output"}
    assert result.value("gen_ai_client_token_usage_bucket", **output, le="4096.0") == 2, "bounds belong to their bucket"


def test_unknown_shares_and_costs_are_no_zeros(scrape: Scrape) -> None:
    dialog = make_dialog()
    generation(dialog, cache_read_tokens=900, reasoning_tokens=40, cost_usd=Decimal("0.0000000001"))
    generation(dialog, cache_read_tokens=100, cost_usd=Decimal("1.25"))
    generation(dialog, model="local")
    result = scrape()
    assert result.value("dominds_token_shares_total", **MODEL, gen_ai_token_type="cache_read") == 1_000
    assert result.value("dominds_token_shares_total", **MODEL, gen_ai_token_type="reasoning") == 40
    assert result.value("dominds_token_shares_total", **MODEL, gen_ai_token_type="cache_write") is None
    assert result.value("dominds_cost_usd_total", **MODEL) == 1.2500000001
    assert result.value("dominds_cost_usd_total", **{**MODEL, "gen_ai_request_model": "local"}) is None


def test_durations_are_by_model_and_error(scrape: Scrape) -> None:
    dialog = make_dialog()
    generation(dialog, first_token_ms=250)  # two seconds, see there
    generation(dialog, outcome="failed", error_kind="rate_limit")
    result = scrape()
    name = "gen_ai_client_operation_duration_seconds"
    assert result.value(f"{name}_sum", **MODEL, error_type="") == 2
    assert result.value(f"{name}_count", **MODEL, error_type="rate_limit") == 1
    assert result.value(f"{name}_bucket", **MODEL, error_type="", le="1.28") == 0
    assert result.value(f"{name}_bucket", **MODEL, error_type="", le="2.56") == 1
    first = "gen_ai_client_operation_time_to_first_chunk_seconds"
    assert result.value(f"{first}_sum", **MODEL) == 0.25
    assert result.value(f"{first}_bucket", **MODEL, le="0.32") == 1


def test_counters_of_the_product(scrape: Scrape) -> None:
    dialog = make_dialog()
    for outcome in ("kept", "discarded", "discarded"):
        snapshot(generation(dialog, outcome=outcome, purpose="forced_clear"), "critical")
    RewriteFactory.create(dialog=dialog)
    result = scrape()
    assert result.value("dominds_forced_clears_total", outcome="discarded") == 2
    assert result.value("dominds_forced_clears_total", outcome="failed") == 0
    assert result.value("dominds_generations_total", purpose="forced_clear", outcome="kept") == 1
    assert result.value("dominds_compactions_total", policy="breaking") == 1
    assert result.value("dominds_compactions_total", policy="retention") == 0
    assert result.value("dominds_context_judgements_total", level="critical") == 3


def test_gauges_tell_the_moment(scrape: Scrape) -> None:
    healthy, cleared, closed = make_dialog(), make_dialog(), make_dialog()
    for dialog in (healthy, cleared, closed):
        snapshot(generation(dialog), "critical")
        Dialog.objects.filter(pk=dialog.pk).update(report="reported")
    snapshot(generation(healthy), "healthy")
    Dialog.objects.filter(pk=cleared.pk).update(report="awaiting", state="queued")
    Dialog.objects.filter(pk=closed.pk).update(closed_at=timezone.now(), state="closed")
    asked = timezone.now() - timedelta(minutes=3)
    Question.objects.create(dialog=healthy, kind="question", text="Which?", created_at=asked)
    result = scrape()
    assert [result.value("dominds_dialogs", state=state) for state in ("idle", "queued", "closed", "failed")] == [
        1,
        1,
        1,
        0,
    ]
    assert result.value("dominds_context_level", level="healthy") == 1
    assert result.value("dominds_context_level", level="unknown") == 1, "cleared: its level is not known yet"
    assert result.value("dominds_context_level", level="critical") == 0
    assert result.value("dominds_questions_open", kind="question") == 1
    assert result.value("dominds_oldest_question_age_seconds") == pytest.approx(180, abs=20)


def test_the_queue_and_the_parts(scrape: Scrape, redis_client: Any) -> None:
    redis_client.rpush("celery", "a", "b")
    heartbeats.beat("worker", "one", busy=4, waiting=0, unheard=0)
    result = scrape()
    assert result.value("dominds_queue_depth") == 2
    assert result.value("dominds_parts", kind="worker") == 1
    assert result.value("dominds_parts", kind="sweeper") == 0
    assert result.value("dominds_workers_busy") == 4


def test_without_redis_the_queue_is_unknown_and_not_empty(scrape: Scrape, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    result = scrape()
    assert result.value("dominds_queue_depth") is None
    assert result.value("dominds_dialogs", state="idle") == 0


def test_sums_do_not_depend_on_the_number_of_scrapes(scrape: Scrape, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generations that end late, between others, are counted once they have."""
    monkeypatch.setattr(running_totals, "MARGIN", 0)
    dialogs = [make_dialog() for _ in range(3)]
    late: list[Generation] = []
    for number in range(12):
        running = number in (2, 7)
        row = generation(dialogs[number % 3], outcome="running" if running else "kept", prompt_tokens=number + 1)
        if running:
            late.append(row)
        if number == 9:
            Generation.objects.filter(pk=late[0].pk).update(outcome="kept", finished_at=timezone.now())
        scrape()
    Generation.objects.filter(pk=late[1].pk).update(outcome="failed", finished_at=timezone.now())
    step_by_step, at_once = scrape().samples, Scrape()().samples
    assert {key: value for key, value in step_by_step.items() if "age" not in key[0]} == {
        key: value for key, value in at_once.items() if "age" not in key[0]
    }
    assert scrape.value("gen_ai_client_token_usage_sum", **MODEL, gen_ai_token_type="input") == sum(range(1, 13))
    assert scrape.value("dominds_generations_total", purpose="reply", outcome="kept") == 11


def test_a_second_scrape_within_five_seconds_asks_nobody(scrape: Scrape) -> None:
    make_dialog()
    with CaptureQueriesContext(
        connection,
    ) as asked:
        scrape(fresh=False)
    assert 0 < len(asked) < 30
    with CaptureQueriesContext(connection) as asked:
        again = scrape(fresh=False)
    assert len(asked) == 0
    assert again.value("dominds_dialogs", state="idle") == 1


def test_the_address_answers_all_of_it(client: Client) -> None:
    text = client.get("/metrics").content.decode()
    for name in ("gen_ai_client_token_usage", "dominds_dialogs{", "dominds_rows_readable 1.0", "django_http_requests"):
        assert name in text


def test_bounds_are_those_of_the_conventions() -> None:
    assert tuple(4**n for n in range(14)) == TOKEN_BOUNDS
    assert tuple(round(0.01 * 2**n, 2) for n in range(14)) == SECOND_BOUNDS
