"""When the next rewrite is near enough to be prepared, and how much room it leaves for what is said until it is due."""

from decimal import Decimal
from typing import Any

import pytest

from dominds.llm.models.prices import Price
from health.levels import Level
from remediation.budget import Budget
from remediation.config import ContextConfig
from remediation.context import Context, Economy
from remediation.policies import autocompaction, breaking, none, retention, summarize
from remediation.policies.ahead import rewrite_ahead
from remediation.policies.policy import Policy, RewriteTask
from remediation.spending import Spending

LIMIT = 10_000
COSTLY = Economy(Price(input=Decimal(3), output=Decimal(15), cached=Decimal("0.03")), requests=1)
SPENT = Spending(dialog=Decimal(1), dialog_budget=Decimal(1))


def context(tokens: int, **more: Any) -> Context:
    share = more.pop("trigger_share", 0.8)
    return Context(Level.HEALTHY, Budget(limit=LIMIT, view=tokens, trigger_share=share), **more)


@pytest.mark.parametrize(
    ("policy", "tokens", "more", "growth"),
    [
        (retention.POLICY, 5_199, {}, None),
        (retention.POLICY, 5_202, {}, 2_799),  # 65 % of 8,001, from which on it rewrites
        (retention.POLICY, 7_900, {}, 101),
        (retention.POLICY, 8_500, {}, 0),  # the answer went over it: the next message would be rewritten
        (summarize.POLICY, 7_900, {}, 101),
        (autocompaction.POLICY, 7_900, {"restarts": 3, "changed": False}, 101),  # both are of the message before
        (breaking.POLICY, 7_900, {}, 101),
        (breaking.POLICY, 6_000, {"trigger_share": 0.5}, 0),
        (breaking.POLICY, 7_900, {"loop_detected": True}, None),  # a fresh start is due, which is another policy's
        (none.POLICY, 9_900, {}, None),
        (retention.POLICY, 7_900, {"spending": SPENT}, None),
        (retention.POLICY, 7_900, {"economy": COSTLY}, 1_101),  # it does not pay before there is need
        (retention.POLICY, 5_300, {"economy": COSTLY}, None),
    ],
)
def test_it_is_near_from_65_percent_of_where_the_policy_rewrites(
    policy: Policy, tokens: int, more: dict[str, Any], growth: int | None
) -> None:
    ahead = rewrite_ahead(policy, context(tokens, **more))
    assert (ahead and ahead.growth) == growth


@pytest.mark.parametrize(
    ("tokens", "limit", "target"),
    [(8_500, 9_000, 4_000), (7_900, 8_899, 3_899), (5_300, 6_299, 2_000)],  # half the usual aim at least
)
def test_what_is_prepared_leaves_room_for_what_is_said_until_then(tokens: int, limit: int, target: int) -> None:
    task = RewriteTask((), 9_000, 4_000, 1_000, 0, LIMIT, ContextConfig())
    ahead = rewrite_ahead(retention.POLICY, context(tokens))
    assert ahead is not None
    room = ahead.leaving_room(task)
    assert (room.limit, room.target, room.request_limit) == (limit, target, LIMIT - ahead.growth)
