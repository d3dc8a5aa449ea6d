"""One request has one size: every page, event, row and answer of the API names the same tokens for it."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from dialogs.actions import rewrite_requests
from dialogs.actions.messages import post_message
from dialogs.context.sent import est_tokens_of
from dialogs.extras.v1.health import calls_of, report_of, usage_of
from dialogs.extras.v1.runs import Run
from dialogs.models import Dialog, Generation, Turn
from dialogs.pages.context_panel import RunLine, panel_of
from dialogs.queries import context_report
from dialogs.queries.export import as_json
from dialogs.queries.usage_totals import statistics_of
from dialogs.runtime.driver import drive
from remediation.models import ContextEvent, RemediationRun
from remediation.policies.registry import by_hand
from tests.dialogs.api.caller import Caller
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.event_lists import event_data
from tests.dialogs.every_state import Zoo
from tests.dialogs.factories import make_dialog, make_operator, send
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
    assert record is not None
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
    assert f"est. {size:,} tokens of" in page
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


def numbers_in(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]{2,}", text)]


# In every state that a dialog can be in


BESIDE_PROMPT = ("reserve", "free")  # parts of the popover's bar that are not of the prompt
SIZE_OF_MOMENT = r"Link to this moment (?:est\. )?"


class Telling:
    """All that is told of one dialog's requests, by whom."""

    def __init__(self, dialog: Dialog, admin: Client) -> None:
        self.dialog, self.path = Dialog.objects.select_related("agent").get(pk=dialog.pk), f"/dialogs/{dialog.pk}"
        self.client, self.caller = browser_of(dialog.owner), Caller(dialog.owner)
        self.admin = admin

    def words(self, address: str) -> str:
        return words_of(self.client, f"/d/{self.dialog.pk}/{address}")

    def export(self) -> Any:
        return json.loads("".join(as_json(self.dialog)))

    def of_admin(self, rows: str, *columns: str) -> dict[int, tuple[int | None, ...]]:
        """Return columns of one of the admin's tables, for the rows of this dialog."""
        page = self.admin.get(f"/admin/{rows}/?q={self.dialog.pk}").content.decode()
        ids = [int(number) for number in re.findall(r'class="field-id"><a[^>]*>(\d+)<', page)]
        cells = [re.findall(rf'class="field-{column}[^"]*">([^<]*)<', page) for column in columns]
        values = zip(*([number_after("^", cell) for cell in column] for column in cells), strict=True)
        return dict(zip(ids, values, strict=True))

    def rewrites(self) -> dict[str, dict[str, int | None]]:
        """Return the sizes before and after each rewrite, by whom they are told."""
        exported, sizes = self.export()["remediations"], ("est_before", "est_after")
        if not exported:
            return {}
        admin = self.of_admin("remediation/remediationrun", *sizes)
        listed = {row["id"]: row for row in self.caller.get(f"{self.path}/remediations")}
        return {
            f"{name} of {run['id']}": {
                "admin": admin[run["id"]][place],
                "export": run[name],
                "list": listed[run["id"]][name],
            }
            for run in exported
            for place, name in enumerate(sizes)
        }

    def next_request(self) -> dict[str, int | None]:
        """Return the size of the request that would be sent now, by whom it is told."""
        context = self.caller.get(f"{self.path}/context")
        parts = [context["est_fixed"], context["recalled"]["est_tokens"], *(u["est_tokens"] for u in context["units"])]
        own = {policy.by_hand.slug for policy in by_hand() if policy.by_hand and policy.name == context["policy"]}
        told: dict[str, int | None] = {
            "context": context["est_tokens"],
            "its parts": sum(parts),
            "page": number_after(SIZE_OF_MOMENT, self.words("context/?at=next")),
            "details": number_after(r"Tokens ", self.words("details/")),
        }
        if size := self.caller.get(f"{self.path}/statistics")["next_request"]:
            told["statistics"] = size["est_input_tokens"]
        for slug in own:
            preview = self.caller.get(f"{self.path}/context?preview={slug}")["preview"]
            told[f"preview {slug}"] = preview["est_before"]
        return told

    def last_report(self) -> dict[str, int | None]:
        """Return the prompt of the last report that counts, by whom it is told; None where none does."""
        health, export = self.caller.get(self.path)["health"], self.export()
        told: dict[str, int | None] = {
            "API": health["prompt_tokens"],
            "export": export["dialog"]["health"]["prompt_tokens"],
            "list": next(r for r in self.caller.get("/dialogs") if r["id"] == str(self.dialog.pk))["health"][
                "prompt_tokens"
            ],
        }
        told["v1"] = report_of(self.run())["prompt_tokens"]
        if events := event_data(self.dialog, "health"):
            told["event"] = events[-1]["prompt_tokens"]
        if health["reason"] in (None, "limit_unknown"):
            page = self.client.get(f"/d/{self.dialog.pk}/").content.decode()
            popover = page[page.index('id="context-popover"') :]
            told["ring"] = number_before(r" tok · ", in_one_line(page))
            told["popover"] = number_before(r" tok · ", in_one_line(popover[popover.index("<summary>") :]))
            told["parts of the popover"] = sum(parts_of_prompt(popover))
            newest = self.dialog.generations.exclude(prompt_tokens=None).exclude(purpose="prune").latest("id")
            told["row"] = newest.prompt_tokens
            told["page"] = number_after(SIZE_OF_MOMENT, self.words(f"context/?at={newest.pk}"))
        return told

    def run(self) -> Run:
        """Return a program's view of the newest message."""
        seq = self.dialog.turns.filter(role=Turn.Role.USER).values_list("seq", flat=True).last() or 0
        return Run(self.dialog.pk, str(self.dialog.agent_id), self.dialog.owner_id, seq, False, 0, 0)

    def answer(self) -> dict[str, int | None]:
        """Return the size of the newest answer's request as it is told to a program, and in the row and its page."""
        run = self.run()
        reply = calls_of(run).filter(purpose=Generation.Purpose.REPLY).order_by("-pk").first()
        if reply is None:
            return {}
        told: dict[str, int | None] = {
            "est. row": est_tokens_of(reply),
            "est. v1": report_of(run)["est_prompt_tokens"],
        }
        return told

    def usage(self) -> dict[str, int | None]:
        """Return the report of the newest answer, as it is told to a program, and in its row."""
        calls = calls_of(self.run()).order_by("-pk")
        usage = usage_of(calls)
        if usage is None:
            return {}
        own = calls.filter(purpose=Generation.Purpose.REPLY).exclude(prompt_tokens=None)
        return {"v1": usage["prompt_tokens"], "row": own.values_list("prompt_tokens", flat=True)[0]}

    def calls(self) -> dict[str, dict[str, int | None]]:
        """Return the prompt of each call as it was reported, by whom it is told."""
        exported, admin = self.export()["generations"], self.of_admin("dialogs/generation", "prompt_tokens")
        listed = {row["id"]: row for row in self.caller.get(f"{self.path}/generations")}
        timeline = {row["generation"]: row for row in self.caller.get(f"{self.path}/timeline")}
        told = {}
        for row in exported:
            usage = row["usage"]
            told[f"call {row['id']}"] = {
                "export": usage and usage["prompt_tokens"],
                "list": (listed[row["id"]]["usage"] or {}).get("prompt_tokens"),
                "admin": admin[row["id"]][0],
                **({"timeline": timeline[row["id"]]["prompt_tokens"]} if row["id"] in timeline else {}),
            }
        return told


