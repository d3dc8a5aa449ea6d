"""Importance retention: scores, pruning, the line of counts."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.config import ContextConfig, Weights
from remediation.context import Unit, UnitKind, UnitRole, Units, total_tokens
from remediation.policies.policy import RewriteTask
from remediation.policies.retention import manage
from remediation.strategies.importance import (
    describe,
    limit_by_name,
    prune,
    remove,
    retain,
    score_parts,
)
from remediation.strategies.outcome import is_ledger
from tests.harness.complexity import assert_linear
from tests.remediation.building import ids, model, numbered, prose, system, texts, tool, toolbox, user

WEIGHTS = Weights()


def dialog(turns: int, length: int = 10) -> Units:
    talk = (user(prose(f"ask{i}", length)) if i % 2 == 0 else model(prose(f"say{i}", length)) for i in range(turns))
    return numbered(system(), *talk)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (0, 70),  # system: 30 role + 40 recency
        (1, 20),  # user1: 20 + 40 * (1 - 1) / 5
        (2, 18),  # model1: 10 + 40 * (2 - 1) / 5
        (3, 36),  # user2: 20 + 40 * (3 - 1) / 5
        (4, 34),  # model2: 10 + 40 * (4 - 1) / 5
        (5, 60),  # user3: 20 + 40, the newest
    ],
)
def test_the_worked_example_comes_out_exactly(index: int, expected: int) -> None:
    history = (system("Be kind."), user("hello"), model("hi"), user("how are you"), model("well"), user("bye"))
    assert score_parts(history[index], index, 6, WEIGHTS).total == expected


def test_the_worked_example_keeps_the_four_that_the_document_names() -> None:
    history = numbered(system("Be"), user("hello"), model("hi"), user("again"), model("well"), user("bye"))
    pruned = prune(history, 8, WEIGHTS)  # each unit costs 2
    assert texts(pruned.kept) == ["Be", "again", "well", "bye"]


def test_recency_is_never_negative_without_a_system_prompt() -> None:
    assert score_parts(user("first"), 0, 5, WEIGHTS).recency == 0


def test_a_tool_result_scores_as_the_model_does() -> None:
    assert score_parts(tool("done"), 2, 6, WEIGHTS).role == WEIGHTS.role_model


@pytest.mark.parametrize(
    ("unit", "keywords"),
    [
        (model("all quiet"), 0),
        (model("ERROR: Failed"), 15),
        (model("TypeError raised"), 15),
        (model("I ran the command"), 10),
        (tool("nothing to say"), 10),  # a call is an operation, whatever it printed
        (tool("Traceback (most recent call last)"), 25),
    ],
)
def test_keywords_are_worth_at_most_25(unit: Unit, keywords: int) -> None:
    assert score_parts(unit, 1, 3, WEIGHTS).keywords == keywords


def test_very_long_messages_earn_five_points() -> None:
    assert score_parts(model("a" * 1000), 1, 3, WEIGHTS).length == 0
    assert score_parts(model("a" * 1001), 1, 3, WEIGHTS).length == 5


def test_weights_are_settings() -> None:
    assert score_parts(user("newest"), 3, 4, Weights(recency=10, role_user=5)).total == 15


def test_system_prompts_are_always_kept() -> None:
    pruned = prune(dialog(60), 120, WEIGHTS)
    assert pruned.kept[0].role is UnitRole.SYSTEM
    assert not pruned.failure


def test_the_newest_message_is_always_kept() -> None:
    units = (*dialog(60), user("last"))
    assert texts(prune(units, 120, WEIGHTS).kept)[-1] == "last"


def test_token_limits_are_respected() -> None:
    pruned = prune(dialog(1000), 5000, WEIGHTS)
    assert total_tokens(pruned.kept) <= 5000


def test_error_messages_are_prioritised() -> None:
    history = (user("hello"), model("ERROR: Failed"), user("goodbye"))
    assert "ERROR: Failed" in texts(prune(history, 500, WEIGHTS).kept)


def test_old_failures_and_constraints_outlive_newer_pleasantries() -> None:
    units = numbered(
        system(),
        user("Never push to main"),
        model("ERROR: disk full"),
        *(user(f"thanks {i}") for i in range(40)),
        user("go"),
    )
    kept = texts(prune(units, 60, WEIGHTS).kept)
    assert "Never push to main" in kept
    assert "ERROR: disk full" in kept


def test_a_tool_that_failed_is_a_failure_whatever_its_words() -> None:
    quiet = replace(tool("There is no 'a.txt' here."), failed=True)
    assert score_parts(quiet, 1, 3, WEIGHTS).keywords == 25
    units = numbered(system(), quiet, *(user(f"thanks {i}") for i in range(40)), user("go"))
    assert quiet.text in texts(prune(units, 60, WEIGHTS).kept)


def test_failures_leave_half_the_room_to_the_scores() -> None:
    units = numbered(
        system(), *(model(f"error {i}") for i in range(50)), *(user(f"hi {i}") for i in range(20)), user("go")
    )
    kept = texts(prune(units, 66, WEIGHTS).kept)  # 5 + 2 must stay; 59 are free
    assert sum(text.startswith("hi") for text in kept) >= 9


def test_what_fits_is_untouched() -> None:
    units = dialog(5)
    pruned = prune(units, 10_000, WEIGHTS)
    assert pruned.kept is units


def test_an_overflow_of_what_must_stay_names_sizes() -> None:
    units = numbered(system(prose("rules", 50)), user("old"), user(prose("ask", 60)))
    pruned = prune(units, 80, WEIGHTS)
    assert texts(pruned.kept) == [units[0].text, units[2].text]
    assert "est. 51 tokens" in pruned.failure
    assert "est. 61" in pruned.failure
    assert "80 tokens" in pruned.failure


def test_pinned_units_and_the_newest_user_message_stay() -> None:
    units = numbered(
        system(), user("pinned", pinned=True), user("the task"), *(tool(prose("t"), id=f"t{i}") for i in range(9))
    )
    kept = texts(prune(units, 60, WEIGHTS).kept)
    assert {"pinned", "the task"} <= set(kept)


def test_an_empty_history_is_no_error() -> None:
    assert prune((), 10, WEIGHTS).kept == ()


anything = st.lists(
    st.tuples(
        st.sampled_from(["user", "model", "tool", "system"]),
        st.integers(0, 30),
        st.booleans(),
        st.sampled_from(["", "error ", "never do "]),
    ),
    max_size=30,
)


MAKERS: dict[str, Callable[..., Unit]] = {"user": user, "model": model, "tool": tool}


def built(rows: list[tuple[str, int, bool, str]]) -> Units:
    made = []
    for who, length, pinned, prefix in rows:
        text = prefix + prose("x", length)
        made.append(MAKERS[who](text, pinned=pinned and length < 3) if who in MAKERS else system(text))
    return numbered(*made)


@given(anything, st.integers(1, 400))
def test_pruning_keeps_order_splits_nothing_and_respects_the_budget(
    rows: list[tuple[str, int, bool, str]], budget: int
) -> None:
    units = built(rows)
    pruned = prune(units, budget, WEIGHTS)
    positions = [units.index(kept) for kept in pruned.kept]  # the very units, so no tool exchange was split
    assert positions == sorted(positions)
    assert pruned.failure or total_tokens(pruned.kept) <= budget


@given(anything, st.integers(1, 400))
def test_pruning_twice_is_pruning_once(rows: list[tuple[str, int, bool, str]], budget: int) -> None:
    once = prune(built(rows), budget, WEIGHTS)
    twice = prune(once.kept, budget, WEIGHTS)
    assert twice.kept == once.kept


@given(anything, st.integers(1, 400))
def test_what_must_stay_stays(rows: list[tuple[str, int, bool, str]], budget: int) -> None:
    units = built(rows)
    kept = set(ids(prune(units, budget, WEIGHTS).kept))
    assert {u.id for u in units if u.role is UnitRole.SYSTEM or u.pinned} | {u.id for u in units[-1:]} <= kept


def test_the_documents_sentence_comes_out() -> None:
    units = numbered(*(user("a") for _ in range(25)), *(model("b") for _ in range(25)), *(tool("c") for _ in range(10)))
    assert describe(units) == "Previous 50 turns: 25 user messages, 25 model responses, 10 tool calls"


def test_one_is_singular() -> None:
    assert describe((user("a"),)) == "Previous 1 turn: 1 user message, 0 model responses, 0 tool calls"
    assert describe((tool("a"),)) == "Previous 0 turns: 0 user messages, 0 model responses, 1 tool call"


@pytest.mark.parametrize(("tokens", "needs"), [(799, False), (800, False), (801, True)])
def test_pruning_is_due_strictly_above_80_percent(tokens: int, needs: bool) -> None:
    units = (user(prose("x", tokens - 101)),)
    task = RewriteTask(units, 900, 700, fixed=100, standing=0, request_limit=1000, config=ContextConfig())
    assert manage(task, toolbox()).failure.startswith("Nothing to manage") is not needs


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("gemini-2.5-flash", 1_000_000),
        ("claude-4-5-sonnet", 200_000),
        ("GPT-5", 128_000),
        ("qwen3-14b", 100_000),
        ("default", 100_000),
    ],
)
def test_the_documents_table_serves_where_the_catalog_is_silent(name: str, limit: int) -> None:
    assert limit_by_name(name) == limit


def test_the_policys_rewrite_carries_counts_and_key_facts() -> None:
    units = numbered(
        system(),
        user("Never touch /srv/keys.pem"),
        *(model(prose("x")) for _ in range(60)),
        model("Port is 48151."),
        *(model(prose("y")) for _ in range(20)),
        user("go on"),
    )
    rewritten = retain(units, 1500, 750, WEIGHTS, toolbox())
    view = "\n".join(texts(rewritten.units))
    assert not rewritten.failure
    assert rewritten.est_after <= 750
    assert "/srv/keys.pem" in view
    assert "48151" in view
    assert any(u.text.startswith("Previous ") for u in rewritten.units)
    assert rewritten.est_before == sum(u.est_tokens for u in units)


def test_pruning_by_hand_only_removes_what_has_to_go() -> None:
    """18 messages of 14,832 in a window of 16,000: 80 % are 12,800, so 2,032 tokens have to go."""
    units = dialog(18, 200)
    before = total_tokens(units)
    rewritten = remove(units, before * 16_000 // 14_832, before * 12_800 // 14_832, WEIGHTS, toolbox())
    assert rewritten.failure == "" and rewritten.summary == "" and rewritten.ledger == ()
    assert [unit for unit in units if unit in rewritten.units] == list(rewritten.units), "nothing new is written"
    assert set(rewritten.units) | set(rewritten.removed) == set(units)
    assert len(rewritten.removed) <= 4 and rewritten.est_after <= before * 12_800 // 14_832


def test_pruning_by_hand_leaves_earlier_accounts_in_place() -> None:
    units = dialog(81)
    managed = retain(units, 1500, 750, WEIGHTS, toolbox()).units
    accounts = [unit for unit in managed if unit.kind is UnitKind.SUMMARY]
    pruned = remove(managed, 1500, total_tokens(managed) * 9 // 10, WEIGHTS, toolbox())
    assert accounts and pruned.failure == ""
    assert [unit for unit in pruned.units if unit.kind is UnitKind.SUMMARY] == accounts


def test_the_policys_rewrite_can_run_again_and_keeps_one_ledger() -> None:
    facts = ("The port is 48151.", "Settings: /etc/app/main.toml", "Never push to main.", "ERROR E1042: disk is full.")
    units = numbered(system(), *(model(f"{fact} {prose('x')}") for fact in facts), *dialog(60, 30)[1:], user("go on"))
    once = retain(units, 1500, 750, WEIGHTS, toolbox())
    longer = (*once.units[:-1], *numbered(*(model(f"Later {prose('z')}") for _ in range(40))), user("and now"))
    twice = retain(longer, 1500, 750, WEIGHTS, toolbox())
    assert not twice.failure
    assert sum(is_ledger(u) for u in twice.units) == 1
    assert once.ledger
    assert set(once.ledger) <= set(twice.ledger)
    [counted] = [u.text for u in twice.units if u.text.startswith("Previous ")]
    shown = [u for u in twice.units if u.kind is UnitKind.MESSAGE and u.role is not UnitRole.SYSTEM]
    assert int(counted.split()[1]) + len(shown) == 4 + 60 + 40 + 1  # nobody is counted twice or forgotten


def test_the_policys_rewrite_fails_where_nothing_can_go() -> None:
    assert "Nothing to prune: the messages take" in retain(dialog(3), 1000, 900, WEIGHTS, toolbox()).failure
    nearly = dialog(20)  # would be within the target, but not with room for counts and key facts beside it
    size = sum(unit.est_tokens for unit in nearly)
    assert "Nothing to prune" in retain(nearly, size * 10 // 8, size, WEIGHTS, toolbox()).failure
    pinned = numbered(system(), *(user(prose("x", 9), pinned=True) for _ in range(9)))
    assert "must stay" in retain(pinned, 1000, 60, WEIGHTS, toolbox()).failure
    huge = numbered(system(), user(prose("x", 2000)))
    assert "leave no room" in retain(huge, 1000, 500, WEIGHTS, toolbox()).failure


def test_pruning_grows_no_worse_than_n_log_n() -> None:
    def pruned(units: Units) -> None:
        prune(units, sum(unit.est_tokens for unit in units) // 2, WEIGHTS)

    assert_linear(pruned, dialog, 2_000)


def test_hostile_text_is_scored_in_linear_time() -> None:
    started = time.thread_time()
    score_parts(user("error" * 200_000 + "do not" * 100_000), 1, 3, WEIGHTS)
    assert time.thread_time() - started < 1
