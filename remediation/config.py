"""``context_config``, the content of ``context.yaml``: limits, warning threshold, the breaking chain and its options, retries.

A bad field is reported with its path and replaced by its default; everything else still works. ``to_mapping`` writes a
configuration back in the file's shape, so that a settings page edits it under the same validation.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from remediation.context import UnitKind

PRIORITY_LIMIT_PERCENT = 120  # of its limit: what a priority-1 agent may use
OLD_TOOL_NAMES = {"askQuestion": "ask_human"}  # the name in older files, and ours
RECOVERY_MODES = ("fresh_start", "truncate", "error")
PLACEHOLDER_DETAILS = ("brief", "linked")
STRATEGY_NAMES = ("summarize_old", "prioritize_recent", "content_type_chunking", "discard_low_rel", "hybrid")
OTHER_RATIO = 0.6  # of types without a ratio of their own

Problem = tuple[str, str]  # path, reason
Problems = list[Problem]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LlmLimit:
    """The limit in tokens for agents of one LLM type, unless ``follow_default`` is ticked."""

    type: str
    limit: int
    follow_default: bool = False


@dataclass(frozen=True, slots=True)
class SummarizeOld:
    old_threshold: float = 0.6  # the share of units, oldest first, that counts as old
    summary_length: int = 300  # tokens


@dataclass(frozen=True, slots=True)
class PrioritizeRecent:
    rel_threshold: float = 0.5  # relevance from which a unit is kept
    recent_bias: float = 0.2  # the share of newest units that is kept whatever its relevance
    priority_boost: float = 1.5  # multiplies the relevance of priority-1 units


@dataclass(frozen=True, slots=True)
class ContentTypeChunking:
    """``compress_ratios``: the share of its tokens that a unit of a type keeps; 1.0 is verbatim."""

    compress_ratios: Mapping[str, float] = field(
        default_factory=lambda: {"code": 0.7, "text": 0.5, "plan_ref": 1.0, "log": 0.4, "other": OTHER_RATIO}
    )

    def ratio_for(self, kind: UnitKind) -> float:
        """``text`` in the file means units of type message."""
        name = "text" if kind is UnitKind.MESSAGE else kind.value
        return self.compress_ratios.get(name, self.compress_ratios.get("other", OTHER_RATIO))


@dataclass(frozen=True, slots=True)
class DiscardLowRel:
    discard_percent: float = 0.3  # a share, 0 to 1, in spite of its name
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
class RetryPolicy:
    max_attempts: int = 3
    backoff_base_seconds: float = 5.0
    max_delay_seconds: float = 60.0

    def delay_seconds(self, failed_attempts: int) -> float:
        """How long to wait after that many failures: doubled each time, up to the maximum."""
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
    """The configuration and its defaults. ``tokenizer`` names a counter; empty is the model's own."""

    min_limit: int = 3500  # tokens; the floor under every limit
    default_limit: int = 5000  # tokens
    warning_threshold: float = 0.8  # of the limit
    per_llm: tuple[LlmLimit, ...] = ()
    breaking_strategy: BreakingStrategy = field(default_factory=BreakingStrategy)
    recovery_mode: str = "fresh_start"
    retry_policies: RetryPolicies = field(default_factory=RetryPolicies)
    tokenizer: str = ""

    def to_mapping(self) -> dict[str, Any]:
        """The content of ``context_config`` in the file's shape. Parsing it again gives an equal configuration."""
        strategy = self.breaking_strategy
        return {
            "min_limit": self.min_limit,
            "default_limit": self.default_limit,
            "warning_threshold": self.warning_threshold,
            "per_llm": [_as_mapping(entry) for entry in self.per_llm],
            "breaking_strategy": {
                "chain_order": list(strategy.chain_order),
                "summarize_old": _as_mapping(strategy.summarize_old),
                "prioritize_recent": _as_mapping(strategy.prioritize_recent),
                "content_type_chunking": {"compress_ratios": dict(strategy.content_type_chunking.compress_ratios)},
                "discard_low_rel": _as_mapping(strategy.discard_low_rel),
                "hybrid": _as_mapping(strategy.hybrid),
            },
            "recovery_mode": self.recovery_mode,
            "retry_policies": {
                "default": _as_mapping(self.retry_policies.default),
                "per_tool": {tool: _as_mapping(policy) for tool, policy in self.retry_policies.per_tool.items()},
            },
            "tokenizer": self.tokenizer,
        }


def _as_mapping(values: Any) -> dict[str, Any]:
    return {item.name: getattr(values, item.name) for item in fields(values)}


def effective_limit(
    config: ContextConfig, agent_limit: int | None, llm_type: str, priority: int, window: int | None
) -> int:
    """An agent's budget in tokens: its own limit, else its LLM type's, else the default; +20 % for priority 1.

    At least the floor and at most the model's ``window``, when that is known.
    """
    base = agent_limit or _type_limit(config, llm_type) or config.default_limit
    if priority == 1:
        base = base * PRIORITY_LIMIT_PERCENT // 100
    limit = max(base, config.min_limit)
    return limit if window is None else min(limit, window)


