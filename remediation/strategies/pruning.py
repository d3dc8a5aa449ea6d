"""Compaction by a pruning agent, a model that shortens the conversation, and the fallback where its reply is no use.

The reply is not trusted. What must stay does so whatever the reply says, its texts are judged by rule before they are
used, and the ledger carries key facts of what goes.
"""

import json
from dataclasses import replace
from typing import NamedTuple

from remediation.budget import with_its_answer
from remediation.context import Assistant, Rewritten, Toolbox, Unit, UnitKind, UnitRole, Units, step_of, total_tokens
from remediation.prompts import render
from remediation.strategies.carrying import ledger_reserve
from remediation.strategies.conclusion import Attempt, conclude, fail, irreducible
from remediation.strategies.fresh_results import cut_fresh_results
from remediation.strategies.hand_off import handed_over, in_parts, in_short, summarised
from remediation.strategies.masking import mask
from remediation.strategies.outcome import (
    first_user,
    in_units,
    is_ledger,
    newest_failure,
    newest_user,
    standing,
    tokens_at,
    with_newest,
)
from remediation.strategies.stand_ins import text_counter
from remediation.text.marks import disarm
from remediation.text.secret_masking import redact
from remediation.text.summaries import summary_problem

PRUNING = "pruning"  # the prompt's name
RECENT_UNITS = 5  # newest units that stay as they are
FEWEST_RECENT_UNITS = 3  # the same if five exceed half of the limit or the target
MAX_REPLY_CHARS = 2_000_000
PROMPT_OVERHEAD_TOKENS = 600  # of instructions, task and fence, rounded up
UNIT_OVERHEAD_TOKENS = 18  # of the JSON around each unit
MARGIN_PERCENT = 10  # of the pruning agent's window, by which an estimate may be too low
MOST_CALLS = 2  # of the pruning agent for one rewrite, since people wait for each


class PrunedEntry(NamedTuple):
    """A unit that the reply keeps, with its new text. ``content`` is None if the unit stays as it is."""

    id: str
    content: str | None


class PrunedReply(NamedTuple):
    """The pruning agent's reply: what it keeps, and its summary of what it removed."""

    entries: tuple[PrunedEntry, ...]
    summary: str


class PruningFailed(Exception):
    """The pruning agent's answer cannot be used, for the reason given. The fallback takes its place."""


def ask_to_prune(units: Units, task: str, aim: int, window: int, toolbox: Toolbox, assistant: Assistant) -> PrunedReply:
    """Ask the pruning agent to shorten ``units`` to ``aim`` tokens, in one call or two, as its window needs.

    Raises ``PruningFailed``.
    """
    batches = split_for(units, window)
    if len(batches) > MOST_CALLS:
        raise PruningFailed(f"the pruning agent's window holds the conversation only in {len(batches)} parts")
    if not batches:
        raise PruningFailed("no part of the conversation fits the pruning agent's own window")
    entries, summaries = list[PrunedEntry](), list[str]()
    for number, batch in enumerate(batches, 1):
        nonce = assistant.nonce()
        told = in_short("\n".join(summaries)).replace(nonce, "")
        instructions = render(
            toolbox.prompt(PRUNING),
            nonce=nonce,
            target=max(1, aim * total_tokens(batch) // max(1, total_tokens(units))),
            tokens=total_tokens(batch),
            task=in_short(task).replace(nonce, "") or "not stated",
            part=f"{number} of {len(batches)}",
            total=sum(map(total_tokens, batches)),
            aim=aim,
            earlier=f"Earlier parts removed: {told}" if told else "",
        )
        reply = parse_pruned(assistant.ask(instructions, history_of(batch, nonce)))
        entries += reply.entries
        summaries += filter(None, [reply.summary])
    return PrunedReply(tuple(entries), "\n".join(summaries))


def history_of(units: Units, nonce: str) -> str:
    """Return the units as JSON in a fence. ``nonce`` must be unguessable, so that no unit's text can end the fence."""
    entries = [{"id": unit.id, "role": unit.role.value, "content": redact(unit.text)} for unit in units]
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries)
    history = f"[{lines}]".replace(nonce, "")
    return f"BEGIN {nonce}\n{history}\nEND {nonce}"


