"""What a dialog costs: the sum on its page is the server's own, by its list."""

import re
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.actions.messages import create_dialog, post_message
from dialogs.models import Dialog, PersonSettings
from dialogs.runtime.driver import drive
from tests.dialogs.html_tree import in_one_line
from tests.doubles.brains import Prompt, Reply
from tests.doubles.serving import Double
from tests.flows.conftest import Minds, Serve, dialog_with, go_on, say
from tests.flows.doubled import dialog_at, start

pytestmark = pytest.mark.django_db(transaction=True)

OPUS = "anthropic/claude-opus-5-5"  # 4 in, 20 out, 0.20 cached, by the shipped catalog


def asked_for(dialog: Dialog) -> Client:
    resolve = Permission.objects.get(codename="resolve_question")
    dialog.owner.user_permissions.add(resolve)
    client = Client(headers={"Authorization": f"Bearer {create_key(dialog.owner)}"})
    client.force_login(dialog.owner)
    return client


def billed(double: Double) -> Decimal:
    """The server's own sum. A write to its cache costs 1.25 of the input, and no answer here is kept for an hour."""
    total = Decimal(0)
    for usage in (request.usage for request in double.requests if request.usage):
        total += 4 * usage["input_tokens"] + 20 * usage["output_tokens"]
        total += Decimal("0.20") * usage["cache_read_input_tokens"] + 5 * usage["cache_creation_input_tokens"]
    return total / 1_000_000


def talkative(prompt: Prompt) -> Reply:
    return Reply("A long answer that says the same again. " * 60)


def test_the_cost_on_the_page_is_the_servers_own_sum(minds: Minds, monkeypatch: Any) -> None:
    with start(OPUS, talkative) as double:
        dialog = dialog_at(double, minds, monkeypatch, OPUS, instructions="Keep to the log. " * 200)
        for text in ("one", "two", "three"):
            say(dialog, text)
        dialog.refresh_from_db()
        expected = billed(double)
    assert expected > 0
    client = asked_for(dialog)
    page = in_one_line(client.get(f"/d/{dialog.pk}/details/").content.decode())
    shown = re.search(r'<p class="cost"> Cost .*?<data value="([0-9.]+)">', page, re.DOTALL)
    assert shown is not None and Decimal(shown[1]) == expected
    api = client.get(f"/api/dialogs/{dialog.pk}").json()
    assert (Decimal(api["cost_usd"]), api["unpriced_generations"]) == (expected, 0)
    rows = client.get(f"/api/dialogs/{dialog.pk}/generations").json()
    assert sum(Decimal(row["cost_usd"]) for row in rows) == expected
    assert rows[-1]["cache_read_tokens"] > 0 and rows[0]["cache_write_tokens"] > 0
    sums = client.get(f"/api/dialogs/{dialog.pk}/statistics").json()["reported"]
    assert Decimal(sums["cost_usd"]) == expected


# -- Budgets


def billing(serve: Serve, *, pause_seconds: float = 0.0, **agent: Any) -> Dialog:
    """A dollar for each call: a million tokens at a dollar for a million."""
    server = serve(prices=[{"in": 1, "out": 0}])
    server.brain = lambda _: Reply("Done.", usage=(1_000_000, 5), pause_seconds=pause_seconds)
    return dialog_with(server, **agent)


def test_an_exceeded_budget_suspends_until_a_person_raises_it(serve: Serve, staff: User) -> None:
    dialog = billing(serve, dialog_budget_usd=Decimal("1.50"))
    for text in ("one", "two", "three"):
        say(dialog, text)
    assert (dialog.state, dialog.cost_usd) == ("suspended", Decimal(2)), (
        "judged before a call: the second one went over it"
    )
    question = dialog.questions.get()
    assert question.kind == "budget_exceeded"
    assert question.text.startswith("This dialog has cost $2.00, and the budget is $1.50.")
    client = asked_for(dialog)
    assert "Suspended: budget exceeded" in in_one_line(client.get(f"/d/{dialog.pk}/").content.decode())
    page = in_one_line(client.get(f"/q4h/{question.pk}/").content.decode())
    assert "Continue with a raised budget" in page and 'type="text" name="budget_usd" value="3.00"' in page
    operator = Client()
    operator.force_login(staff)
    evidence = in_one_line(operator.get(f"/admin/dialogs/question/{question.pk}/change/").content.decode())
    assert "Budget exceeded" in evidence and "Continue with a raised budget" in evidence
    assert "Clear with this hand-over note" not in evidence
    resolve = f"/api/questions/{question.pk}/resolve"
    for given, reason in (
        ({"action": "retry"}, "raise_budget, close"),
        ({"action": "raise_budget"}, "expected an amount"),
    ):
        refused = client.post(resolve, given, content_type="application/json")
        assert refused.status_code == 400 and reason in refused.json()["error"]["message"]
    too_low = client.post(resolve, {"action": "raise_budget", "budget_usd": "2"}, content_type="application/json")
    assert "spent already" in too_low.json()["error"]["message"]
    raised = client.post(resolve, {"action": "raise_budget", "budget_usd": "2.5"}, content_type="application/json")
    assert raised.status_code == 200, raised.content
    go_on(dialog)
    assert (dialog.state, dialog.cost_usd) == ("idle", Decimal(3)), "the message that waited was answered"
    assert client.get(f"/api/dialogs/{dialog.pk}").json()["budget_usd"] == "2.50"


