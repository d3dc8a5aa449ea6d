"""Autocompaction's pruning agent, as far as it is rules: the prompt, reading the reply, applying it, and the fallback.

A model writes the reply, so nothing in it is trusted: what must stay is kept whatever the reply says, every text passes
the gates that need no model, and the key facts of what goes are carried in the ledger.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from remediation.budget import with_its_answer
from remediation.context import Rewritten, Toolbox, Unit, UnitKind, UnitRole, Units, step_of, total_tokens
from remediation.prompts import Prompt, load, render
from remediation.strategies.carrying import ledger_reserve
from remediation.strategies.conclusion import Attempt, conclude, fail, irreducible
from remediation.strategies.fresh_results import cut_fresh_results
from remediation.strategies.hand_off import handed_over, summarised
from remediation.strategies.masking import mask
from remediation.strategies.outcome import (
    first_user,
    in_units,
    is_ledger,
    newest_failure,
    newest_user,
    standing,
    task_of,
)
from remediation.strategies.stand_ins import (
    text_counter,
    with_text,
)
from remediation.strategies.truncate import newest_fitting
from remediation.text.marks import disarm
from remediation.text.secret_masking import redact
from remediation.text.summaries import summary_problem

PRUNING = "pruning"  # the prompt's name
TASK_CHARS = 600  # of the task, and of what earlier parts removed, that a prompt shows
RECENT_UNITS = 5  # kept as they are; the fallback keeps as many
FEWEST_RECENT_UNITS = 3  # when five do not fit into half the limit
MAX_REPLY_CHARS = 2_000_000
PROMPT_OVERHEAD_TOKENS = 600  # instructions, task and fence, rounded up
UNIT_OVERHEAD_TOKENS = 18  # the JSON around each unit
MOST_CALLS = 2  # of the pruning agent for one rewrite; what needs more is rewritten by rule


@dataclass(frozen=True, slots=True)
class PrunerPrompt:
    """What the pruning agent is sent: ``instructions`` as system prompt, ``content`` as the only user message."""

    instructions: str
    content: str


@dataclass(frozen=True, slots=True)
class PrunedEntry:
    """``content`` of ``None`` keeps the unit as it is."""

    id: str
    content: str | None


@dataclass(frozen=True, slots=True)
class PrunedReply:
    entries: tuple[PrunedEntry, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class PrunerProblem:
    """The reason why a reply cannot be used, for the log."""

    reason: str


@dataclass(frozen=True, slots=True)
class Whole:
    """The facts about all that may go, which every batch of it is told. Sizes are estimated tokens."""

    task: str
    est_tokens: int
    target: int
    parts: int = 1
    part: int = 1


def whole_of(units: Units, target: int, batches: Sequence[Units]) -> list[Whole]:
    """Return one for each batch: the task, the size of all of them and the aim for it, and which part this is."""
    size = sum(map(total_tokens, batches))
    return [Whole(task_of(units), size, target, len(batches), number) for number in range(1, len(batches) + 1)]


def pruner_prompt(
    units: Units,
    target: int,
    nonce: str,
    whole: Whole | None = None,
    earlier: str = "",
    prompt: Prompt | None = None,
) -> PrunerPrompt:
    """Write the pruning agent's request. ``nonce`` must be unguessable, so that no text of the history can end
    the fence.

    ``earlier`` is what the parts before this one said they removed.
    """
    whole = whole or Whole(task_of(units), total_tokens(units), target)
    entries = [{"id": unit.id, "role": unit.role.value, "content": redact(unit.text)} for unit in units]
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries)
    history = f"[{lines}]".replace(nonce, "")
    instructions = render(
        prompt or load(PRUNING),
        nonce=nonce,
        target=target,
        tokens=total_tokens(units),
        task=redact(" ".join(whole.task.split())[:TASK_CHARS]).replace(nonce, "") or "not stated",
        part=f"{whole.part} of {whole.parts}",
        total=whole.est_tokens,
        aim=whole.target,
        earlier=_elsewhere(earlier).replace(nonce, ""),
    )
    return PrunerPrompt(instructions, f"BEGIN {nonce}\n{history}\nEND {nonce}")


def _elsewhere(earlier: str) -> str:
    says = redact(" ".join(earlier.split()))[:TASK_CHARS]
    return f"Earlier parts removed: {says}" if says else ""


def parse_pruned(reply_text: str) -> PrunedReply | PrunerProblem:
    """Read the reply's JSON. Fences and prose around it are tolerated, anything else is a problem."""
    if len(reply_text) > MAX_REPLY_CHARS:
        return PrunerProblem(f"the reply has {len(reply_text):,} characters, more than {MAX_REPLY_CHARS:,}")
    start, end = reply_text.find("{"), reply_text.rfind("}")
    if start < 0 or end < start:
        return PrunerProblem("the reply holds no JSON object")
    try:
        content = json.loads(reply_text[start : end + 1])
    except (ValueError, RecursionError) as error:
        return PrunerProblem(f"the reply is not JSON: {error}")
    conversation = content.get("prunedConversation") if isinstance(content, dict) else None
    if not isinstance(conversation, list) or not conversation:
        return PrunerProblem("the reply has no prunedConversation, or an empty one")
    entries = tuple(_entry(item) for item in conversation if isinstance(item, dict))
    summary = content.get("summary")
    return PrunedReply(entries, summary.strip() if isinstance(summary, str) else "")


