"""What policies may know before they decide, and by which limit they judge."""

from collections.abc import Callable

import pytest

from dialogs.actions import messages
from dialogs.context.served import resolve_served
from dialogs.context.tool_calls import Result
from dialogs.models import Dialog
from dialogs.runtime.materials import materials_of
from dialogs.runtime.oversized_results import fit, judge_results
from dialogs.runtime.policy_context import context_of
from remediation.decisions import ForceClear, Rewrite
from remediation.models import RemediationRun
from remediation.policies import decide
from tests.dialogs.factories import make_dialog, send

pytestmark = pytest.mark.django_db(transaction=True)

Script = Callable[..., None]


def next_decision(script: Script, policy: str, reported: int, words: int) -> ForceClear | Rewrite:
    """After an answer whose report is ``reported`` prompt tokens, in a window of 8,000: critical begins above 7,200."""
    script({"text": "Noted.", "usage": {"prompt_tokens": reported, "completion_tokens": 2}}, context_length=8_000)
    dialog = send(
        make_dialog(context_policy=policy, context_limit=20_000), "The cart of wool came late. " * (words // 6)
    )
    Dialog.objects.filter(pk=dialog.pk).update(calibration_fit=None)  # the estimate has learned nothing from the report
    messages.post_message(dialog.pk, "Go on.")
    dialog = Dialog.objects.select_related("agent").get(pk=dialog.pk)
    served, view, _, sizes = materials_of(dialog)
    decision = decide(served.policy, context_of(dialog, served, view, sizes))
    assert isinstance(decision, ForceClear | Rewrite)
    return decision


@pytest.mark.parametrize("policy", ["retention", "breaking"])
def test_a_policy_goes_before_a_clear_where_the_report_is_critical(script: Script, policy: str) -> None:
    decision = next_decision(script, policy, reported=7_300, words=3_600)
    assert isinstance(decision, Rewrite) and decision.policy == policy
    assert isinstance(next_decision(script, policy, reported=7_300, words=1_200), ForceClear), "it would not help"


@pytest.mark.parametrize(("tool", "rewrites"), [("list_files", 3), ("complete_milestone", 15)])
def test_a_loop_that_fresh_starts_do_not_end_fails_its_message(script: Script, tool: str, rewrites: int) -> None:
    script({"tool_calls": [{"name": tool, "arguments": {"summary": "Port"}}]}, context_length=32_000)
    dialog = send(make_dialog(context_policy="breaking", tools=["list_files"]), "Look until there is something new.")
    assert dialog.state == "failed" and "made the same calls 15 times" in dialog.failure
    assert RemediationRun.objects.filter(dialog=dialog).count() <= rewrites


RESULT = Result("The cart of wool came late. " * 900)  # 25,200 characters, some 6,300 tokens


@pytest.mark.parametrize("policy", ["none", "retention"])
def test_results_are_put_aside_once_the_window_is_full(script: Script, policy: str) -> None:
    script({"text": "Noted."}, context_length=32_768)
    dialog = make_dialog(context_policy=policy)
    judged = judge_results(dialog, resolve_served(dialog), {f"call-{number}": RESULT for number in range(6)})
    assert [one.instead is None for one in judged.values()] == [True] * 4 + [False] * 2
    full = send(make_dialog(context_policy="none"), RESULT.text * 4)
    assert fit(full, "call", RESULT).text.startswith("The result has 25,200 characters")
