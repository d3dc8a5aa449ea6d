"""The laws of every policy as tests that its author runs, and the views to try them on. Needs pytest and hypothesis.

In a test module: ``class TestMine(PolicyConformance): policy = POLICY``. See ``docs/plugins.md``.
"""

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from hashlib import blake2b
from typing import Any, ClassVar, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dominds.llm.messages import Message, Role, ToolCall
from health.levels import Level
from remediation.budget import Budget
from remediation.config import ContextConfig
from remediation.context import (
    Assistant,
    Context,
    Rewritten,
    Toolbox,
    Unit,
    UnitKind,
    UnitRole,
    Units,
    total_tokens,
)
from remediation.decisions import Decision, Rewrite, StreamDecision, ToolResultDecision
from remediation.policies.laws import broken_law
from remediation.policies.policy import CountingFacts, Policy, RewriteTask
from remediation.policies.registry import own
from remediation.similarity.embeddings import LexicalEmbedder, relevance, similarity
from remediation.strategies.outcome import is_ledger
from remediation.text.marks import BY_RULE

LEXICAL = LexicalEmbedder()
LETTERS = str.maketrans("0123456789abcdef", "bdfghklmnprstvwz")
FIXED_TOKENS = 100  # that instructions and tools take in every task, beside its units
Row = tuple[str, UnitKind, int, bool, int]  # who, kind, priority, pinned, words

# -- Units and toolboxes -----------------------------------------------------------------------------------------------


def count(messages: Sequence[Message]) -> int:
    """Count one token for each word and one for each message, so that sums can be checked by hand."""
    return sum(1 + len(m.text.split()) + sum(len(c.arguments.split()) + 1 for c in m.tool_calls) for m in messages)


def words(text: str) -> int:
    return len(text.split())


def unit(
    text: str,
    role: UnitRole = UnitRole.USER,
    *,
    id: str = "",  # noqa: A002 - the field's name
    kind: UnitKind = UnitKind.MESSAGE,
    priority: int = 3,
    pinned: bool = False,
    source: tuple[int, ...] = (),
) -> Unit:
    message = Message(Role.ASSISTANT if role is UnitRole.ASSISTANT else Role.USER, text)
    return Unit(id or f"u-{text[:24]}", kind, role, (message,), source, priority, "", count((message,)), pinned)


def system(text: str = "You are an agent.") -> Unit:
    return unit(text, UnitRole.SYSTEM, id="system", priority=1)


def tool(output: str, *, id: str = "tool", name: str = "run_check", **more: Any) -> Unit:  # noqa: A002
    call = ToolCall(f"call-{id}", name, "{}")
    messages = (Message(Role.ASSISTANT, tool_calls=(call,)), Message(Role.TOOL, output, tool_call_id=call.id))
    return replace(Unit(id, UnitKind.LOG, UnitRole.TOOL, messages, est_tokens=count(messages)), **more)


def numbered(*units: Unit) -> Units:
    """Number the units: each id ends with the unit's place, and ``source``, where empty, becomes its turn number."""
    return tuple(replace(u, id=f"{u.id}#{i}", source=u.source or (i + 1,)) for i, u in enumerate(units))


def prose(subject: str, length: int = 30) -> str:
    """Write ``length`` words about ``subject``, in sentences of six, unlike those about another subject."""
    digits = blake2b(subject.encode(), digest_size=10).hexdigest()
    filler = itertools.cycle(digits[i : i + 4].translate(LETTERS) for i in range(0, 20, 4))
    words = [subject if i % 6 == 0 else next(filler) for i in range(length)]
    return " ".join(f"{word}." if i % 6 == 5 else word for i, word in enumerate(words))


def view(made: Sequence[Row]) -> Units:
    """Make a view of a system prompt and one unit per row. Kinds ignore the text, so units may be misclassified."""
    units: list[Unit] = [system()]
    for index, (who, kind, priority, pinned, length) in enumerate(made):
        text = prose(f"topic{index % 3}", length)
        if who == "tool":
            units.append(tool(text, id=f"t{index}", priority=priority, pinned=pinned))
        else:
            role = UnitRole.USER if who == "user" else UnitRole.ASSISTANT
            units.append(unit(text, role, kind=kind, priority=priority, pinned=pinned))
    return numbered(*units)


