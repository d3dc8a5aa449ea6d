"""What it costs to run: the page says what is computed, and the arithmetic holds where it can be told otherwise."""

from tests.benchmarks.costs import tables as costs
from tests.benchmarks.costs.tables import LIMIT, Need


def test_the_page_says_what_is_computed() -> None:
    page = costs.PAGE.read_text()
    assert [match[2] for match in costs.BLOCK.finditer(page)] == list(costs.TABLES)
    assert costs.filled(page) == page, "run `python -m tests.benchmarks.costs --write`"


def test_need_grows_with_people_and_never_faster() -> None:
    small, large = Need(1_000), Need(10_000)
    assert large.messages_per_second == 10 * small.messages_per_second
    assert small.cores.together < large.cores.together <= 10 * small.cores.together
    assert small.memory_mb < large.memory_mb < 10 * small.memory_mb
    assert large.webs * costs.FILL >= large.cores.web
    assert large.workers * costs.WORKER_ANSWERS >= large.streams


def test_messages_of_a_thousand_people() -> None:
    # 1,000 x 20 messages in 8 hours are 0.69 a second, at the peak four times that; each answer lasts 16 s.
    assert round(Need(1_000).messages_per_second, 2) == 2.78
    assert Need(1_000).streams == 45
    assert Need(1_000).messages_per_month == 440_000


def test_whole_histories_repeat_all_that_was_sent_before() -> None:
    first, second, *_ = costs.whole_history(3)
    assert (first.prompt, first.repeated) == (2_075, 0)
    assert (second.prompt, second.repeated) == (2_550, 2_075)


def test_retention_keeps_within_its_window() -> None:
    calls = list(costs.retention(400))
    assert 400 < len(calls) < 440  # a summary for each rewrite
    assert max(call.prompt for call in calls) <= LIMIT
    assert sum(call.prompt for call in calls) < sum(call.prompt for call in costs.whole_history(400)) / 5


def test_a_cache_is_never_dearer() -> None:
    for model in costs.MODELS:
        for calls in costs.WAYS.values():
            assert costs.dollars(model, calls(100), cached=True) < costs.dollars(model, calls(100), cached=False)