def _entry(item: dict[str, Any]) -> PrunedEntry:
    content = item.get("content")
    return PrunedEntry(str(item.get("id") or ""), content if isinstance(content, str) else None)


def apply_pruned(
    units: Units, reply: PrunedReply, toolbox: Toolbox, limit: int, target: int | None = None
) -> Rewritten:
    """The view that the reply describes, with everything that must stay put back.

    An entry is matched by its id, else by its exact text; content of unknown entries joins the summary. A new text
    takes effect only if it passes the gate; otherwise the unit stays as it is.
    """
    attempt = Attempt(units, limit, toolbox.clock())
    kept_by_rule = must_stay(units, limit, target)
    wanted = _match_entries(units, reply)
    chosen = kept_by_rule | set(wanted)
    view: dict[int, Unit] = {
        index: units[index] if index in kept_by_rule else _rewritten(units[index], wanted[index], toolbox)
        for index in sorted(chosen)
    }
    merged_view = tuple(view.get(index, unit) for index, unit in enumerate(units))
    after = summarised(merged_view, set(view), _summary_text(units, reply, toolbox), toolbox)
    before, left = total_tokens(units), total_tokens(after)
    note = (
        f"kept {len(view)} of {in_units(len(units))}, {100 * (before - left) / max(1, before):.0f} % less by our "
        "own count"
    )
    step = step_of("prune", units, after, note)
    return conclude(Attempt(units, limit, attempt.started_at, (step,)), after, toolbox)


def must_stay(units: Units, limit: int, target: int | None = None) -> set[int]:
    """Return the indices of system prompts, pinned units, the task, the newest user message, running tool
    exchanges, and the last five units (three where five leave less than half the limit, or miss the target).
    """
    most = limit // 2 if target is None else min(limit // 2, target)
    since = range(max(newest_user(units) + 1, len(units) - RECENT_UNITS), len(units))
    kept = standing(units) | ({first_user(units)} - {-1}) | {i for i in since if units[i].role is UnitRole.TOOL}
    recent = range(max(0, len(units) - RECENT_UNITS), len(units))
    if sum(units[index].est_tokens for index in kept | set(recent)) > most:
        recent = range(max(0, len(units) - FEWEST_RECENT_UNITS), len(units))
    return kept | set(recent)


def _match_entries(units: Units, reply: PrunedReply) -> dict[int, str | None]:
    """Map each unit that the reply keeps to its new text, or to ``None`` if it stays as it is."""
    by_id = {unit.id: index for index, unit in enumerate(units)}
    by_text = {unit.text: index for index, unit in enumerate(units)}
    matched: dict[int, str | None] = {}
    for entry in reply.entries:
        index = by_id.get(entry.id, by_text.get(entry.content or "", -1))
        if index >= 0 and not is_ledger(units[index]):
            matched[index] = entry.content
    return matched


def _rewritten(unit: Unit, text: str | None, toolbox: Toolbox) -> Unit:
    """Give the unit the pruner's text if that passes the gate: shorter, not empty, no tool protocol."""
    if text is None or text.strip() == unit.text.strip() or unit.priority == 1 or unit.kind is UnitKind.PLAN_REF:
        return unit
    if _gate(text, unit.text, unit.est_tokens, toolbox):
        return unit
    candidate = with_text(unit, redact(text), toolbox)
    return candidate if candidate.est_tokens < unit.est_tokens else unit