def toolbox(
    *,
    summarise: Callable[[str, int], str] | None = None,
    relevant: Callable[[str], float] | None = None,
    alike: Callable[[str, str], float] | None = None,
    reports: list[tuple[str, int, int]] | None = None,
    assistant: Assistant | None = None,
) -> Toolbox:
    """Make a toolbox that counts words, compares by lexical vectors and has no model to summarise.

    ``relevant`` replaces the score of one text, and ``alike`` that of two. ``reports`` collects the phases.
    """
    ticks = itertools.count()
    return Toolbox(
        count=count,
        summarise=summarise or (lambda text, tokens: ""),
        relevance=lambda texts, query: (
            [relevant(text) for text in texts] if relevant else relevance(texts, query, LEXICAL)
        ),
        similarity=alike or (lambda a, b: similarity(a, b, LEXICAL)),
        clock=lambda: float(next(ticks)),
        report=lambda *report: reports.append(report) if reports is not None else None,
        assistant=assistant,
    )


def task(units: Units, limit: int, target: int) -> RewriteTask:
    newest = units[-1:]
    return RewriteTask(
        units=units,
        limit=limit,
        target=max(1, target),
        fixed=FIXED_TOKENS,
        standing=sum(u.est_tokens for u in units if u.pinned or u in newest),
        request_limit=limit + FIXED_TOKENS,
        config=ContextConfig(),
    )


def assistant_of(units: Units, manner: str) -> Assistant | None:
    """Make a model whose answer is sound ("prunes"), "nonsense" or empty ("silent"); None in any other manner."""
    answers = {
        "prunes": json.dumps(
            {"prunedConversation": [{"id": u.id} for u in units[::2]], "summary": "The rest was old."}
        ),
        "nonsense": "I will think about it. ```{]```",
        "silent": "",
    }
    if manner not in answers:
        return None
    return Assistant(
        ask=lambda _instructions, _text: answers[manner],
        window=lambda: 100_000,
        nonce=lambda: "n0nce",
        failed=lambda _reason: None,
    )


# -- What hypothesis draws ---------------------------------------------------------------------------------------------

rows: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(
        st.sampled_from(["user", "model", "tool"]),
        st.sampled_from([UnitKind.MESSAGE, UnitKind.CODE, UnitKind.PLAN_REF, UnitKind.LOG, UnitKind.OTHER]),
        st.integers(1, 3),
        st.booleans(),
        st.integers(0, 120),
    ),
    max_size=16,
)
limits = st.integers(60, 800)
manners = st.sampled_from(["preview", "prunes", "nonsense", "silent"])
contexts = st.builds(
    Context,
    level=st.sampled_from(list(Level)),
    budget=st.builds(
        Budget,
        limit=st.none() | st.integers(1, 10_000),
        frame=st.integers(0, 5_000),
        view=st.integers(0, 20_000),
        answer=st.integers(0, 1_000),
    ),
    changed=st.booleans(),
    overflowed=st.booleans(),
    restarts=st.integers(0, 4),
    failed_clears=st.integers(0, 4),
    over_hits_last_hour=st.integers(0, 4),
    loop_detected=st.booleans(),
    interrupted=st.booleans(),
)
facts = st.builds(
    CountingFacts,
    window=st.none() | st.integers(1_000, 2_000_000),
    model_id=st.sampled_from(["gpt-5", "qwen3-14b", "a-model-nobody-knows"]),
    tokenizer=st.sampled_from(["", "o200k_base"]),
    agent_limit=st.none() | st.integers(1, 1_000_000),
    llm_type=st.just(""),
    priority=st.integers(1, 3),
    read_config=st.just(ContextConfig),
)

# One method of this class serves the tests of several policies.
lawful = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.differing_executors])


# -- The laws ----------------------------------------------------------------------------------------------------------


