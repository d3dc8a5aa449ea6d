from collections.abc import Sequence

import pytest

from dominds.llm.messages import Message, Role, ToolCall
from remediation.config import ContextConfig
from remediation.context import Unit, UnitKind, UnitRole
from remediation.evaluation.policies import POLICIES, toolbox_of
from remediation.policies.policy import RewriteTask
from remediation.similarity.embeddings import LexicalEmbedder
from remediation.tokens.counting import counter_for

TOOLBOX = toolbox_of(counter_for("gpt-4", "characters"), LexicalEmbedder())
AMPLE, SCARCE = (100_000, 50_000), (100, 50)  # the limit, and the aim, in tokens
SHORT, LONG = "ok", "x" * 600


def unit(number: int, role: UnitRole, *messages: Message) -> Unit:
    return Unit(str(number), UnitKind.MESSAGE, role, messages, (number,), est_tokens=TOOLBOX.count(messages))


def step(number: int, result: str) -> Unit:
    call = ToolCall(f"c{number}", "read_file", f'{{"path": "{number}.txt"}}')
    answer = Message(Role.TOOL, result, tool_call_id=call.id)
    return unit(number, UnitRole.TOOL, Message(Role.ASSISTANT, f"Reading {number}.", (call,)), answer)


def exchange(number: int) -> list[Unit]:
    asked, said = Message(Role.USER, f"asked {number}"), Message(Role.ASSISTANT, f"said {number}")
    return [unit(number, UnitRole.USER, asked), unit(number + 1, UnitRole.ASSISTANT, said)]


TALK = tuple(one for number in range(0, 40, 2) for one in exchange(number))
TASK = (*exchange(0), *(step(number, LONG if number % 2 else SHORT) for number in range(2, 12)))


def shown(policy: str, units: Sequence[Unit], room: tuple[int, int] = AMPLE) -> list[str]:
    rewrite = POLICIES[policy].rewrite
    assert rewrite is not None
    limit, target = room
    task = RewriteTask(tuple(units), limit, target, 0, 0, limit, ContextConfig())
    return [one.text for one in rewrite(task, TOOLBOX)]


def texts(units: Sequence[Unit]) -> list[str]:
    return [one.text for one in units]


def test_langchain_keeps_the_newest_messages_and_no_call_without_its_results() -> None:
    assert shown("langchain", TALK) == texts(TALK[-20:])
    assert shown("langchain", (*TALK[:3], *TASK[2:], *TALK[:1])) == texts((*TASK[2:], *TALK[:1]))


def test_inspect_trims_a_fifth_behind_the_first_message() -> None:
    assert shown("inspect_trim", TALK) == texts((TALK[0], *TALK[-31:]))


def test_inspect_removes_the_results_of_all_but_three_calls() -> None:
    edited = shown("inspect_edit", TASK)
    assert [LONG in text for text in edited] == [False] * 9 + [True, False, True]
    assert all("read_file" in text for text in edited[2:])


def test_codex_keeps_what_people_said_and_the_newest() -> None:
    assert shown("codex", TASK) == texts((TASK[0], TASK[-1]))


def test_cliff_keeps_short_results_a_line_a_call_and_the_newest_turns() -> None:
    kept = shown("cliff", TASK)
    assert (kept[:2], kept[-3:]) == (texts(TASK[:2]), texts(TASK[-3:]))
    assert kept[2] == 'Reading 2.\nread_file({"path": "2.txt"})\nok'
    assert kept[3] == 'Reading 3.\nread_file({"path": "3.txt"})'


@pytest.mark.parametrize("policy", ["inspect_trim", "cliff"])
def test_what_exceeds_the_limit_goes_behind_the_first_message(policy: str) -> None:
    kept = shown(policy, TALK, SCARCE)
    assert kept[0] == TALK[0].text
    assert kept[-1] == TALK[-1].text
    assert 2 < len(kept) < len(TALK) / 2
