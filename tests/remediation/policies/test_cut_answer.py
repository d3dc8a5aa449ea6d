"""An answer that was cut while it streamed: it stays, or at least its end does, in every window and after any history."""

from hypothesis import given, settings
from hypothesis import strategies as st

from dominds.llm.messages import Message, Role
from health.levels import Level
from remediation.config import ContextConfig
from remediation.context import Context, Unit, UnitKind, UnitRole
from remediation.decisions import Fail, Proceed
from remediation.policies.autocompaction import POLICY, REQUEST_PERCENT, before_generation
from remediation.policies.conformance import count, toolbox
from remediation.policies.laws import broken_law
from remediation.policies.policy import RewriteTask


def unit(number: int, role: UnitRole, words: int, *, pinned: bool = False) -> Unit:
    text = " ".join(f"w{number}x{place}" for place in range(words))
    messages = (Message(Role(role.value), text),)
    return Unit(
        f"turn-{number}", UnitKind.MESSAGE, role, messages, (number,), est_tokens=count(messages), pinned=pinned
    )


@settings(max_examples=150)
@given(
    limit=st.sampled_from([2_048, 4_096, 8_192, 16_384]),
    room_percent=st.integers(5, 25),  # for the answer
    fixed_percent=st.integers(1, 20),  # instructions and tools
    question_percent=st.integers(1, 20),
    answer_percent=st.integers(10, 90),
    history=st.lists(st.integers(1, 400), max_size=8),
)
def test_the_end_of_the_answer_stays_word_for_word(
    limit: int, room_percent: int, fixed_percent: int, question_percent: int, answer_percent: int, history: list[int]
) -> None:
    fixed = limit * (room_percent + fixed_percent) // 100
    roles = (UnitRole.USER, UnitRole.ASSISTANT)
    older = [unit(number, roles[number % 2], words) for number, words in enumerate(history)]
    question = unit(90, UnitRole.USER, limit * question_percent // 100, pinned=True)
    answer = unit(91, UnitRole.ASSISTANT, limit * answer_percent // 100)
    units = (*older, question, answer)
    target = max(1, limit // 2 - fixed)
    task = RewriteTask(units, limit - fixed, target, fixed, question.est_tokens, limit, ContextConfig())
    rewritten = POLICY.rewrite(task, toolbox()) if POLICY.rewrite else None
    assert rewritten is not None
    size = fixed + sum(one.est_tokens for one in rewritten.units)
    if rewritten.failure:  # nothing to make smaller: it is small already
        assert fixed + sum(one.est_tokens for one in units) <= limit * 95 // 100
        return
    last = rewritten.units[-1]
    assert last.role is UnitRole.ASSISTANT
    assert last.source == answer.source
    assert answer.text.endswith(last.text.split("\n")[-1])
    assert last.text == answer.text or answer in rewritten.removed
    assert size <= limit * REQUEST_PERCENT // 100 + 60, "or the next words would be cut again"
    assert broken_law(units, rewritten.units) == ""


def test_a_request_that_cannot_fit_is_never_sent() -> None:
    told = before_generation(Context(Level.UNKNOWN, est_tokens=14_000, est_prompt=12_310, limit=8_192, changed=False))
    assert isinstance(told, Fail)
    assert "12,310" in told.message
    assert "8,192" in told.message
    fits = Context(Level.UNKNOWN, est_tokens=9_000, est_prompt=8_000, limit=8_192, changed=False)
    assert before_generation(fits) == Proceed()
