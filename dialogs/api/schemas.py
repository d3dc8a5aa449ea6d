"""Shapes of answers, for OpenAPI. Times are ISO 8601 UTC, ratios 0 to 1; what is unknown is null."""

from typing import Any, Literal
from uuid import UUID

from ninja import Schema

Level = Literal["healthy", "caution", "critical", "unknown"]


class Error(Schema):
    code: str
    message: str
    stored: Literal["unknown"] | None = None


class Problem(Schema):
    error: Error


class AgentOut(Schema):
    id: str
    name: str
    provider: str
    model: str
    model_context_limit: int | None
    context_limit: int | None
    context_policy: str
    context_policy_problem: str | None
    critical_policy: str
    tool_approval: str
    priority: int
    priority_areas: list[str]
    default: bool
    usable: bool
    reason: str | None


class Usage(Schema):
    prompt_tokens: int
    completion_tokens: int | None
    total_tokens: int | None


class Health(Schema):
    level: Level
    reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    model_context_limit: int | None
    limit_source: str | None
    optimal_max_tokens: int | None
    critical_max_tokens: int | None
    hard_util: float | None
    optimal_util: float | None


class OpenQuestion(Schema):
    id: UUID
    kind: str
    text: str


class DialogOut(Schema):
    id: UUID
    agent: str
    title: str
    round: int
    state: str
    health: Health
    question: OpenQuestion | None
    policy: str
    policy_problem: str | None
    provider: str
    model: str
    failure: str | None
    cost_usd: str
    unpriced_generations: int
    budget_usd: str | None
    forked_from: UUID | None
    own_from: int
    group: str | None
    last_turn_seq: int
    last_event_seq: int
    created_at: str
    active_at: str


class Sums(Schema):
    generations: int
    unreported: int
    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: str | None
    unpriced: int


class NextRequest(Schema):
    est_input_tokens: int
    est_output_room: int
    est_total_tokens: int
    est_source: str
    limit: int | None


class StatisticsOut(Schema):
    reported: Sums
    by_purpose: dict[str, Sums]
    next_request: NextRequest | None


class Accepted(Schema):
    seq: int
    state: str


class StateOut(Schema):
    state: str


class ToolCallOut(Schema):
    id: str
    name: str
    arguments: Any


class ReasoningOut(Schema):
    """A model's reasoning, as far as its provider shows it. ``ms`` is from its first to its last word."""

    text: str
    ms: int


class AttachmentOut(Schema):
    """A file of a message. An image has ``width`` and ``height``, and is fetched by its ``sha256``. The text of any
    other file is part of the turn's text."""

    name: str
    media_type: str
    sha256: str
    bytes: int
    width: int | None = None
    height: int | None = None
    chars: int | None = None


class TurnOut(Schema):
    seq: int
    round: int
    position: int | None
    role: str
    author: str | None
    text: str
    attachments: list[AttachmentOut]
    reasoning: ReasoningOut | None
    tool_calls: list[ToolCallOut]
    tool_call_id: str | None
    tool_name: str | None
    status: str
    feedback: Literal["up", "down"] | None
    usage: Usage | None
    level: Level | None
    generation: int | None
    created_at: str


class VersionOut(Schema):
    dialog: UUID
    current: bool


class GenerationError(Schema):
    kind: str
    message: str


class GenerationOut(Schema):
    id: int
    round: int
    purpose: str
    outcome: str
    attempt: int
    provider: str
    model: str
    usage: Usage | None
    level: Level | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: str | None
    guided: bool
    recalled: list[int]
    turn_seq: int | None
    error: GenerationError | None
    started_at: str
    finished_at: str | None


class EventOut(Schema):
    seq: int
    type: str
    data: dict[str, Any]
    created_at: str


class ReminderOut(Schema):
    id: int
    position: int
    text: str
    est_tokens: int


class AttemptOut(Schema):
    outcome: str
    usage: Usage | None


class QuestionOut(Schema):
    id: UUID
    dialog: UUID
    kind: str
    text: str
    choices: list[str]
    approves: str | None
    state: str
    attempts: list[AttemptOut]
    draft: str | None
    answer: str | None
    action: str | None
    created_at: str
    resolved_by: str | None
    resolved_at: str | None


