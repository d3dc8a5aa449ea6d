"""A context policy as one value: its name in rows, its words for people, its limit, its answers and its rewrite."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from remediation.budget import STREAM_PERCENT, Budget, percent_of
from remediation.config import ContextConfig, effective_limit
from remediation.context import Context, Rewritten, Toolbox, Units
from remediation.decisions import Decision, Rewrite, StreamDecision, ToolResultDecision

NAME = re.compile(r"[a-z][a-z0-9_]{0,15}")  # as long as the database columns that hold a name
RESERVED_VERBS = frozenset({"clear", "milestone"})  # requests by hand that are no policy's

Event = tuple[str, Mapping[str, Any]]  # type and values of an entry in the dialog's event log


@dataclass(frozen=True)
class CountingFacts:
    """The facts that decide a policy's limit and tokenizer.

    ``tokenizer`` is empty where the model has none set: its name then decides. ``config`` is read when it is first
    asked for, since most policies count without it.
    """

    window: int | None  # tokens; None: unknown
    model_id: str
    tokenizer: str
    agent_limit: int | None  # tokens; the agent's own budget
    llm_type: str
    priority: int  # of the agent, 1 to 3
    read_config: Callable[[], ContextConfig]

    @cached_property
    def config(self) -> ContextConfig:
        return self.read_config()


def rewrite_due(context: Context, policy: str) -> Rewrite:
    """Return a policy's own rewrite, which aims at a share of the limit.

    If the provider refused a request that is shorter than the limit, the aim is a share of that request: the limit may
    only have been assumed from the model's name.
    """
    budget = context.budget
    if context.overflowed:
        budget = replace(budget, limit=min(budget.limit or budget.prompt, budget.prompt))
    return Rewrite(policy, _due_reason(context), budget.aim)


def _due_reason(context: Context) -> str:
    """Return why a rewrite is due. The request's size is left out: it is shown beside the reason."""
    if context.overflowed:
        return "the provider refused the request as too long"
    if context.interrupted:
        return f"the answer filled {STREAM_PERCENT} % of the limit"
    if context.budget.is_over_trigger:
        return f"over the est. {context.budget.trigger_prompt:,} tokens from which on it is rewritten"
    return "a critical report"


def obstacle(budget: Budget) -> str:
    """Explain why no rewrite can make enough room: which fixed part takes most, and what a person can do about it."""
    frame = (budget.frame, "instructions, tools and reminders", "Shorten the instructions, offer fewer tools")
    stays = (budget.stays, "the newest message and what has to stay", "Send less at once, clear the agent's mind")
    (most, what, advice), (less, beside, _) = sorted((frame, stays), reverse=True)
    answer = f", and {budget.answer:,} are kept for the answer" if budget.counts_answer else ""
    return (
        f"{what[0].upper()}{what[1:]} take est. {most:,} of {budget.limit or 0:,} tokens, {beside} est. {less:,}"
        f"{answer}. No rewrite makes them smaller. {advice}, or choose a model with a larger window."
    )


def window_limit(facts: CountingFacts) -> int | None:
    return facts.window


def budget_limit(facts: CountingFacts) -> int:
    """Return the budget of ``context.yaml`` or of the agent, at most the window."""
    return effective_limit(facts.config, facts.agent_limit, facts.llm_type, facts.priority, facts.window)


def models_tokenizer(facts: CountingFacts) -> str:
    return facts.tokenizer


def configured_tokenizer(facts: CountingFacts) -> str:
    """Return the tokenizer that ``context.yaml`` names."""
    return facts.config.tokenizer


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """One rewrite to perform. Sizes are estimated tokens.

    ``limit`` and ``target`` are for the units alone, ``request_limit`` for the whole request, in which instructions,
    tools and reminders take ``fixed``. ``standing`` is the size of the units that no rewrite may take away.
    """

    units: Units
    limit: int
    target: int
    fixed: int
    standing: int
    request_limit: int
    config: ContextConfig
    reason: str = ""  # why it is due, as the decision says


@dataclass(frozen=True, slots=True)
class ModelKind:
    """The one kind of model (``kind`` of ``llm.yaml``) that a policy is for, and what people call it."""

    kind: str
    label: str
    is_default: bool = False  # whether agents with such a model that name no policy have this one


