"""Reading ``context_config``: a bad field is reported with its path and replaced by its default; the others still hold."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from remediation.config import (
    OLD_TOOL_NAMES,
    PLACEHOLDER_DETAILS,
    RECOVERY_MODES,
    STRATEGY_NAMES,
    BreakingStrategy,
    ContentTypeChunking,
    ContextConfig,
    DiscardLowRel,
    Hybrid,
    LlmLimit,
    PrioritizeRecent,
    Problems,
    RetryPolicies,
    RetryPolicy,
    SummarizeOld,
)

T = TypeVar("T")


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