def _type_limit(config: ContextConfig, llm_type: str) -> int | None:
    entries = (entry for entry in config.per_llm if entry.type == llm_type and not entry.follow_default)
    return next((entry.limit for entry in entries), None)


def limits_below_floor(config: ContextConfig) -> Problems:
    """Limits that ``min_limit`` overrules: what was written does not hold."""
    named = [("default_limit", config.default_limit)]
    named += [(f"per_llm.{entry.type}", entry.limit) for entry in config.per_llm if not entry.follow_default]
    found = ((f"context_config.{path}", below_floor(limit, config.min_limit)) for path, limit in named)
    return [(path, reason) for path, reason in found if reason]


def below_floor(limit: int, floor: int) -> str:
    """Why a limit does not hold, and what to do; empty when it does."""
    if limit >= floor:
        return ""
    return (
        f"{limit:,} tokens are below the global minimum (min_limit) of {floor:,}. "
        f"Give {floor:,} or more, or lower the minimum first."
    )


def parse_context_config(content: Any) -> tuple[ContextConfig, Problems]:
    """The configuration that ``content``, the value of ``context_config`` or a mapping that holds it, describes."""
    problems: Problems = []
    if isinstance(content, Mapping) and isinstance(content.get("context_config"), Mapping):
        content = content["context_config"]
    section = _Section(content, "context_config", problems)
    config = ContextConfig(
        min_limit=section.read("min_limit", 3500, _positive_int),
        default_limit=section.read("default_limit", 5000, _positive_int),
        warning_threshold=section.read("warning_threshold", 0.8, _positive_share),
        per_llm=_read_llm_limits(section),
        breaking_strategy=_read_strategy(section.enter("breaking_strategy")),
        recovery_mode=section.read("recovery_mode", "fresh_start", _one_of(RECOVERY_MODES)),
        retry_policies=_read_retries(section.enter("retry_policies")),
        tokenizer=section.read("tokenizer", "", _text),
    )
    section.report_unknown()
    return config, problems


class _Section:
    """One mapping of the file, read field by field. What goes wrong is added to ``problems``, never raised."""

    def __init__(self, content: Any, path: str, problems: Problems) -> None:
        self.path, self.problems = path, problems
        self.known: set[str] = set()
        if content is not None and not isinstance(content, Mapping):
            problems.append((path, f"expected a mapping, found {_shown(content)}; using the defaults"))
        self.content: Mapping[Any, Any] = content if isinstance(content, Mapping) else {}

    def read(self, key: str, default: T, parse: Callable[[Any], T]) -> T:
        """The field's value, or ``default`` when it is missing or bad. An explicit null counts as missing."""
        self.known.add(key)
        found = self.content.get(key)
        if found is None:
            return default
        try:
            return parse(found)
        except _BadField as error:
            self.problems.append((f"{self.path}.{key}", f"{error}, found {_shown(found)}; using {default!r}"))
            return default

    def enter(self, key: str) -> "_Section":
        self.known.add(key)
        return _Section(self.content.get(key), f"{self.path}.{key}", self.problems)

    def report_unknown(self) -> None:
        for key in self.content:
            if key not in self.known:
                self.problems.append((f"{self.path}.{key}", "unknown key; ignored"))


class _BadField(ValueError):
    pass


def _read_llm_limits(section: _Section) -> tuple[LlmLimit, ...]:
    entries: list[Any] = section.read("per_llm", [], _list)
    limits: dict[str, LlmLimit] = {}
    for index, entry in enumerate(entries):
        item = _Section(entry, f"{section.path}.per_llm[{index}]", section.problems)
        limit = LlmLimit(
            type=item.read("type", "", _text),
            limit=item.read("limit", 0, _positive_int),
            follow_default=item.read("follow_default", not item.content.get("limit"), _bool),
        )
        item.report_unknown()
        if reason := _entry_fault(limit, limits):
            section.problems.append((item.path, reason))
        else:
            limits[limit.type] = limit
    return tuple(limits.values())


def _entry_fault(entry: LlmLimit, earlier: Mapping[str, LlmLimit]) -> str:
    if not entry.type:
        return "an entry needs a type; ignored"
    if entry.type in earlier:
        return f"the type {entry.type!r} is listed twice; the first entry holds"
    return "" if entry.limit or entry.follow_default else "an entry needs a limit or follow_default: true; ignored"


