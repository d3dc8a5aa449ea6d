"""Estimated sizes of what the model would see. They are marked "est." where they are shown, and never set a level."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dialogs.context.client import instructions_of, system_messages_of
from dialogs.context.config import current_config
from dialogs.context.images import sendable, unseen_images
from dialogs.context.limits import counted_by_server
from dialogs.context.offered import tools_offered
from dialogs.context.reminder_statements import in_order, statements_of
from dialogs.context.served import Served
from dialogs.models import Agent, ContextState, Dialog
from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.messages import Message, Role, ToolSpec, with_parts
from dominds.llm.providers.parts import part_tokens
from health.levels import Thresholds
from remediation.budget import (
    ESTIMATES_ERR,
    LEAST_ANSWER,
    STREAM_PERCENT,
    TRIGGER_SHARE,
    Budget,
    answer_room,
    package_room,
    percent_of,
)
from remediation.config import ContextConfig
from remediation.context import Unit, UnitKind, UnitRole, Units, longest_of_newest_answers, total_tokens
from remediation.decisions import StreamDecision
from remediation.policies.policy import CountingFacts, Policy
from remediation.text.classify import kind_of, priority_of
from remediation.tokens.calibration import (
    DENSEST,
    Calibration,
    Counted,
    RequestEstimate,
    estimate_request,
    least_of,
    margin_of,
)
from remediation.tokens.counting import Counter, counter_for, is_vocabulary_known, vocabulary_for

# The newest text that a server counts to calibrate: enough to tell two vocabularies apart, and counted in milliseconds.
SAMPLE_CHARS = 8_000

SHORT_CHARS = 1_000  # a shorter message fits every window
LEAST_CHARS_PER_TOKEN = 1.5  # bounds the tokens of a text without counting it
# The share of an estimate that a request surely has, by the source of the estimate. A message is refused only if that
# share does not fit; otherwise its provider decides. Counts by a model's own vocabulary are 4.4 % off at most.
SURE = {"calibrated": 0.95, "tokenizer": 0.8}
COARSE = 0.6  # the share of an estimate by characters


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a view. ``units`` are its units, counted and classified. ``budget`` is the room that they and the
    rest of the request take in the window. ``factor`` corrects counts of text; ``counted`` is the whole prompt before
    any correction.
    """

    units: Units
    budget: Budget
    source: str  # "calibrated", "tokenizer" or "characters"
    factor: float
    counted: Counted
    counter: Counter
    facts: CountingFacts
    model: ModelInfo
    tools: int = 0  # tokens of the frame that describe tools
    reported: int | None = None  # tokens of the last prompt, where the provider told them
    left_out: int = 0  # tokens of the view that this one request leaves out

    @property
    def config(self) -> ContextConfig:
        return self.facts.config

    @property
    def limit(self) -> int | None:
        """Return the policy's own ceiling."""
        return self.budget.limit

    @property
    def prompt(self) -> int:
        """Return the prompt that the provider is expected to report, apart from recalled text."""
        return self.budget.prompt

    def margin(self, prompt: int) -> int | None:
        """Return the tokens by which the estimate ``prompt`` may be too low. None if no report has calibrated it and
        nothing is left out.
        """
        if self.left_out:
            return self.most(prompt + self.left_out) - least_of(self.left_out, self.factor) - prompt
        return margin_of(prompt, self.reported, self.factor) if self.source == "calibrated" else None

    def most(self, whole: int) -> int:
        """Return the most tokens that a prompt may have whose estimate is ``whole``."""
        if self.source != "calibrated":
            return max(round(whole * (1 + ESTIMATES_ERR)), self.reported or 0)
        return max(whole + margin_of(whole, self.reported, self.factor), self.reported or 0)

    def most_expected(self, tokens: int) -> int:
        """Return how high the estimate of a part of the view must be for it to surely have ``tokens``."""
        return math.ceil(tokens * DENSEST * max(1.0, self.factor))

    def count(self, messages: Sequence[Message]) -> int:
        return math.ceil(self.counter.count_messages(messages) * self.factor) + parts_tokens(messages, self.model)

    def count_text(self, text: str) -> int:
        return math.ceil(self.counter.count(text) * self.factor)


def facts_of(agent: Agent, model: ModelInfo, thresholds: Thresholds) -> CountingFacts:
    return CountingFacts(
        window=thresholds.context_limit,
        model_id=model.model_id,
        tokenizer=model.tokenizer,
        agent_limit=agent.context_limit,
        llm_type=agent.llm_type,
        priority=agent.priority,
        read_config=current_config,
    )


