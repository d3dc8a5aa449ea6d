"""Baselines for comparison: two simple rules, and five of other projects, written anew from what they publish.

No model is asked here, so rules that write a summary do without it. If a rule exceeds the limit, its oldest units are
dropped, so that all rules are compared within one budget.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dominds.llm.messages import Message, Role, ToolCall
from remediation.context import Toolbox, Unit, UnitRole, Units, total_tokens
from remediation.policies.policy import RewriteTask
from remediation.strategies.outcome import first_user, with_newest

MASKED = "[{tokens} tokens of tool output are no longer shown]"
UNMASKED_UNITS = 3  # the newest units, whose tool output is not masked
LANGCHAIN_MESSAGES = 20  # ``keep`` of SummarizationMiddleware, LangChain 1.0
INSPECT_PRESERVE = 0.8  # of CompactionTrim, Inspect AI
INSPECT_TOOL_USES = 3  # ``keep_tool_uses`` of CompactionEdit, Inspect AI
INSPECT_REMOVED = "(Tool result removed)"
CODEX_TOKENS = 20_000  # people's messages that are left after a local compaction, Codex CLI
CLIFF_TURNS, CLIFF_RESULT_CHARS = 3, 500  # arXiv:2609.26779
CLIFF_SIGNATURE_CHARS = 80


def window(task: RewriteTask, toolbox: Toolbox) -> Units:
    """Keep the newest units that fit, and nothing else."""
    return _newest(task.units, task.target)


def masking(task: RewriteTask, toolbox: Toolbox) -> Units:
    """Replace old tool output by a line with its size, oldest first. If that is not enough, drop the oldest units."""
    masked = list(task.units)
    excess = total_tokens(masked) - task.target
    for index, unit in enumerate(task.units[:-UNMASKED_UNITS]):
        if excess <= 0:
            break
        if unit.role is UnitRole.TOOL:
            masked[index] = _with_results(unit, MASKED.format(tokens=unit.est_tokens), toolbox)
            excess -= unit.est_tokens - masked[index].est_tokens
    return tuple(masked) if excess <= 0 else _newest(masked, task.target)


def langchain(task: RewriteTask, toolbox: Toolbox) -> Units:
    """Keep the newest messages, and calls together with their results, as LangChain's SummarizationMiddleware does.

    Its summary of the others is left out.
    """
    start = len(task.units) - 1
    while start and sum(len(unit.messages) for unit in task.units[start:]) < LANGCHAIN_MESSAGES:
        start -= 1
    return _within(task, task.units[start:])


def inspect_trim(task: RewriteTask, toolbox: Toolbox) -> Units:
    """Keep the beginning up to the first message of a person, and the newest four fifths of the rest, as Inspect AI's
    CompactionTrim does."""
    start = first_user(task.units) + 1
    beginning, rest = task.units[:start], task.units[start:]
    return _within(task, (*beginning, *rest[len(rest) - int(len(rest) * INSPECT_PRESERVE) :]), begins_with=start)


def inspect_edit(task: RewriteTask, toolbox: Toolbox) -> Units:
    """Remove the results of all but the newest tool calls, as Inspect AI's CompactionEdit does."""
    edited = list(task.units)
    for index in [index for index, unit in enumerate(edited) if unit.role is UnitRole.TOOL][:-INSPECT_TOOL_USES]:
        edited[index] = _with_results(edited[index], INSPECT_REMOVED, toolbox)
    return _within(task, edited)


def codex(task: RewriteTask, toolbox: Toolbox) -> Units:
    """Keep people's newest messages and the newest unit, as Codex' local compaction does. Its summary is left out."""
    of_people = [index for index, unit in enumerate(task.units) if unit.role is UnitRole.USER]
    return _newest(task.units, min(task.target, CODEX_TOKENS), of_people)


def cliff(task: RewriteTask, toolbox: Toolbox) -> Units:
    """Keep the first message and the newest turns, and of the rest texts, short results, and a line for each call.

    CliffCompaction's mechanical summary does so.
    """
    start = first_user(task.units) + 1
    turns = [index for index, unit in enumerate(task.units) if unit.role in (UnitRole.ASSISTANT, UnitRole.TOOL)]
    recent = max(start, turns[-CLIFF_TURNS] if len(turns) >= CLIFF_TURNS else 0)
    older = [_in_short(unit, toolbox) if unit.role is UnitRole.TOOL else unit for unit in task.units[start:recent]]
    return _within(task, (*task.units[:start], *older, *task.units[recent:]), begins_with=start)


def _in_short(unit: Unit, toolbox: Toolbox) -> Unit:
    lines: list[str] = []
    for message in unit.messages:
        if message.role is not Role.TOOL or len(message.text) <= CLIFF_RESULT_CHARS:
            lines.append(message.text)
        lines += map(_signature, message.tool_calls)
    messages = (Message(Role.ASSISTANT, "\n".join(filter(None, lines))),)
    return replace(unit, messages=messages, est_tokens=toolbox.count(messages))


def _signature(call: ToolCall) -> str:
    return f"{call.name}({call.arguments[:CLIFF_SIGNATURE_CHARS]})"


def _with_results(unit: Unit, note: str, toolbox: Toolbox) -> Unit:
    """Replace each result that is longer than the note by the note."""
    messages = tuple(
        replace(message, text=note) if message.role is Role.TOOL and len(message.text) > len(note) else message
        for message in unit.messages
    )
    return replace(unit, messages=messages, est_tokens=toolbox.count(messages))


def _within(task: RewriteTask, kept: Sequence[Unit], begins_with: int = 0) -> Units:
    """Drop the oldest units if all exceed the limit. The first ``begins_with`` units stay."""
    return tuple(kept) if total_tokens(kept) <= task.limit else _newest(kept, task.target, always=range(begins_with))


def _newest(units: Sequence[Unit], room: int, among: Iterable[int] | None = None, always: Iterable[int] = ()) -> Units:
    """Keep the newest unit, those at the indices ``always``, and the newest that fit of those at ``among``."""
    candidates = range(len(units)) if among is None else among
    kept = with_newest(tuple(units), {*always, len(units) - 1}, candidates, room)
    return tuple(units[index] for index in sorted(kept))
