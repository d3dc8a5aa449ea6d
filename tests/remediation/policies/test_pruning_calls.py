"""What autocompaction asks its pruning agent, how often, and when not at all."""

import json
import re
from dataclasses import dataclass, field, replace

import pytest

from remediation.config import ContextConfig
from remediation.context import Assistant, Rewritten, Units, total_tokens
from remediation.policies.autocompaction import POLICY
from remediation.policies.newest_whole import with_newest_whole
from remediation.policies.policy import RewriteTask
from tests.remediation.building import model, numbered, prose, system, toolbox, user

FRAME, ANSWER = 900, 256  # tokens of instructions and tools as installed, and of the room for an answer at 2,048


@dataclass
class Agent:
    """A pruning agent that keeps nothing but the first entry, and what it was asked."""

    window: int
    asked: list[tuple[str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __call__(self, instructions: str, content: str) -> str:
        self.asked.append((instructions, content))
        first = self.entries(content)[0]
        kept = [{"id": first["id"], "role": first["role"]}]
        return json.dumps({"prunedConversation": kept, "summary": "They spoke of subjects, and nothing is open."})

    @staticmethod
    def entries(content: str) -> list[dict[str, str]]:
        lines = content.splitlines()
        entries: list[dict[str, str]] = json.loads("\n".join(lines[1:-1]))
        return entries

    def compact(self, units: Units, window: int) -> Rewritten:
        fixed = FRAME + min(ANSWER * window // 2_048, 1_024)
        limit = max(200, window - fixed)
        task = RewriteTask(units, limit, max(200, window // 2 - fixed), fixed, 0, window, ContextConfig())
        assistant = Assistant(self, lambda: self.window, lambda: "n0nce", self.failures.append)
        assert POLICY.rewrite is not None
        return with_newest_whole(task, replace(toolbox(), assistant=assistant), POLICY.rewrite)


def talk_of(tokens: float, message: int, answer: int) -> Units:
    """Return a talk of so many tokens, counted on from a guess: to begin with two messages would make thousands."""
    grown = total_tokens(talk(100, message, answer)) - total_tokens(talk(2, message, answer))
    turns = 2 * int(tokens / grown * 98 / 2 * 0.98)
    while total_tokens(units := talk(turns, message, answer)) < tokens:
        turns += 2
    return units


def talk(turns: int, message: int, answer: int) -> Units:
    said = [(user if n % 2 == 0 else model)(prose(f"subject{n}", answer if n % 2 else message)) for n in range(turns)]
    return numbered(system("Be brief."), *said, user("And now?"))


@pytest.mark.parametrize("window", [2_048, 4_096, 8_192, 32_768])
@pytest.mark.parametrize(("message", "answer"), [(12, 25), (100, 93), (20, 450)])
def test_a_compaction_asks_its_own_model_at_most_twice(window: int, message: int, answer: int) -> None:
    agent, units = Agent(window), talk_of(window * 0.85 - FRAME, message, answer)
    rewritten = agent.compact(units, window)
    assert not rewritten.failure and rewritten.est_after < rewritten.est_before
    assert len(agent.asked) <= 2


def test_no_model_is_asked_where_what_stays_leaves_no_room() -> None:
    """It was told "Aim at about 1 tokens", three times for each message."""
    agent = Agent(2_048)
    rewritten = agent.compact(talk(4, 20, 450), 2_048)
    assert (agent.asked, agent.failures, rewritten.failure) == ([], [], "")
    assert rewritten.est_after < rewritten.est_before


def test_what_stays_in_any_case_is_not_shown() -> None:
    agent, units = Agent(4_096), talk(40, 60, 60)
    rewritten = agent.compact(units, 4_096)
    shown = {entry["id"] for _, content in agent.asked for entry in agent.entries(content)}
    assert shown and shown.isdisjoint({units[0].id, units[1].id, *(unit.id for unit in units[-3:])})
    assert {units[0].id, units[1].id, *(unit.id for unit in units[-3:])} <= {unit.id for unit in rewritten.units}


def test_a_pruning_agent_too_small_for_two_calls_is_not_asked() -> None:
    agent, units = Agent(2_048), talk(60, 100, 93)
    rewritten = agent.compact(units, 16_384)
    assert agent.asked == [] and not rewritten.failure
    assert "only in" in agent.failures[0], "the operator reads why"


def test_an_agent_that_misses_its_number_by_a_sixth_passes() -> None:
    """No model hits a number of tokens: one that overshot by two lost all it had written to the fallback."""

    class Overshooting(Agent):
        def __call__(self, instructions: str, content: str) -> str:
            aim, shown = map(int, re.findall(r"Aim at about (\d+) .*now about (\d+)", instructions)[0])
            share = 7 / 6 * aim / shown
            kept = [
                {**entry, "content": entry["content"][: int(len(entry["content"]) * share)].rsplit(" ", 1)[0] + "."}
                for entry in self.entries(content)
            ]
            return json.dumps({"prunedConversation": kept, "summary": ""})

    agent, units = Overshooting(4_096), talk(10, 220, 220)
    must_take_more_than_the_aim = RewriteTask(units, 2_684, 636, 1_412, 0, 4_096, ContextConfig())
    assistant = Assistant(agent, lambda: 4_096, lambda: "n0nce", agent.failures.append)
    assert POLICY.rewrite is not None
    rewritten = POLICY.rewrite(must_take_more_than_the_aim, replace(toolbox(), assistant=assistant))
    assert (agent.failures, [step.strategy for step in rewritten.steps]) == ([], ["prune"])
