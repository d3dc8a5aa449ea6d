"""What policies may know before they decide, and by which limit they judge."""

from collections.abc import Callable

import pytest

from dialogs.actions import messages
from dialogs.models import Dialog
from dialogs.runtime.materials import materials_of
from dialogs.runtime.policy_context import context_of
from remediation.decisions import ForceClear, Rewrite
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
