"""Two rewrites in a row that gain little: no third one before the limit is near, and a person is told."""

from typing import Any

import pytest

from dialogs.models import Turn
from dialogs.runtime import overflow_history
from dialogs.runtime.materials import materials_of
from dialogs.runtime.policy_context import context_of
from health.levels import Level
from remediation.context import Context
from remediation.decisions import Rewrite
from remediation.models import CleanupTask
from remediation.policies import breaking, decide
from remediation.strategies.headroom import is_poor
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 10_000
HEAVY = 820  # times six words of instructions: with the tools nearly three quarters of the limit


def test_two_poor_rewrites_put_the_next_one_off_and_tell_a_person(script: Script) -> None:
    script({"text": "I have noted that, and go on with the next part of it as you said. " * 6})
    dialog = make_dialog(
        context_policy="breaking", context_limit=LIMIT, instructions="Be careful and kind, always. " * HEAVY
    )
    for number in range(12):
        send(dialog, f"Part {number}: " + "tell me about the boats in the harbour. " * 6)
    sizes = dialog.remediations.order_by("pk").values_list("est_before", "est_after")
    assert [is_poor(before, after, LIMIT) for before, after in sizes] == [False, True, True]  # and then each message
    assert dialog.turns.filter(role=Turn.Role.NOTICE, text=overflow_history.POOR).count() == 1
    assert CleanupTask.objects.filter(dialog=dialog, reason=overflow_history.POOR).count() == 1


@pytest.mark.parametrize(
    ("est_tokens", "more", "is_rewritten"),
    [
        (8_500, {}, False),
        (9_000, {}, False),
        (9_001, {}, True),  # above 90 % there may be no room for the answer
        (8_500, {"poor_rewrites": False}, True),
        (8_500, {"overflowed": True}, True),
        (8_500, {"requested": "break"}, True),
        (8_500, {"loop_detected": True}, True),
    ],
)
def test_only_what_nothing_presses_for_is_put_off(est_tokens: int, more: dict[str, Any], is_rewritten: bool) -> None:
    given: dict[str, Any] = {"est_tokens": est_tokens, "limit": LIMIT, "poor_rewrites": True, **more}
    decision = decide(breaking.POLICY, Context(level=Level.HEALTHY, **given))
    assert isinstance(decision, Rewrite) is is_rewritten


def test_the_policy_is_asked_again_after_a_rewrite_that_gained_much(script: Script) -> None:
    script({"text": "Noted. " * 30})
    dialog = send(make_dialog(context_policy="breaking", context_limit=LIMIT), "Begin.")
    base = {"round_number": 1, "policy": "breaking", "limit": LIMIT, "base_position": 0, "view": [], "removed": []}
    for before, after, were_poor in ((8_100, 7_600, False), (8_100, 7_700, True), (8_100, 3_000, False)):
        dialog.remediations.create(reason="test", est_before=before, est_after=after, **base)
        assert overflow_history.were_poor(dialog) is were_poor
    served, view, _, sizes = materials_of(dialog)
    assert not context_of(dialog, served, view, sizes).poor_rewrites