def parse_pruned(reply_text: str) -> PrunedReply:
    """Read the reply's JSON, which prose or a fence may surround. Raises ``PruningFailed`` if it has another form."""
    if len(reply_text) > MAX_REPLY_CHARS:
        raise PruningFailed(f"the reply has {len(reply_text):,} characters, more than {MAX_REPLY_CHARS:,}")
    start, end = reply_text.find("{"), reply_text.rfind("}")
    if start < 0 or end < start:
        raise PruningFailed("the reply holds no JSON object")
    try:
        content = json.loads(reply_text[start : end + 1])
    except (ValueError, RecursionError) as error:
        raise PruningFailed(f"the reply is not JSON: {error}") from error
    conversation = content.get("prunedConversation") if isinstance(content, dict) else None
    if not isinstance(conversation, list) or not conversation:
        raise PruningFailed("the reply has no prunedConversation, or an empty one")
    items = [(item.get("id"), item.get("content")) for item in conversation if isinstance(item, dict)]
    entries = [PrunedEntry(str(name or ""), text if isinstance(text, str) else None) for name, text in items]
    summary = content.get("summary")
    return PrunedReply(tuple(entries), summary.strip() if isinstance(summary, str) else "")


def apply_pruned(
    units: Units, reply: PrunedReply, toolbox: Toolbox, limit: int, target: int | None = None
) -> Rewritten:
    """Rewrite as the reply says, but keep everything that must stay.

    Entries are matched to units by their ids, or else by their exact text. Texts of entries that match none join the
    summary. If a unit's new text is unusable, the unit stays as it is.
    """
    attempt = Attempt(units, limit, toolbox.clock())
    wanted = _match_entries(units, reply)
    stays = must_stay(units, limit, target)
    view = tuple(
        _rewritten(unit, wanted[index], toolbox) if index in wanted and index not in stays else unit
        for index, unit in enumerate(units)
    )
    kept = stays | set(wanted)
    after = summarised(view, kept, _summary_text(units, reply, toolbox), toolbox)
    before, left = total_tokens(units), total_tokens(after)
    less = 100 * (before - left) / max(1, before)
    note = f"kept {len(kept)} of {in_units(len(units))}, {less:.0f} % less by our own count"
    return conclude(replace(attempt, steps=(step_of("prune", units, after, note),)), after, toolbox)


def must_stay(units: Units, limit: int, target: int | None = None) -> set[int]:
    """Return the indices of units that the pruning agent may not touch.

    They are system prompts, pinned units, the first and the newest user message, the last five units, and calls since
    the newest message among these. Only three of the last units stay if five exceed half of the limit or the target.
    """
    most = limit // 2 if target is None else min(limit // 2, target)
    since = range(max(newest_user(units) + 1, len(units) - RECENT_UNITS), len(units))
    kept = standing(units) | ({first_user(units)} - {-1}) | {i for i in since if units[i].role is UnitRole.TOOL}
    recent = range(max(0, len(units) - RECENT_UNITS), len(units))
    if tokens_at(units, kept | set(recent)) > most:
        recent = range(max(0, len(units) - FEWEST_RECENT_UNITS), len(units))
    return kept | set(recent)


def _match_entries(units: Units, reply: PrunedReply) -> dict[int, str | None]:
    """Map the index of each unit that the reply keeps to its new text, or to None if it stays as it is."""
    by_id = {unit.id: index for index, unit in enumerate(units)}
    by_text = {unit.text: index for index, unit in enumerate(units)}
    matched: dict[int, str | None] = {}
    for entry in reply.entries:
        index = by_id.get(entry.id, by_text.get(entry.content or "", -1))
        if index >= 0 and not is_ledger(units[index]):
            matched[index] = entry.content
    return matched