def _gate(text: str, original: str, max_tokens: int, toolbox: Toolbox) -> str:
    return summary_problem(text, original, text_counter(toolbox), max_tokens)


def _summary_text(units: Units, reply: PrunedReply, toolbox: Toolbox) -> str:
    """Return the reply's summary and its texts that belong to no unit, if they pass the gate; else nothing."""
    known = {unit.id for unit in units} | {unit.text for unit in units}
    strays = [entry.content for entry in reply.entries if entry.content and not {entry.id, entry.content} & known]
    text = redact(disarm("\n".join(part for part in (reply.summary, *strays) if part)))
    original = "\n".join(unit.text for unit in units)
    return "" if _gate(text, original, total_tokens(units) // 4, toolbox) else text


def fallback(
    units: Units,
    toolbox: Toolbox,
    limit: int,
    reason: str = "",
    target_tokens: int | None = None,
    whole_result: int = 0,
) -> Rewritten:
    """System message, task and last five, cut between units so that no tool result is orphaned,
    and a hand-off of the rest.

    Pinned units and the newest user message stay as well. The newest unit, perhaps a tool exchange under way, stays if
    it fits into ``limit``; the task and the others of the last five, their old tool output masked, if they fit into
    half of what ``target_tokens`` leaves (the limit where there is none). The hand-off has the other half. A newest
    result of more than ``whole_result`` tokens may be cut.
    """
    attempt = Attempt(units, limit, toolbox.clock(), target=target_tokens)
    aim = (limit if target_tokens is None else min(limit, target_tokens)) - ledger_reserve(limit, units)
    units = cut_fresh_results(units, aim, toolbox, whole=whole_result)
    kept = standing(units)
    used = sum(units[index].est_tokens for index in kept)
    if used > limit:
        return fail(attempt, irreducible(units, limit), toolbox)
    newest = newest_fitting(units, [i for i in (len(units) - 1,) if i >= 0 and i not in kept], limit - used)
    failure = [i for i in (newest_failure(units),) if i >= 0 and i not in kept | newest]
    newest |= newest_fitting(units, failure, (aim - used) // 2)
    kept |= newest
    used += sum(units[index].est_tokens for index in newest)
    lighter = tuple(unit if index in kept else mask(unit, toolbox) for index, unit in enumerate(units))
    last = [
        i for i in range(max(0, len(units) - RECENT_UNITS), len(units)) if i not in kept and not is_ledger(units[i])
    ]
    task = [i for i in (first_user(units),) if i >= 0 and i not in kept and i not in last]
    chosen = newest_fitting(lighter, [*task, *last], (aim - used) // 2, skip=True)
    stays = kept | chosen
    view = tuple(lighter[index] if index in stays else unit for index, unit in enumerate(units))
    after = handed_over(view, stays, aim, toolbox, limit)
    step = step_of("fallback", attempt.before, after, reason)
    return conclude(replace(attempt, steps=(step,)), after, toolbox)


MARGIN_PERCENT = 10  # of the pruner's window: what an estimate may be off by


def split_for(units: Units, pruner_window: int) -> tuple[Units, ...]:
    """Cut the span so that each batch fits the pruner's window together with its answer, which is asked to be 40 to
    60 % shorter, and with a tenth of the window for what an estimate may be off by.

    A unit that alone is too large is left out: ``apply_pruned`` carries its facts.
    """
    room = max(0, (with_its_answer(pruner_window, MARGIN_PERCENT) - PROMPT_OVERHEAD_TOKENS) * 5 // 8)
    batches: list[list[Unit]] = [[]]
    used = 0
    for unit in units:
        size = unit.est_tokens + UNIT_OVERHEAD_TOKENS
        if size > room:
            continue
        if used + size > room:
            batches.append([])
            used = 0
        batches[-1].append(unit)
        used += size
    return tuple(tuple(batch) for batch in batches if batch)


def merged(replies: Sequence[PrunedReply]) -> PrunedReply:
    """Combine the replies to all batches of one span."""
    entries = tuple(entry for reply in replies for entry in reply.entries)
    return PrunedReply(entries, "\n".join(reply.summary for reply in replies if reply.summary))
