"""``context_config``, the content of ``context.yaml``: limits, the breaking chain, weights of retention, and retries.

``to_mapping`` writes a configuration back in the file's shape, so that a settings page can edit it under the same
validation.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from remediation.context import UnitKind

PRIORITY_LIMIT_PERCENT = 120  # of its limit, which an agent of priority 1 may use
OLD_TOOL_NAMES = {"askQuestion": "ask_human"}  # from the name in older files to the present one
RECOVERY_MODES = ("fresh_start", "truncate", "error")
RELEVANCES = ("minilm", "wording")
PLACEHOLDER_DETAILS = ("brief", "linked")
STRATEGY_NAMES = ("summarize_old", "prioritize_recent", "content_type_chunking", "discard_low_rel", "hybrid")
OTHER_RATIO = 0.6  # the default for types without a ratio


@dataclass(frozen=True, slots=True)
class LlmLimit:
    """The limit in tokens for agents of one LLM type. ``follow_default`` means the default limit instead."""

    type: str
    limit: int
    follow_default: bool = False


@dataclass(frozen=True, slots=True)
class SummarizeOld:
    old_threshold: float = 0.6  # the share of units, oldest first, that counts as old
    summary_length: int = 300  # tokens


@dataclass(frozen=True, slots=True)
class PrioritizeRecent:
    rel_threshold: float = 0.5  # the least relevance of a unit that is kept
    recent_bias: float = 0.2  # the share of units, newest first, that is kept regardless of relevance
    priority_boost: float = 1.5  # multiplies the relevance of priority-1 units


@dataclass(frozen=True, slots=True)
class ContentTypeChunking:
    """``compress_ratios``: the share of its tokens that a unit of a type keeps; 1.0 is verbatim."""

    compress_ratios: Mapping[str, float] = field(
        default_factory=lambda: {"code": 0.7, "text": 0.5, "plan_ref": 1.0, "log": 0.4, "other": OTHER_RATIO}
    )

    def ratio_for(self, kind: UnitKind) -> float:
        """Return the ratio for units of this kind. The file calls the kind ``message`` "text"."""
        name = "text" if kind is UnitKind.MESSAGE else kind.value
        return self.compress_ratios.get(name, self.compress_ratios.get("other", OTHER_RATIO))


@dataclass(frozen=True, slots=True)
class DiscardLowRel:
    discard_percent: float = 0.3  # a share, 0 to 1, despite its name
    placeholder_detail: str = "brief"


@dataclass(frozen=True, slots=True)
class Hybrid:
    max_iterations: int = 3


@dataclass(frozen=True, slots=True)
class BreakingStrategy:
    chain_order: tuple[str, ...] = STRATEGY_NAMES
    summarize_old: SummarizeOld = SummarizeOld()
    prioritize_recent: PrioritizeRecent = PrioritizeRecent()
    content_type_chunking: ContentTypeChunking = field(default_factory=ContentTypeChunking)
    discard_low_rel: DiscardLowRel = DiscardLowRel()
    hybrid: Hybrid = Hybrid()


@dataclass(frozen=True, slots=True)
class Weights:
    """Points of a unit's score, of 100 in all (docs/spec.md#retention-score)."""

    recency: float = 40
    role_system: float = 30
    role_user: float = 20
    role_model: float = 10
    failures: float = 15
    operations: float = 10
    length: float = 5
    long_text_chars: int = 1_000  # a text longer than this earns ``length``

    @property
    def most(self) -> float:
        """Return the highest score that a unit can have."""
        role = max(self.role_system, self.role_user, self.role_model)
        return self.recency + role + self.failures + self.operations + self.length


PRESETS: Mapping[str, Weights] = {
    "balanced": Weights(),
    "newest": Weights(70, 15, 10, 5, 8, 4, 3),  # for dialogs without tools, see docs/quality.md
}


@dataclass(frozen=True, slots=True)
class Retention:
    """The weights of retention: those of the preset, where the file does not set a weight itself."""

    preset: str = "balanced"
    weights: Weights = Weights()

    def changed_weights(self) -> dict[str, Any]:
        """Return the weights that differ from the preset's."""
        of_preset = asdict(PRESETS[self.preset])
        return {name: value for name, value in asdict(self.weights).items() if value != of_preset[name]}


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    max_attempts: int = 3
    backoff_base_seconds: float = 5.0
    max_delay_seconds: float = 60.0

    def delay_seconds(self, failed_attempts: int) -> float:
        """Return the seconds to wait after that many failures: doubled each time, up to the maximum."""
        doublings = min(max(failed_attempts - 1, 0), 32)
        return min(self.max_delay_seconds, self.backoff_base_seconds * 2.0**doublings)


@dataclass(frozen=True, slots=True)
class RetryPolicies:
    default: RetryPolicy = RetryPolicy()
    per_tool: Mapping[str, RetryPolicy] = field(default_factory=dict)

    def policy_for(self, tool: str) -> RetryPolicy:
        return self.per_tool.get(tool, self.default)


@dataclass(frozen=True, slots=True)
class ContextConfig:
    """The configuration and its defaults. ``tokenizer`` names a counter; empty means that of the model.
    ``relevance`` names the way in which breaking judges units.
    """

    min_limit: int = 3500  # tokens; the floor under every limit
    default_limit: int = 5000  # tokens
    warning_threshold: float = 0.8  # of the limit
    per_llm: tuple[LlmLimit, ...] = ()
    breaking_strategy: BreakingStrategy = field(default_factory=BreakingStrategy)
    recovery_mode: str = "fresh_start"
    relevance: str = "minilm"
    retention: Retention = Retention()
    retry_policies: RetryPolicies = field(default_factory=RetryPolicies)
    tokenizer: str = ""

    def to_mapping(self) -> dict[str, Any]:
        """Return ``context_config`` in the file's shape. Parsing it again gives an equal configuration."""
        retention = {"preset": self.retention.preset, "weights": self.retention.changed_weights()}
        return {**asdict(self), "retention": retention}


def effective_limit(
    config: ContextConfig, agent_limit: int | None, llm_type: str, priority: int, window: int | None
) -> int:
    """Return an agent's budget in tokens: its own limit, else that of its LLM type, else the default.

    Priority 1 adds 20 %. The result is at least ``min_limit``, and at most the model's ``window`` if that is known.
    """
    base = agent_limit or _type_limit(config, llm_type) or config.default_limit
    if priority == 1:
        base = base * PRIORITY_LIMIT_PERCENT // 100
    limit = max(base, config.min_limit)
    return limit if window is None else min(limit, window)


def _type_limit(config: ContextConfig, llm_type: str) -> int | None:
    entries = (entry for entry in config.per_llm if entry.type == llm_type and not entry.follow_default)
    return next((entry.limit for entry in entries), None)


def below_floor(limit: int, floor: int) -> str:
    """Explain why a limit has no effect, and what to do about it; empty if it has one."""
    if limit >= floor:
        return ""
    return (
        f"{limit:,} tokens are below the global minimum (min_limit) of {floor:,}. "
        f"Give {floor:,} or more, or lower the minimum first."
    )