def sizes_of(
    dialog: Dialog, units: Units, model: ModelInfo, thresholds: Thresholds, tools: Sequence[ToolSpec], policy: Policy
) -> Sizes:
    """Count a view by the rules and the limit of one compaction policy."""
    agent = dialog.agent
    facts = facts_of(agent, model, thresholds)
    counter = counter_for(model.model_id, policy.tokenizer(facts))
    calibration = calibration_of(dialog) or _first_calibration(model, units, counter)
    factor = calibration.slope if calibration else 1.0
    frame = frame_of(dialog, units, tools, counter, calibration)
    sent = _as_sent(units, model)
    raw = [counter.count_messages(messages) for messages in sent]
    images = [parts_tokens(messages, model) for messages in sent]
    areas, default = agent.headings_kept_first, max(agent.priority, 2)
    sized = tuple(
        [
            _size(unit, areas, default, math.ceil(tokens * factor) + of_images)
            for unit, tokens, of_images in zip(units, raw, images, strict=True)
        ]
    )
    counted = replace(frame.counted, text=frame.counted.text + sum(raw), images=sum(images))
    reported = dialog.prompt_tokens if dialog.report == Dialog.Report.REPORTED else None
    budget = _budget_of(model, thresholds, policy, facts, frame.input_tokens, sized)
    of_tools = round(frame.counted.tools * (calibration.tools_share if calibration else 1.0))
    return Sizes(sized, budget, frame.source, factor, counted, counter, facts, model, of_tools, reported)


def frame_of(
    dialog: Dialog,
    units: Units,
    tools: Sequence[ToolSpec],
    counter: Counter,
    calibration: Calibration | None = None,
) -> RequestEstimate:
    """Estimate what stands in every request beside the view: instructions, tools and reminders."""
    first, system = system_messages_of(dialog, units)
    beside = tuple(item.message for item in in_order(system, statements_of(dialog, 0)))
    return estimate_request(instructions_of(dialog) + first, beside, tools, counter, calibration)


def _budget_of(
    model: ModelInfo, thresholds: Thresholds, policy: Policy, facts: CountingFacts, frame: int, units: Units
) -> Budget:
    limit, window = policy.limit(facts), thresholds.context_limit
    newest = units[-1] if units else None  # stays: it may be a call under way
    return Budget(
        limit=limit,
        window=window,
        frame=frame,
        view=total_tokens(units),
        stays=sum([unit.est_tokens for unit in units if unit.pinned or unit is newest]),
        answer=answer_room(model.output_length, window or limit),
        answered=longest_of_newest_answers(units),
        counts_answer=policy.reserves_answer,
        trigger_share=policy.trigger_share(facts.config) if policy.trigger_share else TRIGGER_SHARE,
        aim_share=policy.target_percent / 100,
        optimal=thresholds.effective_optimal_max,
        critical=thresholds.effective_critical_max,
    )


def _as_sent(units: Units, model: ModelInfo) -> list[Sequence[Message]]:
    """Return each unit's messages as the request has them, which may not take all images."""
    messages = tuple([message for unit in units for message in unit.messages])
    shown, left_out = sendable(messages, model)
    if not left_out:
        return [unit.messages for unit in units]
    rest = iter(shown)
    return [[next(rest) for _ in unit.messages] for unit in units]


def parts_tokens(messages: Sequence[Message], model: ModelInfo) -> int:
    """Count images by their provider's rule. For a model that sees none, lines stand for them, which count as 0."""
    parts = [part for message in with_parts(messages) for part in message.parts]
    return sum(part_tokens(part, model) for part in parts) if parts and not unseen_images(model) else 0


def calibration_of(context_state: ContextState) -> Calibration | None:
    """Return the calibration by the dialog's reports. Dialogs from before the fit have only one factor."""
    if context_state.calibration_fit:
        return Calibration.of_numbers(context_state.calibration_fit)
    return Calibration.of_factor(context_state.calibration) if context_state.calibration else None


def _first_calibration(model: ModelInfo, units: Units, counter: Counter) -> Calibration | None:
    """Calibrate by the server's own tokenizer, if it offers one, until the first report tells more."""
    if model.kind.count_tokens is None:
        return None
    text = "\n".join(unit.text for unit in units)[-SAMPLE_CHARS:]
    tokens = counted_by_server(model, text) if text else None
    return Calibration.of_factor(tokens / counter.count(text)) if tokens else None