@dataclass(frozen=True, slots=True)
class ByHand:
    """The words with which people ask for a policy's rewrite, on the pages and by ``POST /api/dialogs/<id>/<verb>``."""

    verb: str
    label: str  # of the preview, one or two words
    button: str
    does: str  # one sentence for the description of the API
    menu: str = ""  # the entry in the menu of rewrites; empty: the label
    hint: str = ""  # how it differs from the other rewrites, in one plain sentence
    starts_over: bool = False  # whether all messages go; then it is advised only if no other rewrite helps
    confirm: str = ""  # the question to confirm before a rewrite without a preview; empty: a general one
    preview_note: str = ""  # how it is decided which units go
    shows_scores: bool = False  # whether a preview shows how each score is made up
    beside_warning: bool = False  # whether the panel offers it beside its warning of a full context
    target_percent: int = 50  # of the limit

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.verb) or self.verb in RESERVED_VERBS:
            raise ValueError(f"{self.verb!r} is no verb: {_NAME_RULE}, and not {' or '.join(sorted(RESERVED_VERBS))}.")
        _check_percent(self.target_percent)

    @property
    def slug(self) -> str:
        """Return the verb in the form that addresses use."""
        return self.verb.replace("_", "-")

    @property
    def entry(self) -> str:
        return self.menu or self.label

    @property
    def question(self) -> str:
        """Return the question that a page asks before the rewrite."""
        return self.confirm or (
            f"{self.label} the context now? The agent no longer sees the messages that go. They stay in the archive, "
            f"and “Undo” in the transcript brings them back."
        )


UNCHANGED = "Nothing was compacted, continuing..."  # the second notice if the rewrite was rejected


def no_events(_before: Units, _rewritten: Rewritten) -> Sequence[Event]:
    return ()


def _never(_config: ContextConfig) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to keep a context within its limit.

    A policy answers up to three of the driver's four questions, with values of ``remediation.decisions``; a question
    that is None is not asked. The fourth, whether a reply is kept, is answered by guidance, which follows every policy.
    ``rewrite`` is pure: the same task gives the same view. It asks a model only through ``toolbox.assistant``, which is
    None in a preview.
    """

    name: str
    label: str  # its name for people, such as in the head of a dialog
    sentence: str  # tells people what it does
    automatic: str = ""  # tells people in the context panel when it acts by itself
    title: str = ""  # the title of its rewrites in the transcript
    place: int = 100  # orders lists, lowest first; at equal places ours come before those of plug-ins
    is_choice: bool = True  # whether an agent can have it
    model_kind: ModelKind | None = None  # None: for every model
    default_for: tuple[str, ...] = ()  # kinds of models; agents with one that name no policy have this one

    before_generation: Callable[[Context], Decision] | None = None
    while_streaming: Callable[[int, int | None], StreamDecision] | None = None  # estimated tokens so far, limit
    on_tool_result: Callable[[Context, int], ToolResultDecision] | None = None  # estimated tokens of the result

    limit: Callable[[CountingFacts], int | None] = window_limit
    trigger_share: Callable[[ContextConfig], float] | None = None  # of the limit, where it rewrites; None: the default
    tokenizer: Callable[[CountingFacts], str] = models_tokenizer
    target_percent: int = 50  # of the limit
    reserves_answer: bool = False  # whether the room kept for the answer counts as taken
    watches_past: bool = False  # whether it needs over-hits and loops in its context

    rewrite: Callable[[RewriteTask, Toolbox], Rewritten] | None = None
    by_hand: ByHand | None = None
    notices: tuple[str, str] | None = None  # shown in the transcript before and after a rewrite
    events: Callable[[Units, Rewritten], Sequence[Event]] = no_events  # in addition to the event of every rewrite
    shows_phases: bool = False  # whether the page's bar shows the phases that it reports
    failure_ends_message: Callable[[ContextConfig], bool] = _never  # asked after a failed automatic rewrite
    is_reviewed: bool = False  # whether the critic judges its rewrites
    tools: tuple[str, ...] = ()  # names of tools that its agents get in addition

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no name for a policy: {_NAME_RULE}.")
        if not (self.label and self.sentence):
            raise ValueError(f"The policy {self.name} needs a label and a sentence for people.")
        if self.by_hand and self.rewrite is None:
            raise ValueError(f"The policy {self.name} can be asked for a rewrite by hand, and has none.")
        if self.rewrite is not None and not self.title:
            raise ValueError(f"The policy {self.name} needs a title for its rewrites.")
        _check_percent(self.target_percent)

    @property
    def counts(self) -> bool:
        """Check whether the policy decides by estimates. If not, they are only shown."""
        return bool(self.before_generation or self.while_streaming or self.on_tool_result)

    def allows(self, kind: str) -> bool:
        """Check whether the policy is for models of this kind."""
        return self.model_kind is None or self.model_kind.kind == kind

    def is_default_for(self, kind: str) -> bool:
        own = self.model_kind
        return kind in self.default_for or (own is not None and own.is_default and own.kind == kind)

    def target(self, limit: int) -> int:
        """Return the tokens that an automatic rewrite aims at."""
        return percent_of(limit, self.target_percent)


_NAME_RULE = "it begins with a small letter and has at most 16 small letters, digits and underscores"


def _check_percent(percent: int) -> None:
    if not 0 < percent < 100:
        raise ValueError(f"A target of {percent} % of the limit makes no rewrite; it lies from 1 to 99.")