def parts_of_prompt(popover: str) -> list[int]:
    listed = re.findall(r'class="kind" data-kind="([^"]*)".*?<strong>([\d,]+)</strong>', popover, re.DOTALL)
    return [int(tokens.replace(",", "")) for kind, tokens in listed if kind not in BESIDE_PROMPT]


def number_after(words: str, text: str) -> int | None:
    found = re.search(words + r"(\d[\d,]*)", text)
    return int(found[1].replace(",", "")) if found else None


def number_before(words: str, text: str) -> int | None:
    found = re.search(r"(\d[\d,]*)" + words, text)
    return int(found[1].replace(",", "")) if found else None


class MoreStates(Zoo):
    """States in which the size of a request depends on more than its messages."""

    def under(self, **agent: Any) -> Dialog:
        """Long enough that its policy has rewritten, and has recalled what it took."""
        self.script(ANSWER, context_length=6_000, **({"kind": "lmstudio"} if not agent else {}))
        dialog = make_dialog(prepare_rewrites=False, **agent)
        for number in range(30):
            send(dialog, LONG.format(n=number))
            if RemediationRun.objects.filter(dialog=dialog).exists():
                break
        return dialog

    def without_a_window(self) -> Dialog:
        self.script(ANSWER, context_length=None)
        return send(self.new(), "one", "two")

    def in_a_small_window(self) -> Dialog:
        self.script(ANSWER, context_length=2_048)
        return send(self.new(), "one", "two")

    def of_a_program(self) -> Dialog:
        self.script(ANSWER)
        dialog = self.new()
        Dialog.objects.filter(pk=dialog.pk).update(origin=Dialog.Origin.KEY)
        return send(dialog, "one", "two")


