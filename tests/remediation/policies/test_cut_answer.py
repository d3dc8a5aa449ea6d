"""An answer that was cut while it streamed: it stays, or at least its end does,
in every window and after any history."""

import shlex
import typing
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from dominds.llm.messages import Message, Role
from health.levels import Level
from remediation.budget import Budget, answer_room
from remediation.config import ContextConfig
from remediation.context import Context, Rewritten, Unit, UnitKind, UnitRole, Units, total_tokens
from remediation.decisions import Continue, Fail, Interrupt, Proceed, Rewrite
from remediation.policies.autocompaction import (
    MAX_RESTARTS,
    POLICY,
    REQUEST_PERCENT,
    before_generation,
    while_streaming,
)
from remediation.policies.conformance import assistant_of, manners, toolbox
from remediation.policies.laws import broken_law
from remediation.policies.policy import RewriteTask
from remediation.strategies.cut_answer import HEAD_ARCHIVED

ROOT = Path(__file__).resolve().parents[3]
SMALL, LARGE = [2_048, 4_096, 8_192, 16_384], [32_768, 65_536, 131_072]  # large ones take their time
CHARS = 2  # of a token, as in the densest texts: quick to count
# Prose, tables and source code, as long as they are.
TEXTS = [(ROOT / "docs" / name).read_text() for name in ("glossary.md", "architecture.md", "spec.md", "api.md")]
TEXTS += [Path(module.__file__ or "").read_text() for module in (shlex, typing)]
BOOK = "\n".join(TEXTS) * 12
LEAST_ROOM = 20  # the window divided by this is free for the words that follow a cut


def count(messages: Sequence[Message]) -> int:
    return sum(1 + len(message.text) // CHARS for message in messages)


def unit(number: int, role: UnitRole, text: str, *, pinned: bool = False) -> Unit:
    messages = (Message(Role(role.value), text),)
    return Unit(
        f"turn-{number}", UnitKind.MESSAGE, role, messages, (number,), est_tokens=count(messages), pinned=pinned
    )


@dataclass(frozen=True)
class Room:
    """A window, and what takes its tokens beside the view: instructions and tools, and the room for an answer."""

    window: int
    beside: int
    output: int

    @property
    def fixed(self) -> int:
        return self.beside + self.output

    def context(self, units: Units, *, is_cut: bool, changed: bool, restarts: int) -> Context:
        budget = Budget(
            limit=self.window,
            window=self.window,
            frame=self.beside,
            view=total_tokens(units),
            stays=sum(one.est_tokens for one in units if one.pinned or one is units[-1]),
            answer=self.output,
            counts_answer=True,
        )
        return Context(Level.UNKNOWN, budget, changed=changed, interrupted=is_cut, restarts=restarts)

    def rewritten(self, units: Units, manner: str) -> Rewritten:
        standing = sum(one.est_tokens for one in units if one.pinned or one is units[-1])
        limit, target = self.window - self.fixed, max(1, self.window // 2 - self.fixed)
        task = RewriteTask(units, limit, target, self.fixed, standing, self.window, ContextConfig())
        assert POLICY.rewrite is not None
        return POLICY.rewrite(task, replace(toolbox(assistant=assistant_of(units, manner)), count=count))

    def streamed(self, units: Units, text: str, stretch: int) -> str:
        """What of an answer arrives until it is cut. It is watched after each ``stretch`` of tokens."""
        used, arrived = self.beside + total_tokens(units), 0
        while arrived < len(text):
            arrived, used = arrived + stretch * CHARS, used + stretch
            watched = while_streaming(used, self.window)
            if isinstance(watched, Interrupt):
                break
            assert watched == Continue(), "it was aborted, not cut"
        return text[:arrived]


@settings(max_examples=20)
@given(
    window=st.sampled_from([*SMALL * 4, *LARGE]),
    output_length=st.sampled_from([None, 256, 4_096, 65_536]),
    beside_percent=st.integers(1, 20),
    question_percent=st.integers(1, 20),
    history=st.lists(st.tuples(st.sampled_from(TEXTS), st.integers(1, 25)), max_size=6),
    begins=st.integers(0, len(BOOK) // 12),
    answer_percent=st.integers(10, 400),
    stretch_permille=st.integers(1, 50),
    manner=manners,
)
def test_a_cut_answer_goes_on_and_becomes_one(
    window: int,
    output_length: int | None,
    beside_percent: int,
    question_percent: int,
    history: list[tuple[str, int]],
    begins: int,
    answer_percent: int,
    stretch_permille: int,
    manner: str,
) -> None:
    """As the driver plays it: percents are of the window, and a stretch of the stream is what comes between two
    looks."""
    room = Room(window, window * beside_percent // 100, answer_room(output_length, window))
    roles = (UnitRole.USER, UnitRole.ASSISTANT)
    older = [
        unit(number, roles[number % 2], text[: window * CHARS * percent // 100])
        for number, (text, percent) in enumerate(history)
    ]
    question = unit(90, UnitRole.USER, BOOK[: window * CHARS * question_percent // 100], pinned=True)
    units: Units = (*older, question)
    answer, words = BOOK[begins : begins + window * CHARS * answer_percent // 100], 0
    restarts, is_cut, changed = 0, False, True
    while words < len(answer):
        decision = before_generation(room.context(units, is_cut=is_cut, changed=changed, restarts=restarts))
        if isinstance(decision, Fail):
            assert restarts == MAX_RESTARTS
            return
        if isinstance(decision, Rewrite):
            rewritten = room.rewritten(units, manner)
            check(units, rewritten, room, is_cut)
            units, restarts, changed = rewritten.units, restarts + 1, False
            continue
        part = room.streamed(units, answer[words:], max(1, window * stretch_permille // 1_000))
        assert len(part) == len(answer) - words or len(part) >= window * CHARS // LEAST_ROOM, "it hardly went on"
        units, words = (*units, unit(91 + restarts, UnitRole.ASSISTANT, part)), words + len(part)
        is_cut = changed = True


def check(units: Units, rewritten: Rewritten, room: Room, is_cut: bool) -> None:
    """What holds for a rewrite of these units, of which the newest is an answer that was cut."""
    size = room.fixed + total_tokens(rewritten.units)
    assert size <= room.window * REQUEST_PERCENT // 100 + 60 or not is_cut, "the next words would be cut again"
    if rewritten.failure:
        assert rewritten.units == units
        return
    assert broken_law(units, rewritten.units) == ""
    standing = {(one.id, one.messages) for one in rewritten.units}
    assert set(units) - set(rewritten.removed) <= {one for one in units if (one.id, one.messages) in standing}
    if is_cut:
        cut, last = units[-1], rewritten.units[-1]
        assert (last.role, last.source) == (cut.role, cut.source)
        assert last == cut or (last.text.startswith(HEAD_ARCHIVED) and cut in rewritten.removed)
        assert cut.text.endswith(last.text.removeprefix(HEAD_ARCHIVED))


def test_a_request_that_cannot_fit_is_never_sent() -> None:
    budget = Budget(limit=8_192, window=8_192, frame=310, view=12_000, answer=1_690, counts_answer=True)
    payload = before_generation(Context(Level.UNKNOWN, budget, changed=False))
    assert isinstance(payload, Fail)
    assert "12,310" in payload.message
    assert "8,192" in payload.message
    fits = Context(Level.UNKNOWN, replace(budget, view=7_690), changed=False)
    assert before_generation(fits) == Proceed()