def _rewritten(unit: Unit, text: str | None, toolbox: Toolbox) -> Unit:
    """Return the unit with the pruning agent's text if that is usable and shorter. Otherwise return it as it is."""
    if text is None or text.strip() == unit.text.strip() or unit.priority == 1 or unit.kind is UnitKind.PLAN_REF:
        return unit
    if summary_problem(text, unit.text, text_counter(toolbox), unit.est_tokens):
        return unit
    candidate = unit.with_text(redact(text), toolbox.count)
    return candidate if candidate.est_tokens < unit.est_tokens else unit


def _summary_text(units: Units, reply: PrunedReply, toolbox: Toolbox) -> str:
    """Return the reply's summary, with its texts that belong to no unit; empty if they are unusable."""
    known = {unit.id for unit in units} | {unit.text for unit in units}
    strays = [entry.content for entry in reply.entries if entry.content and not {entry.id, entry.content} & known]
    text = redact(disarm("\n".join(part for part in (reply.summary, *strays) if part)))
    original = "\n".join(unit.text for unit in units)
    return "" if summary_problem(text, original, text_counter(toolbox), total_tokens(units) // 4) else text


def fallback(
    units: Units,
    toolbox: Toolbox,
    limit: int,
    reason: str = "",
    target_tokens: int | None = None,
    whole_result: int = 0,
) -> Rewritten:
    """Rewrite without the pruning agent: keep the first message and the last five units, and hand off the others.

    System prompts, pinned units and the newest user message stay in any case, and so does the newest unit, perhaps a
    tool call under way, if it fits into ``limit``. The newest failure, the first message and the last five units, with
    masked tool output, may take half of what these leave of ``target_tokens`` (of the limit if that is None); the
    account has the other half. A newest result of more than ``whole_result`` tokens may be cut.
    """
    attempt = Attempt(units, limit, toolbox.clock(), target=target_tokens)
    aim = (limit if target_tokens is None else min(limit, target_tokens)) - ledger_reserve(limit, units)
    units = cut_fresh_results(units, aim, toolbox, whole=whole_result)
    kept = standing(units)
    if tokens_at(units, kept) > limit:
        return fail(attempt, irreducible(units, limit), toolbox)
    kept = with_newest(units, kept, range(len(units))[-1:], limit)
    half = (aim + tokens_at(units, kept)) // 2
    kept = with_newest(units, kept, [newest_failure(units)], half)
    view = tuple(unit if index in kept else mask(unit, toolbox) for index, unit in enumerate(units))
    half = (aim + tokens_at(view, kept)) // 2
    first = first_user(units)
    recent = range(max(0, len(units) - RECENT_UNITS), len(units))
    kept = with_newest(view, kept, [*([first] if 0 <= first < recent.start else []), *recent], half, skip=True)
    view = tuple(view[index] if index in kept else unit for index, unit in enumerate(units))
    after = handed_over(view, kept, aim, toolbox, limit)
    step = step_of("fallback", attempt.before, after, reason)
    return conclude(replace(attempt, steps=(step,)), after, toolbox)


def split_for(units: Units, pruner_window: int) -> list[Units]:
    """Divide the units into parts that fit the pruning agent's window, each together with its answer.

    An answer is expected to be at least 40 % shorter than its part. A unit that is too large for a part is left out;
    the ledger carries its facts.
    """
    room = max(0, (with_its_answer(pruner_window, MARGIN_PERCENT) - PROMPT_OVERHEAD_TOKENS) * 5 // 8)
    sized = [(unit, unit.est_tokens + UNIT_OVERHEAD_TOKENS) for unit in units]
    return list(map(tuple, in_parts([(unit, size) for unit, size in sized if size <= room], room)))