class UnitOut(Schema):
    id: str
    role: str
    kind: str
    priority: int
    est_tokens: int
    source: list[int]
    pinned: bool
    score: float
    points: dict[str, float]
    text: str


class RemovalOut(Schema):
    id: str
    kind: str
    role: str
    est_tokens: int
    source: list[int]
    text: str


class PreviewOut(Schema):
    kind: str
    est_before: int
    est_after: int
    removed: list[RemovalOut]
    problem: str | None


class RecalledOut(Schema):
    est_tokens: int
    turns: list[int]
    text: str


class ContextOut(Schema):
    """``est_tokens`` is the sum of the units, ``est_fixed`` (instructions, tools, reminders) and the recalled text."""

    policy: str
    est_tokens: int
    est_source: str
    limit: int | None
    est_fixed: int
    recalled: RecalledOut
    units: list[UnitOut]
    preview: PreviewOut | None = None


class RemediationOut(Schema):
    id: int
    round: int
    policy: str
    reason: str
    strategies: list[str]
    steps: list[dict[str, Any]]
    est_before: int
    est_after: int
    removed: list[dict[str, Any]]
    prompts: dict[str, str]
    summary: str
    recovered: bool
    saving_usd: str | None
    reread_usd: str | None
    undone: bool
    created_at: str


class SearchedText(Schema):
    """``text`` is a passage, and ``marks`` are the [start, end] of each word that was found in it. A turn has a
    ``seq``, a unit of the archive an ``id``; the other is null."""

    seq: int | None = None
    id: int | None = None
    text: str
    marks: list[list[int]]


class FoundText(SearchedText):
    """``beside`` is what was said just before and after it."""

    beside: list[SearchedText]


class FoundTurn(FoundText):
    dialog: UUID
    title: str


class RemovedOut(Schema):
    id: int
    remediation: int
    unit: str
    kind: str
    role: str
    est_tokens: int
    text: str
    found: FoundText | None = None


class WholeRemediationOut(RemediationOut):
    """A rewrite with its effect. ``before`` are the removed units with the beginnings of their texts, which the archive
    has whole. ``after`` is the context since: turns by their ``seq``, and new texts.
    """

    before: list[RemovedOut]
    after: list[dict[str, Any]]
    facts: dict[str, Any]


class MarkOut(Schema):
    kind: Literal["rewrite", "undo", "round", "question", "crash", "failure", "recall"]
    text: str


class MomentOut(Schema):
    """One call on the timeline. ``est_shares`` are tokens by category, empty for calls from before they were stored.
    ``digest`` is the SHA-256 of the body that was sent."""

    generation: int
    round: int
    purpose: str
    outcome: str
    level: Level | None
    prompt_tokens: int | None
    est_prompt_tokens: int | None
    est_shares: dict[str, int]
    reserve: int | None
    window: int | None
    optimal: int | None
    critical: int | None
    cost_usd: str | None
    digest: str | None
    marks: list[MarkOut]
    started_at: str


class PieceOut(Schema):
    """A piece of a request. Guidance has no ``text``; its ``prompts`` are names with versions."""

    category: str
    label: str
    text: str | None
    chars: int
    turns: list[int]
    prompts: list[str]


class RequestOut(Schema):
    """A call's request, built again in pieces. ``is_equal`` says whether its hash is that of the body that was sent,
    and ``differs`` why not."""

    call: MomentOut
    is_equal: bool
    differs: str | None
    pieces: list[PieceOut]
    more: bool


class DiffRowOut(Schema):
    """A number of ``alike`` pieces that both requests have, a piece that only one has, or a piece that changed, with
    ``lines`` as in a diff."""

    kind: Literal["alike", "removed", "added", "changed"]
    alike: int
    before: PieceOut | None
    after: PieceOut | None
    lines: list[str]


class DiffOut(Schema):
    before: int
    after: int
    differs: list[str]
    rows: list[DiffRowOut]
    is_cut: bool
