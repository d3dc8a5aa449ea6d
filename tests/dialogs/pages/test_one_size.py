"""One request has one size: every page, event, row and answer of the API names the same tokens for it."""

import re
from typing import Any

import pytest

from dialogs.actions import rewrite_requests
from dialogs.actions.messages import post_message
from dialogs.context.sent import est_tokens_of
from dialogs.models import Dialog, Generation
from dialogs.pages.context_panel import RunLine, panel_of
from dialogs.queries import context_report
from dialogs.queries.usage_totals import statistics_of
from dialogs.runtime.driver import drive
from remediation.models import ContextEvent, RemediationRun
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.event_lists import event_data
from tests.dialogs.factories import make_dialog, send
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "The importer reads the file data/orders-{n}.csv and writes table orders_{n}. It never touches invoices. " * 8
ANSWER: dict[str, Any] = {"text": "Understood. " * 30, "usage": "estimate"}
AGENTS: dict[str, dict[str, Any]] = {
    "autocompaction": {"kind": "lmstudio"},
    "retention": {"context_policy": "retention"},
    "summarize": {"context_policy": "summarize"},
    "breaking": {"context_policy": "breaking", "context_limit": 5_000},  # of a larger window
}


def words_of(client: Any, address: str) -> str:
    return in_one_line(re.sub(r"<[^>]*>", " ", client.get(address).content.decode()))


@pytest.fixture(params=AGENTS)
def rewritten(request: pytest.FixtureRequest, script: Script) -> Dialog:
    """A dialog with recalled text, whose newest message was answered right after a rewrite."""
    agent = dict(AGENTS[request.param])
    kind = {"kind": agent.pop("kind")} if "kind" in agent else {}
    script(ANSWER, context_length=9_000 if request.param == "breaking" else 6_000, **kind)
    dialog = make_dialog(prepare_rewrites=False, **agent)
    for number in range(30):
        send(dialog, LONG.format(n=number))
        if RemediationRun.objects.filter(dialog=dialog).exists():
            break
    dialog.refresh_from_db()
    return dialog


def test_what_a_rewrite_came_to_is_told_the_same_everywhere(rewritten: Dialog) -> None:
    dialog, client = rewritten, browser_of(rewritten.owner)
    run = RemediationRun.objects.filter(dialog=dialog).earliest("id")
    before, after = run.est_before, run.est_after
    reply = dialog.generations.filter(purpose=Generation.Purpose.REPLY, started_at__gt=run.created_at).earliest("id")
    assert est_tokens_of(reply) == after, "what was sent is what was told"
    told = event_data(dialog, "remediation")[0]
    assert (told["est_before"], told["est_after"]) == (before, after)
    for pruned in event_data(dialog, "context:pruned"):
        assert (pruned["original"], pruned["final"], pruned["tokenReduction"]) == (before, after, before - after)
    for event in ContextEvent.objects.filter(dialog=dialog, est_tokens__isnull=False):
        assert event.est_tokens == before
        assert all(number in {before, run.limit} for number in numbers_in(event.message))
    record = run.reward_record
    assert (record["stateBefore"]["estTokens"], record["stateAfter"]["estTokens"]) == (before, after)
    assert record["outcome"]["original_tokens"] - record["outcome"]["tokens_reduced"] == after
    listed = context_report.remediation_json(run)
    assert (listed["est_before"], listed["est_after"]) == (before, after)
    for address in (f"/d/{dialog.pk}/context/", f"/d/{dialog.pk}/archive/{run.pk}/"):
        words = words_of(client, address)
        assert RunLine(run).sizes in words or (f"{before:,}" in words and f"{after:,}" in words), address
    assert RunLine(run).sizes in words_of(client, f"/d/{dialog.pk}/")


def test_the_next_request_has_one_size_on_every_page(rewritten: Dialog) -> None:
    dialog, client = rewritten, browser_of(rewritten.owner)
    seen = context_report.context_of(dialog)
    size = seen["est_tokens"]
    parts = [seen["est_fixed"], seen["recalled"]["est_tokens"], *(unit["est_tokens"] for unit in seen["units"])]
    assert sum(parts) == size
    assert statistics_of(dialog)["next_request"]["est_input_tokens"] == size
    panel = panel_of(dialog)
    assert panel is not None and panel.est_tokens == size
    assert f"{size:,}" in words_of(client, f"/d/{dialog.pk}/details/")
    page = words_of(client, f"/d/{dialog.pk}/context/")
    assert f"est. {size:,} of" in page
    assert ("Recalled" in page) is bool(seen["recalled"]["est_tokens"])
    for verb in ("prune", "summarize"):
        preview = context_report.context_of(dialog, verb)["preview"]
        counted = context_report.context_of(dialog, verb)["est_tokens"]
        assert preview["est_before"] == counted, "a policy may count by its own tokenizer, and then all do"


def test_a_rewrite_by_hand_comes_to_what_its_preview_told(rewritten: Dialog) -> None:
    dialog = rewritten
    send(dialog, LONG.format(n=77))
    preview = context_report.context_of(dialog, "prune")["preview"]
    rewrite_requests.request(dialog.pk, "prune", dialog.owner)
    drive(dialog.pk)
    attempt = RemediationRun.attempts.filter(dialog=dialog).latest("id")
    assert (attempt.est_before, attempt.est_after) == (preview["est_before"], preview["est_after"])
    assert bool(attempt.rejected) is bool(preview["problem"])


def test_a_sent_message_changes_the_size_on_all_pages_at_once(rewritten: Dialog) -> None:
    dialog = rewritten
    post_message(dialog.pk, "And now?")
    dialog.refresh_from_db()
    panel = panel_of(dialog)
    assert panel is not None and panel.est_tokens == context_report.context_of(dialog)["est_tokens"]


def test_pages_tell_a_programs_request_size_without_policy(script: Script) -> None:
    script(ANSWER, context_length=60_000)
    dialog = make_dialog(context_policy="none")
    Dialog.objects.filter(pk=dialog.pk).update(origin=Dialog.Origin.KEY)
    send(dialog, LONG.format(n=1))
    post_message(dialog.pk, "And now?")
    told = context_report.context_of(Dialog.objects.get(pk=dialog.pk))["est_tokens"]
    drive(dialog.pk)
    reply = dialog.generations.latest("id")
    assert est_tokens_of(reply) == told
    assert reply.est_prompt_tokens is None, "nothing is learned from reports where no policy counts"


def numbers_in(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]{2,}", text)]