def _read_strategy(section: _Section) -> BreakingStrategy:
    strategy = BreakingStrategy(
        chain_order=section.read("chain_order", STRATEGY_NAMES, _chain),
        summarize_old=_read_summarize_old(section.enter("summarize_old")),
        prioritize_recent=_read_prioritize_recent(section.enter("prioritize_recent")),
        content_type_chunking=_read_chunking(section.enter("content_type_chunking")),
        discard_low_rel=_read_discard(section.enter("discard_low_rel")),
        hybrid=_read_hybrid(section.enter("hybrid")),
    )
    section.report_unknown()
    return strategy


def _read_summarize_old(section: _Section) -> SummarizeOld:
    options = SummarizeOld(
        old_threshold=section.read("old_threshold", 0.6, _share),
        summary_length=section.read("summary_length", 300, _positive_int),
    )
    section.report_unknown()
    return options


def _read_prioritize_recent(section: _Section) -> PrioritizeRecent:
    options = PrioritizeRecent(
        rel_threshold=section.read("rel_threshold", 0.5, _share),
        recent_bias=section.read("recent_bias", 0.2, _share),
        priority_boost=section.read("priority_boost", 1.5, _at_least_one),
    )
    section.report_unknown()
    return options


def _read_chunking(section: _Section) -> ContentTypeChunking:
    ratios = section.enter("compress_ratios")
    defaults = ContentTypeChunking().compress_ratios
    read = {kind: ratios.read(kind, default, _positive_share) for kind, default in defaults.items()}
    ratios.report_unknown()
    section.report_unknown()
    return ContentTypeChunking(read)


def _read_discard(section: _Section) -> DiscardLowRel:
    options = DiscardLowRel(
        discard_percent=section.read("discard_percent", 0.3, _share),
        placeholder_detail=section.read("placeholder_detail", "brief", _one_of(PLACEHOLDER_DETAILS)),
    )
    section.report_unknown()
    return options


def _read_hybrid(section: _Section) -> Hybrid:
    options = Hybrid(max_iterations=section.read("max_iterations", 3, _up_to_three))
    section.report_unknown()
    return options


def _read_retries(section: _Section) -> RetryPolicies:
    default = _read_policy(section.enter("default"), RetryPolicy())
    tools = section.enter("per_tool")
    per_tool: dict[str, RetryPolicy] = {}
    for tool in tools.content:
        name = OLD_TOOL_NAMES.get(str(tool), str(tool))
        per_tool[name] = _read_policy(tools.enter(tool), default)
    section.report_unknown()
    return RetryPolicies(default, per_tool)


def _read_policy(section: _Section, default: RetryPolicy) -> RetryPolicy:
    """A tool's policy names only what differs from the default policy."""
    policy = RetryPolicy(
        max_attempts=section.read("max_attempts", default.max_attempts, _positive_int),
        backoff_base_seconds=section.read("backoff_base_seconds", default.backoff_base_seconds, _seconds),
        max_delay_seconds=section.read("max_delay_seconds", default.max_delay_seconds, _seconds),
    )
    section.report_unknown()
    return policy


def _positive_int(found: Any) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found <= 2_000_000_000:
        raise _BadField("expected a whole number above 0")
    return found


def _up_to_three(found: Any) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found <= 3:
        raise _BadField("expected 1, 2 or 3")
    return found


def _number(found: Any) -> float:
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise _BadField("expected a number")
    return float(found)


def _share(found: Any) -> float:
    if not 0 <= _number(found) <= 1:
        raise _BadField("expected a number from 0 to 1")
    return float(found)


def _positive_share(found: Any) -> float:
    if not 0 < _number(found) <= 1:
        raise _BadField("expected a number above 0 and up to 1")
    return float(found)


def _at_least_one(found: Any) -> float:
    if not 1 <= _number(found) <= 100:
        raise _BadField("expected a number from 1 to 100")
    return float(found)


def _seconds(found: Any) -> float:
    if not 0 <= _number(found) <= 86_400:
        raise _BadField("expected seconds from 0 to 86400")
    return float(found)


def _bool(found: Any) -> bool:
    if not isinstance(found, bool):
        raise _BadField("expected true or false")
    return found


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise _BadField("expected a text")
    return found.strip()


def _list(found: Any) -> list[Any]:
    if not isinstance(found, list | tuple):
        raise _BadField("expected a list")
    return list(found)


def _one_of(choices: Sequence[str]) -> Callable[[Any], str]:
    def parse(found: Any) -> str:
        if found not in choices:
            raise _BadField(f"expected one of {', '.join(choices)}")
        return str(found)

    return parse


def _chain(found: Any) -> tuple[str, ...]:
    names = _list(found)
    unknown = [name for name in names if name not in STRATEGY_NAMES]
    if unknown or not names or len(set(names)) < len(names):
        raise _BadField(f"expected strategies, each once, of {', '.join(STRATEGY_NAMES)}")
    return tuple(names)


def _shown(found: Any) -> str:
    text = repr(found)
    return text if len(text) <= 60 else f"{text[:57]}..."