class PolicyConformance:
    """The tests of one policy.

    ``keeps_priority_one`` says whether units of priority 1 stay word for word, except in a recovery. A policy that goes
    by a score or by a model's judgement instead sets it to False.
    """

    policy: ClassVar[Policy]
    keeps_priority_one: ClassVar[bool] = True

    def __init_subclass__(cls, **more: Any) -> None:
        """Remove the tests that do not apply to the policy."""
        super().__init_subclass__(**more)
        for name in _inapplicable_tests(cls.policy, cls.keeps_priority_one):
            setattr(cls, name, None)

    def test_it_is_a_policy_with_words_for_people(self) -> None:
        assert isinstance(self.policy, Policy)
        assert self.policy.sentence.endswith("."), "the sentence is a sentence"
        if self.policy.by_hand:
            hand = self.policy.by_hand
            assert hand.label and hand.button and hand.does and hand.hint, "a rewrite by hand needs its words"

    def test_no_other_policy_has_its_name_or_its_verb(self) -> None:
        others = [other for other in own() if other is not self.policy]
        assert self.policy.name not in {other.name for other in others}
        verbs = {other.by_hand.verb for other in others if other.by_hand}
        assert not self.policy.by_hand or self.policy.by_hand.verb not in verbs

    @lawful
    @given(facts)
    def test_its_limit_lies_within_the_window(self, known: CountingFacts) -> None:
        limit = self.policy.limit(known)
        assert limit is None or limit > 0, f"a limit of {limit} tokens"
        if limit is not None and known.window is not None:
            assert limit <= known.window, f"a limit of {limit:,} in a window of {known.window:,}"
        assert isinstance(self.policy.tokenizer(known), str)

    @lawful
    @given(contexts)
    def test_it_asks_for_a_rewrite_only_with_a_limit_and_something_new(self, context: Context) -> None:
        assert self.policy.before_generation is not None
        decision = self.policy.before_generation(context)
        assert isinstance(decision, get_args(Decision))
        assert decision == self.policy.before_generation(context), "the same context, the same decision"
        if isinstance(decision, Rewrite):
            assert context.limit is not None, "nobody knows how small it is to become"
            assert context.changed, "it would be repeated for ever where it does not help"
            assert 0 <= decision.target_tokens <= context.limit
            known = {self.policy.name, *(policy.name for policy in own() if policy.rewrite)}
            assert decision.policy in known, f"no policy {decision.policy} is known"
            assert decision.reason

    def test_a_short_context_is_left_alone(self) -> None:
        assert self.policy.before_generation is not None
        decision = self.policy.before_generation(Context(Level.HEALTHY, Budget(limit=10_000, view=10)))
        assert not isinstance(decision, Rewrite)

    @lawful
    @given(st.integers(0, 20_000), st.none() | st.integers(1, 10_000), contexts)
    def test_its_other_answers_are_of_their_kinds(self, tokens: int, limit: int | None, context: Context) -> None:
        if self.policy.while_streaming:
            assert isinstance(self.policy.while_streaming(tokens, limit), get_args(StreamDecision))
        if self.policy.on_tool_result:
            assert isinstance(self.policy.on_tool_result(context, tokens), get_args(ToolResultDecision))

    @lawful
    @given(rows, limits, st.integers(1, 99), manners)
    def test_a_rewrite_keeps_the_laws_or_changes_nothing(
        self, made: list[Row], limit: int, percent: int, manner: str
    ) -> None:
        units = view(made)
        check_rewrite(units, self.rewritten(units, limit, limit * percent // 100, manner), limit)

    @lawful
    @given(rows, limits, manners)
    def test_important_units_stay_word_for_word(self, made: list[Row], limit: int, manner: str) -> None:
        units = view(made)
        rewritten = self.rewritten(units, limit, limit // 2, manner)
        if not (rewritten.failure or rewritten.recovered):
            important = [u for u in units if u.priority == 1]
            assert [u for u in rewritten.units if u in important] == important

    @lawful
    @given(rows, limits, manners)
    def test_the_same_task_gives_the_same_view(self, made: list[Row], limit: int, manner: str) -> None:
        units = view(made)
        first, second = (self.rewritten(units, limit, limit // 2, manner) for _ in range(2))
        for item in fields(Rewritten):
            assert getattr(first, item.name) == getattr(second, item.name), f"{item.name} differs"

    @lawful
    @given(rows, manners)
    def test_rewriting_the_rewritten_keeps_the_laws(self, made: list[Row], manner: str) -> None:
        units = view(made)
        for _ in range(3):
            rewritten = self.rewritten(units, 400, 200, manner)
            check_rewrite(units, rewritten, 400)
            if rewritten.failure:
                break
            units = rewritten.units

    def test_a_long_dialog_becomes_smaller(self) -> None:
        rows = (("user" if i % 2 == 0 else "model", UnitKind.MESSAGE, 3, False, 40) for i in range(60))
        units = view([*rows, ("user", UnitKind.MESSAGE, 3, False, 5)])
        rewritten = self.rewritten(units, 1_200, 600, "preview")
        assert not rewritten.failure, rewritten.failure
        check_rewrite(units, rewritten, 1_200)

    @pytest.mark.parametrize("units", [(), numbered(system()), numbered(system(), unit("now"))])
    def test_a_view_with_nothing_to_spare_is_left_as_it_is(self, units: Units) -> None:
        rewritten = self.rewritten(units, 400, 200, "preview")
        assert rewritten.failure, "says why it changes nothing"
        assert rewritten.units == units

    def rewritten(self, units: Units, limit: int, target: int, manner: str) -> Rewritten:
        assert self.policy.rewrite is not None
        return self.policy.rewrite(task(units, limit, target), toolbox(assistant=assistant_of(units, manner)))


def _inapplicable_tests(policy: Policy, keeps_priority_one: bool) -> list[str]:
    """Return the names of the tests that do not apply to the policy."""
    laws = PolicyConformance
    tests: list[Callable[..., None]] = []
    if policy.rewrite is None:
        tests += [
            laws.test_a_rewrite_keeps_the_laws_or_changes_nothing,
            laws.test_important_units_stay_word_for_word,
            laws.test_the_same_task_gives_the_same_view,
            laws.test_rewriting_the_rewritten_keeps_the_laws,
            laws.test_a_long_dialog_becomes_smaller,
            laws.test_a_view_with_nothing_to_spare_is_left_as_it_is,
        ]
    if policy.before_generation is None:
        tests += [
            laws.test_it_asks_for_a_rewrite_only_with_a_limit_and_something_new,
            laws.test_a_short_context_is_left_alone,
        ]
    if not (policy.while_streaming or policy.on_tool_result):
        tests.append(laws.test_its_other_answers_are_of_their_kinds)
    if not keeps_priority_one:
        tests.append(laws.test_important_units_stay_word_for_word)
    return [test.__name__ for test in tests]


def check_rewrite(before: Units, rewritten: Rewritten, limit: int) -> None:
    """Check the laws that hold for every outcome, failed or not. ``limit`` is in tokens, for the units alone."""
    if rewritten.failure:
        assert rewritten.units == before, "a failed rewrite changes nothing"
        assert rewritten.removed == ()
        return
    after = rewritten.units
    broken = broken_law(before, after)
    assert not broken, f"it {broken}"
    assert (rewritten.est_before, rewritten.est_after) == (total_tokens(before), total_tokens(after))
    assert rewritten.est_after <= limit, f"{rewritten.est_after} tokens where {limit} are allowed"
    standing = {(u.id, u.messages) for u in after}
    gone = tuple(u for u in before if (u.id, u.messages) not in standing)
    assert rewritten.removed == gone, "`removed` holds what the archive must show, word for word"
    places = {u.id: index for index, u in enumerate(before)}
    kept = [places[u.id] for u in after if u.id in places]
    assert kept == sorted(kept), "what stays keeps its order"
    accounts = [u.source[0] for u in after if u.kind is UnitKind.SUMMARY and u.source and not is_ledger(u)]
    assert accounts == sorted(accounts), "accounts stand in the order of their turns"
    lines = [line for u in after if u.kind is UnitKind.SUMMARY for line in u.text.splitlines()]
    said = [line for line in lines if len(line) > 40 and line != BY_RULE]  # BY_RULE may stand in every account
    assert len(said) == len(set(said)), "no account or ledger says the same line twice"
    assert {seq for u in after for seq in u.source} <= {seq for u in before for seq in u.source}
    assert all(u.est_tokens == count(u.messages) for u in after), "sizes are counted by `toolbox.count`"