def test_a_monthly_budget_holds_for_all_dialogs_of_a_person(serve: Serve) -> None:
    first = billing(serve)
    PersonSettings.objects.create(user=first.owner, monthly_budget_usd=Decimal("0.75"))
    second = create_dialog(first.owner, first.agent_id)
    say(first, "one")
    assert (first.state, first.cost_usd) == ("idle", Decimal(1))
    say(second, "one")
    assert (second.state, second.cost_usd) == ("suspended", Decimal(0))
    client = asked_for(second)
    answer = {"action": "raise_budget", "budget_usd": "1.5"}
    question = second.questions.get()
    taken = client.post(f"/q4h/{question.pk}/resolve/", answer)
    assert taken.status_code == 302, taken.content
    go_on(second)
    assert (second.state, second.cost_usd) == ("idle", Decimal(1))
    assert PersonSettings.objects.get(user=first.owner).monthly_budget_usd == Decimal("1.5")
    assert 'this month: <data value="2.00">$2.00</data>, of a budget' in in_one_line(
        client.get("/settings/costs/").content.decode()
    )


def test_messages_at_once_do_not_pass_a_cent(serve: Serve) -> None:
    """Each costs a dollar. The first call is under way when the others would begin: they wait for it, then are asked
    about."""
    first = billing(serve, pause_seconds=0.3)
    PersonSettings.objects.create(user=first.owner, monthly_budget_usd=Decimal("0.01"))
    dialogs = [first, *(create_dialog(first.owner, first.agent_id) for _ in range(4))]
    for dialog in dialogs:
        post_message(dialog.pk, "Hello")
    begin = Barrier(len(dialogs))

    def work(dialog: Dialog) -> None:
        begin.wait()
        drive(dialog.pk)
        connection.close()

    with ThreadPoolExecutor(len(dialogs)) as threads:
        list(threads.map(work, dialogs))
    for dialog in dialogs:
        dialog.refresh_from_db()
    assert sorted(dialog.state for dialog in dialogs) == ["idle", *["suspended"] * 4]
    assert sum(dialog.cost_usd for dialog in dialogs) == 1


def test_calls_of_unknown_price_are_told_and_stop_nothing(serve: Serve) -> None:
    server = serve()
    dialog = dialog_with(server, dialog_budget_usd=Decimal("0.01"))
    say(dialog, "one")
    say(dialog, "two")
    assert (dialog.state, dialog.unpriced_generations) == ("idle", 2)
    assert "unknown price" in in_one_line(asked_for(dialog).get(f"/d/{dialog.pk}/details/").content.decode())
    assert "this month: unknown price." in in_one_line(asked_for(dialog).get("/settings/costs/").content.decode())


# -- Rewrites that pay, or not


CACHED = [{"in": 4, "out": 20, "cached": 0.2, "write": 5}]
BUDGET = 6_000
WAITING = "it would cost more than it saves"


def until_rewritten(serve: Serve, prices: list[dict[str, float]]) -> tuple[Client, Dialog, list[int]]:
    """A dialog that grows by a fortieth of its budget with each message, and the messages after which the page said
    that a rewrite waits."""
    server = serve(context_length=128_000, prices=prices)
    server.brain = lambda _: Reply("A line of the log, and what it means for the voyage. " * 10)
    dialog = dialog_with(server, context_policy="breaking", context_limit=BUDGET)
    client = asked_for(dialog)
    waited: list[int] = []
    for number in range(80):
        say(dialog, "Write on in the log, please.")
        if dialog.remediations.exists():
            return client, dialog, waited
        if WAITING in in_one_line(client.get(f"/d/{dialog.pk}/details/").content.decode()):
            waited.append(number)
    raise AssertionError("It was never rewritten.")


def test_a_rewrite_that_would_cost_more_than_it_saves_waits(serve: Serve) -> None:
    client, dialog, waited = until_rewritten(serve, CACHED)
    run = dialog.remediations.get()
    assert BUDGET * 0.9 < run.est_before <= BUDGET, "put off beyond the warning, and never beyond what the window needs"
    assert len(waited) >= 2, "the page said why"
    side_calls = list(dialog.generations.filter(purpose="summary"))
    assert side_calls and all(call.cost_usd for call in side_calls)
    assert dialog.cost_usd == sum(call.cost_usd or 0 for call in dialog.generations.all())
    saved = run.est_before - run.est_after
    assert run.saving_usd == saved * Decimal("0.2") / 1_000_000
    assert run.reread_usd == run.est_after * Decimal("4.8") / 1_000_000
    page = in_one_line(client.get(f"/d/{dialog.pk}/").content.decode())
    assert f"Saves est. {saved:,} cached tokens" in page and "pays after" in page
    message = client.get(f"/api/dialogs/{dialog.pk}/remediations").json()[0]
    assert Decimal(message["reread_usd"]) == run.reread_usd


def test_without_a_cheaper_cache_nothing_waits(serve: Serve) -> None:
    _, dialog, waited = until_rewritten(serve, [{"in": 4, "out": 20}])
    run = dialog.remediations.get()
    assert BUDGET * 0.8 < run.est_before < BUDGET * 0.9 and not waited
    assert run.saving_usd is None
