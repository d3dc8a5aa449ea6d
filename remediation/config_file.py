"""Reader of ``context_config``. A bad field is reported with its path and replaced by its default."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from dominds.yaml_fields import (
    Bad,
    Field,
    Problem,
    Reading,
    anything,
    number,
    one_of,
    quote_value,
    text,
    text_or_empty,
    truth,
    whole_number,
)
from remediation.config import (
    OLD_TOOL_NAMES,
    PLACEHOLDER_DETAILS,
    PRESETS,
    RECOVERY_MODES,
    RELEVANCES,
    STRATEGY_NAMES,
    BreakingStrategy,
    ContentTypeChunking,
    ContextConfig,
    DiscardLowRel,
    Hybrid,
    LlmLimit,
    PrioritizeRecent,
    Retention,
    RetryPolicies,
    RetryPolicy,
    SummarizeOld,
    Weights,
    below_floor,
)

FILE = "context.yaml"
DAY_SECONDS = 86_400
MOST_POINTS = 100


def _positive_share(value: Any) -> float:
    if value == 0:
        raise Bad(f"expected a number above 0 and up to 1, found {quote_value(value)}")
    share: float = _SHARE(value)
    return share


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise Bad(f"expected a list, found {quote_value(value)}")
    return list(value)


def _chain(value: Any) -> tuple[str, ...]:
    names = _list(value)
    unknown = [name for name in names if name not in STRATEGY_NAMES]
    if unknown or not names or len(set(names)) < len(names):
        raise Bad(f"expected strategies, each once, of {', '.join(STRATEGY_NAMES)}, found {quote_value(value)}")
    return tuple(names)


_SHARE = number(0, 1)
_POSITIVE = whole_number(1, 2_000_000_000)
_CONFIG: dict[str, Field] = {
    "min_limit": _POSITIVE,
    "default_limit": _POSITIVE,
    "warning_threshold": _positive_share,
    "per_llm": _list,
    "breaking_strategy": anything,
    "recovery_mode": one_of(RECOVERY_MODES),
    "relevance": one_of(RELEVANCES),
    "retention": anything,
    "retry_policies": anything,
    "tokenizer": text_or_empty,
}
_LLM_LIMIT: dict[str, Field] = {"type": text, "limit": _POSITIVE, "follow_default": truth}
_STRATEGIES: dict[str, tuple[type[Any], dict[str, Field]]] = {
    "summarize_old": (SummarizeOld, {"old_threshold": _SHARE, "summary_length": _POSITIVE}),
    "prioritize_recent": (
        PrioritizeRecent,
        {"rel_threshold": _SHARE, "recent_bias": _SHARE, "priority_boost": number(1, 100)},
    ),
    "discard_low_rel": (
        DiscardLowRel,
        {"discard_percent": _SHARE, "placeholder_detail": one_of(PLACEHOLDER_DETAILS)},
    ),
    "hybrid": (Hybrid, {"max_iterations": whole_number(1, 3)}),
}
_WEIGHTS: dict[str, Field] = {
    **{weight.name: number(0, MOST_POINTS) for weight in fields(Weights)},
    "long_text_chars": _POSITIVE,
}
_RETRY_POLICY: dict[str, Field] = {
    "max_attempts": _POSITIVE,
    "backoff_base_seconds": number(0, DAY_SECONDS),
    "max_delay_seconds": number(0, DAY_SECONDS),
}


def parse_context_config(content: Any, file: str = FILE) -> tuple[ContextConfig, list[Problem]]:
    """Read the configuration and its problems. ``content`` is ``context_config``, or a mapping that holds it."""
    reading = Reading(file)
    path = "context_config"
    if isinstance(content, Mapping) and isinstance(content.get(path), Mapping):
        content = content[path]
    value = reading.fields(content, path, _CONFIG)
    value["per_llm"] = _llm_limits(reading, value.get("per_llm", ()), f"{path}.per_llm")
    value["breaking_strategy"] = _strategy(reading, value.get("breaking_strategy"), f"{path}.breaking_strategy")
    value["retention"] = _retention(reading, value.get("retention"), f"{path}.retention")
    value["retry_policies"] = _retries(reading, value.get("retry_policies"), f"{path}.retry_policies")
    return ContextConfig(**value), reading.problems


def limits_below_floor(config: ContextConfig, file: str = FILE) -> list[Problem]:
    """Return a problem for each limit that has no effect because it is below ``min_limit``."""
    named = [("default_limit", config.default_limit)]
    named += [(f"per_llm.{entry.type}", entry.limit) for entry in config.per_llm if not entry.follow_default]
    reasons = ((f"context_config.{path}", below_floor(limit, config.min_limit)) for path, limit in named)
    return [Problem(file, path, reason) for path, reason in reasons if reason]


def _llm_limits(reading: Reading, entries: list[Any], path: str) -> tuple[LlmLimit, ...]:
    limits: dict[str, LlmLimit] = {}
    for index, entry in enumerate(entries):
        here = f"{path}[{index}]"
        value = reading.fields(entry, here, _LLM_LIMIT)
        has_number = isinstance(entry, Mapping) and bool(entry.get("limit"))
        limit = LlmLimit(value.get("type", ""), value.get("limit", 0), value.get("follow_default", not has_number))
        if reason := _entry_fault(limit, limits):
            reading.report(here, reason)
        else:
            limits[limit.type] = limit
    return tuple(limits.values())


def _entry_fault(entry: LlmLimit, earlier: Mapping[str, LlmLimit]) -> str:
    if not entry.type:
        return "an entry needs a type; ignored"
    if entry.type in earlier:
        return f"the type {entry.type!r} is listed twice; the first entry holds"
    return "" if entry.limit or entry.follow_default else "an entry needs a limit or follow_default: true; ignored"


def _strategy(reading: Reading, value: Any, path: str) -> BreakingStrategy:
    names = ("content_type_chunking", *_STRATEGIES)
    result = reading.fields(value, path, {"chain_order": _chain, **dict.fromkeys(names, anything)})
    for name, (options, known) in _STRATEGIES.items():
        result[name] = options(**reading.fields(result.get(name), f"{path}.{name}", known))
    here = f"{path}.content_type_chunking"
    chunking = reading.fields(result.get("content_type_chunking"), here, {"compress_ratios": anything})
    defaults = ContentTypeChunking().compress_ratios
    known = dict.fromkeys(defaults, _positive_share)
    ratios = reading.fields(chunking.get("compress_ratios"), f"{here}.compress_ratios", known)
    result["content_type_chunking"] = ContentTypeChunking({**defaults, **ratios})
    return BreakingStrategy(**result)


def _retention(reading: Reading, value: Any, path: str) -> Retention:
    """Read the retention. The file's weights replace those of the preset one by one."""
    result = reading.fields(value, path, {"preset": one_of(tuple(PRESETS)), "weights": anything})
    preset = result.get("preset", Retention().preset)
    weights = replace(PRESETS[preset], **reading.fields(result.get("weights"), f"{path}.weights", _WEIGHTS))
    if weights.most <= MOST_POINTS:
        return Retention(preset, weights)
    parts = "recency, the highest role, failures, operations and length"
    reading.report(f"{path}.weights", f"{parts} come to {weights.most:g}: at most {MOST_POINTS}; the preset's hold")
    return Retention(preset, PRESETS[preset])


def _retries(reading: Reading, value: Any, path: str) -> RetryPolicies:
    """Read the retries. The fields of a tool's policy replace those of the default policy one by one."""
    result = reading.fields(value, path, {"default": anything, "per_tool": anything})
    default = RetryPolicy(**reading.fields(result.get("default"), f"{path}.default", _RETRY_POLICY))
    per_tool = {
        OLD_TOOL_NAMES.get(tool, tool): replace(
            default, **reading.fields(policy, f"{path}.per_tool.{tool}", _RETRY_POLICY)
        )
        for tool, policy in reading.entries(result.get("per_tool"), f"{path}.per_tool")
    }
    return RetryPolicies(default, per_tool)