def differing(told: dict[str, int | None]) -> dict[str, int | None]:
    return told if len(set(told.values())) > 1 else {}


def test_in_every_state_one_request_has_one_size(script: Script) -> None:
    zoo = MoreStates(script)
    dialogs = {name: dialog for name, dialog in zoo.dialogs().items() if name != "without a model"}
    wrong, admin = dict[Any, Any](), browser_of(make_operator())
    for name, dialog in dialogs.items():
        wrong |= wrong_of(name, dialog, admin)
    for policy in ("retention", "summarize", "breaking"):
        wrong |= wrong_of(policy, zoo.under(context_policy=policy, context_limit=5_000), admin)
    wrong |= wrong_of("autocompaction", zoo.under(), admin)
    for make in (zoo.without_a_window, zoo.in_a_small_window, zoo.of_a_program):
        wrong |= wrong_of(make.__name__, make(), admin)
    assert wrong == {}


def wrong_of(name: str, dialog: Dialog, admin: Client) -> dict[str, dict[str, int | None]]:
    telling = Telling(dialog, admin)
    told = {
        "next": telling.next_request(),
        "report": telling.last_report(),
        "answer": telling.answer(),
        "usage": telling.usage(),
        **telling.calls(),
        **telling.rewrites(),
    }
    return {f"{name}, {request}": wrong for request, by in told.items() if (wrong := differing(by))}


@pytest.mark.parametrize("usage", ["none", "estimate"])
@pytest.mark.parametrize("policy", ["none", "retention"])
def test_a_call_keeps_the_size_that_was_told_before_it(script: Script, policy: str, usage: str) -> None:
    script({**ANSWER, "usage": usage})
    dialog = make_dialog(context_policy=policy)
    send(dialog, LONG.format(n=1), LONG.format(n=2))
    post_message(dialog.pk, "And now?")
    told = context_report.next_size(Dialog.objects.get(pk=dialog.pk))
    drive(dialog.pk)
    reply = dialog.generations.latest("id")
    if usage == "none" or policy == "retention":
        assert est_tokens_of(reply) == told


def test_a_failed_call_keeps_the_size_told_before_it(script: Script) -> None:
    script(ANSWER)
    dialog = make_dialog(context_policy="none")
    send(dialog, LONG.format(n=1), LONG.format(n=2))
    script({"error": "auth"})
    post_message(dialog.pk, "And now?")
    told = context_report.next_size(Dialog.objects.get(pk=dialog.pk))
    drive(dialog.pk)
    assert est_tokens_of(dialog.generations.latest("id")) == told


def test_reports_correct_estimates_where_no_policy_counts(script: Script) -> None:
    """The widget was as far off as the first guess for as long as the dialog lasted."""
    dialog = make_dialog(context_policy="none")
    for number in range(6):
        reported = 1_500 + 300 * number  # which is nobody's count
        script({"text": "Understood.", "usage": {"prompt_tokens": reported, "completion_tokens": 3}})
        send(dialog, LONG.format(n=number))
    assert context_report.context_of(Dialog.objects.get(pk=dialog.pk))["est_source"] == "calibrated"
    size = context_report.next_size(Dialog.objects.get(pk=dialog.pk))
    assert size == pytest.approx(3_000, rel=0.05)
    assert dialog.generations.latest("id").est_tokens is None, "nobody asked for the size before"
