"""Summaries by recency, and pruning only where it is needed, as a person or a program asks for them."""

from dataclasses import replace

from remediation.config import ContextConfig, Retention, Weights
from remediation.context import Units, total_tokens
from remediation.policies import retention, summarize
from remediation.policies.policy import RewriteTask
from remediation.strategies.outcome import is_ledger
from tests.remediation.building import ids, model, numbered, prose, system, toolbox, user

FIXED = 400


def dialog(turns: int, length: int = 20) -> Units:
    talk = (user(prose(f"ask{i}", length)) if i % 2 == 0 else model(prose(f"say{i}", length)) for i in range(turns))
    return numbered(system(), *talk, user("And now?"))


def task(units: Units, limit: int, percent: int) -> RewriteTask:
    """``limit`` is of the whole request."""
    target = max(1, limit * percent // 100 - FIXED)
    return RewriteTask(units, limit - FIXED, target, FIXED, 0, limit, ContextConfig())


def test_the_newest_ten_stay_and_one_text_stands_for_the_others() -> None:
    units = dialog(60)
    rewritten = summarize.rewrite(task(units, 4_000, 50), toolbox())
    assert not rewritten.failure
    assert ids(rewritten.units)[-10:] == ids(units)[-10:]
    written = [unit for unit in rewritten.units if unit.id not in ids(units) and not is_ledger(unit)]
    assert len(written) == 1
    assert written[0].text.startswith("Previous 51 turns: 26 user messages, 25 model responses, 0 tool calls\n")
    assert "ask0" in written[0].text, "and a summary of what they said"
    assert {step.strategy for step in rewritten.steps} == {"summarize"}
    assert {unit.id for unit in rewritten.removed} == rewritten.steps[0].touched


def test_fewer_stay_where_they_are_long() -> None:
    units = dialog(20, 200)
    rewritten = summarize.rewrite(task(units, 4_000, 50), toolbox())
    assert not rewritten.failure
    assert rewritten.est_after <= 3_600
    assert ids(rewritten.units)[-1:] == ids(units)[-1:]
    assert not set(ids(units)[-10:]) <= set(ids(rewritten.units))


def test_a_short_dialog_is_left_as_it_is() -> None:
    units = dialog(8)
    rewritten = summarize.rewrite(task(units, 4_000, 50), toolbox())
    assert rewritten.units is units
    assert "no more than 10 messages" in rewritten.failure


def test_management_prunes_above_80_percent_alone() -> None:
    units = dialog(100)
    whole = total_tokens(units) + FIXED
    roomy = retention.manage(task(units, whole * 5 // 4 + 1, 80), toolbox())
    assert roomy.units is units
    assert "pruning begins above 80 %" in roomy.failure
    pruned = retention.manage(task(units, whole * 5 // 4 - 5, 80), toolbox())
    assert not pruned.failure
    assert pruned.removed
    assert pruned.est_after + FIXED <= whole


def test_what_retention_keeps_follows_its_weights() -> None:
    """The old exchanges speak of commands, the newer ones of nothing that counts."""
    talk = [
        author(f"{prose(f'{who}{turn}', 40)} {'command' if turn < 20 else ''}")
        for turn in range(40)
        for who, author in (("ask", user), ("say", model))
    ]
    asked = task(numbered(system(), *talk, user("And now?")), 4_000, 50)
    kept = []
    for weights in (Weights(recency=70, operations=0), Weights(recency=0, operations=60)):
        config = ContextConfig(retention=Retention(weights=weights))
        kept.append(set(ids(retention.rewrite(replace(asked, config=config), toolbox()).units)))
    assert kept[0] != kept[1]