def _size(unit: Unit, areas: tuple[str, ...], default: int, tokens: int) -> Unit:
    if unit.kind is not UnitKind.MESSAGE or not unit.source:
        return replace(unit, est_tokens=tokens)
    return unit.with_size(tokens, *_classify(unit.messages, unit.role, areas, default))


@functools.lru_cache(maxsize=16_384)
def _classify(
    messages: tuple[Message, ...], role: UnitRole, areas: tuple[str, ...], default: int
) -> tuple[UnitKind, int, str]:
    unit = Unit("", UnitKind.MESSAGE, role, messages)
    priority, area = priority_of(unit.text, areas, default, role)
    return kind_of(unit), priority, area


class StreamWatch:
    """Counts an answer while it streams, and asks the policy about the sum."""

    def __init__(self, sizes: Sizes, ask: Callable[[int, int | None], StreamDecision], recalled: int = 0) -> None:
        """``recalled`` tokens stand in the request beside what the sizes count."""
        self._sizes, self._ask = sizes, ask
        self._used = sizes.budget.prompt + recalled

    def __call__(self, text: str) -> StreamDecision:
        self._used += self._sizes.count_text(text)
        return self._ask(self._used, self._sizes.limit)

    def filled_by(self, reported_tokens: int) -> str:
        """Say that a request and its answer filled the context although the estimate stayed below; empty if not."""
        limit = self._sizes.limit
        if limit is None or reported_tokens < percent_of(limit, STREAM_PERCENT):
            return ""
        return f"the server ended the answer at {reported_tokens:,} of {limit:,} tokens"


def too_large(dialog: Dialog, served: Served, text: str) -> str:
    """Say why a message cannot be answered, with its size and what else takes the window; empty where it may fit
    (``docs/spec.md#too-large-message``).

    Scripts have no window. Long texts are counted, and servers may be asked for the window and for tools: call it
    outside a transaction.
    """
    model = served.model
    if not model.kind.is_server or len(text) < SHORT_CHARS:
        return ""
    thresholds = served.thresholds
    window = thresholds.context_limit and min(
        thresholds.context_limit, thresholds.input_limit or thresholds.context_limit
    )
    if window is None or len(text) / LEAST_CHARS_PER_TOKEN * 2 < window:
        return ""
    unit = Unit("new", UnitKind.MESSAGE, UnitRole.USER, (Message(Role.USER, text),))
    sizes = sizes_of(dialog, (unit,), model, thresholds, tools_offered(dialog, served), served.policy)
    budget = replace(sizes.budget, window=window)
    if budget.prompt * _sureness(sizes) + LEAST_ANSWER <= window:
        return ""
    return _too_large(sizes, budget)


def _too_large(sizes: Sizes, budget: Budget) -> str:
    """Say that a message has no room. The view of ``budget`` is that message alone."""
    tools = min(sizes.tools, budget.frame)
    told = f" tools est. {tools:,}," if tools else ""
    in_parts = (
        "Send it in parts" if budget.message_room >= LEAST_ANSWER else "Delete reminders, shorten the instructions"
    )
    return (
        f"The message is too large for {sizes.model.model_id}: it has est. {budget.view:,} tokens, and there is room "
        f"for {budget.message_room:,}. The model takes {budget.window or 0:,}, of which instructions and reminders "
        f"take est. {budget.frame - tools:,},{told} and an answer at least {LEAST_ANSWER:,}. {in_parts}, or "
        "choose a model with a larger context."
    )


def too_large_after_all(sizes: Sizes, policy: Policy) -> str:
    """Say why a message that the provider refused as too long cannot be answered, even if all else that may go is
    removed; empty if it may fit.

    The re-entry package stays. If the policy does not rewrite, there must be room to write one.
    """
    budget = sizes.budget
    if budget.window is None:
        return ""
    pinned = [unit for unit in sizes.units if unit.pinned]
    messages = total_tokens([unit for unit in pinned if unit.role is UnitRole.USER and unit.source])
    beside = total_tokens(pinned) - messages
    if policy.rewrite is None:
        beside = max(beside, package_room(budget.window))
    alone = replace(budget, frame=budget.frame + beside, view=messages)
    return _too_large(sizes, alone) if messages > alone.message_room else ""


def _sureness(sizes: Sizes) -> float:
    """Return the share of the estimate that the request surely has, 0 to 1."""
    model, source = sizes.model, sizes.source
    is_own = sizes.counter.name == vocabulary_for(model.model_id, model.tokenizer)
    if source == "tokenizer" and is_own and is_vocabulary_known(model.model_id, model.tokenizer):
        return SURE["calibrated"]
    return SURE.get(source, COARSE)
