"""``context_config``: the specified YAML, every bad field, limits, retries, and the way back."""

from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from remediation.config import (
    PRESETS,
    STRATEGY_NAMES,
    ContextConfig,
    LlmLimit,
    Retention,
    RetryPolicy,
    Weights,
    effective_limit,
)
from remediation.config_file import parse_context_config
from remediation.context import UnitKind

DOCUMENT = """
context_config:
  min_limit: 3500  # Global floor (user-configurable)
  default_limit: 5000
  warning_threshold: 0.8
  per_llm:
    - type: "local_14b"
      limit: 3500
      follow_default: true
    - type: "cloud_grok"
      limit: 8000
      follow_default: false
    - type: "gpt4"
      limit: 6000
      follow_default: true
  breaking_strategy:
    chain_order:
      - "summarize_old"
      - "prioritize_recent"
      - "content_type_chunking"
      - "discard_low_rel"
      - "hybrid"
    summarize_old:
      old_threshold: 0.6
      summary_length: 300
    prioritize_recent:
      rel_threshold: 0.5
      recent_bias: 0.2
      priority_boost: 1.5
    content_type_chunking:
      compress_ratios:
        code: 0.7
        text: 0.5
        plan_ref: 1.0
        log: 0.4
    discard_low_rel:
      discard_percent: 0.3
      placeholder_detail: "brief"
    hybrid:
      max_iterations: 3
  recovery_mode: "fresh_start"
  retry_policies:
    default:
      max_attempts: 3
      backoff_base_seconds: 5
      max_delay_seconds: 60
    per_tool:
      askQuestion:
        max_attempts: 4
        backoff_base_seconds: 10
"""


def parsed(**fields: Any) -> tuple[ContextConfig, list[str]]:
    config, problems = parse_context_config(fields)
    return config, [f"{problem.path}: {problem.reason}" for problem in problems]


def test_the_specified_yaml_has_no_problems_and_says_what_it_says() -> None:
    config, problems = parse_context_config(yaml.safe_load(DOCUMENT))
    assert problems == []
    assert config.per_llm[1] == LlmLimit("cloud_grok", 8000, False)
    assert config.breaking_strategy.chain_order == STRATEGY_NAMES
    assert config.retry_policies.policy_for("ask_human") == RetryPolicy(4, 10, 60)
    assert config.retry_policies.policy_for("shell") == RetryPolicy(3, 5, 60)


def test_the_specified_values_are_the_defaults() -> None:
    config, _ = parse_context_config(yaml.safe_load(DOCUMENT))
    default = ContextConfig()
    assert config.breaking_strategy == default.breaking_strategy
    assert (config.min_limit, config.default_limit, config.warning_threshold) == (3500, 5000, 0.8)
    assert config.recovery_mode == default.recovery_mode


@pytest.mark.parametrize("content", [None, {}, {"context_config": {}}])
def test_nothing_configured_is_the_default(content: Any) -> None:
    assert parse_context_config(content) == (ContextConfig(), [])


@pytest.mark.parametrize(
    ("kind", "ratio"),
    [
        (UnitKind.MESSAGE, 0.5),  # "text" there
        (UnitKind.CODE, 0.7),
        (UnitKind.PLAN_REF, 1.0),
        (UnitKind.LOG, 0.4),
        (UnitKind.OTHER, 0.6),
        (UnitKind.SUMMARY, 0.6),
    ],
)
def test_ratios_by_type(kind: UnitKind, ratio: float) -> None:
    assert ContextConfig().breaking_strategy.content_type_chunking.ratio_for(kind) == ratio


@pytest.mark.parametrize(
    ("path", "bad"),
    [
        ("min_limit", -1),
        ("min_limit", "many"),
        ("min_limit", True),
        ("default_limit", 0),
        ("default_limit", 5000.5),
        ("warning_threshold", 0),
        ("warning_threshold", 1.5),
        ("warning_threshold", float("nan")),
        ("recovery_mode", "pray"),
        ("recovery_mode", ["fresh_start"]),
        ("relevance", "bm25"),
        ("tokenizer", 7),
        ("per_llm", {"type": "x"}),
        ("breaking_strategy", "all"),
        ("breaking_strategy.chain_order", ["summarize_old", "magic"]),
        ("breaking_strategy.chain_order", []),
        ("breaking_strategy.chain_order", ["hybrid", "hybrid"]),
        ("breaking_strategy.chain_order", [{}]),
        ("breaking_strategy.summarize_old.old_threshold", 2),
        ("breaking_strategy.summarize_old.summary_length", "300"),
        ("breaking_strategy.prioritize_recent.rel_threshold", -0.1),
        ("breaking_strategy.prioritize_recent.recent_bias", None.__class__),
        ("breaking_strategy.prioritize_recent.priority_boost", 0.5),
        ("breaking_strategy.content_type_chunking.compress_ratios", 0.5),
        ("breaking_strategy.content_type_chunking.compress_ratios.code", 0),
        ("breaking_strategy.discard_low_rel.discard_percent", 30),
        ("breaking_strategy.discard_low_rel.placeholder_detail", "long"),
        ("breaking_strategy.hybrid.max_iterations", 4),
        ("retention", "all"),
        ("retention.preset", "mine"),
        ("retention.weights", [40]),
        ("retention.weights.recency", -1),
        ("retention.weights.failures", 101),
        ("retention.weights.length", "5"),
        ("retention.weights.long_text_chars", 0),
        ("retry_policies.default.max_attempts", 0),
        ("retry_policies.default.backoff_base_seconds", -5),
        ("retry_policies.per_tool.shell.max_delay_seconds", "1m"),
    ],
)
def test_a_bad_field_is_named_by_path_and_gets_its_default(path: str, bad: Any) -> None:
    content: dict[str, Any] = {}
    inner = content
    *parents, last = path.split(".")
    for key in parents:
        inner = inner.setdefault(key, {})
    inner[last] = bad
    config, problems = parse_context_config(content)
    assert [problem.path for problem in problems] == [f"context_config.{path}"]
    changed = config.to_mapping()
    changed["retry_policies"]["per_tool"] = {}
    assert changed == ContextConfig().to_mapping()


def test_one_bad_field_leaves_the_others_standing() -> None:
    config, problems = parsed(min_limit="x", default_limit=7000, recovery_mode="truncate")
    assert (config.min_limit, config.default_limit, config.recovery_mode) == (3500, 7000, "truncate")
    assert len(problems) == 1


def test_unknown_keys_are_reported() -> None:
    _, problems = parsed(minlimit=3, breaking_strategy={"summarise_old": {}, "hybrid": {"passes": 3}})
    assert sorted(problem.split(":")[0] for problem in problems) == [
        "context_config.breaking_strategy.hybrid.passes",
        "context_config.breaking_strategy.summarise_old",
        "context_config.minlimit",
    ]


def test_what_is_not_a_mapping_is_reported() -> None:
    config, problems = parse_context_config(["min_limit", 3])
    assert config == ContextConfig()
    assert problems[0].path == "context_config"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"limit": 4000}, "needs a type"),
        ({"type": "a", "limit": "x"}, "expected a whole number"),
        ("gpt4", "expected a mapping"),
        ({"type": "known", "limit": 1}, "listed twice"),
        ({"type": "a", "follow_default": False}, "needs a limit"),
    ],
)
def test_a_bad_entry_of_per_llm_is_reported_others_hold(entry: Any, reason: str) -> None:
    config, problems = parsed(per_llm=[{"type": "known", "limit": 6000}, entry])
    assert config.per_llm[0] == LlmLimit("known", 6000)
    assert any(reason in problem and "per_llm[1]" in problem for problem in problems)


LIMITS = ContextConfig(
    per_llm=(LlmLimit("local_14b", 3600, True), LlmLimit("cloud_grok", 8000), LlmLimit("tiny", 1000)),
)


@pytest.mark.parametrize(
    ("agent_limit", "llm_type", "priority", "window", "limit"),
    [
        (None, "", 3, None, 5000),  # the default
        (4000, "cloud_grok", 3, None, 4000),  # the agent's own comes first
        (None, "cloud_grok", 3, None, 8000),  # its type's
        (None, "local_14b", 3, None, 5000),  # follow_default is ticked
        (None, "unheard_of", 2, None, 5000),
        (None, "", 1, None, 6000),  # 5000 * 1.2
        (4000, "", 1, None, 4800),  # 4000 * 1.2
        (1000, "", 3, None, 3500),  # the floor
        (1000, "", 1, None, 3500),  # 1200, then the floor
        (None, "tiny", 3, None, 3500),
        (9000, "", 3, 8192, 8192),  # the model's window
        (9000, "", 1, 10_000, 10_000),  # 10,800, then the window
        (None, "", 3, 2048, 2048),  # a window below the floor wins: more does not fit
        (0, "", 3, None, 5000),  # an empty form field
        (4001, "", 1, None, 4801),  # 4801.2
    ],
)
def test_the_effective_limit(
    agent_limit: int | None, llm_type: str, priority: int, window: int | None, limit: int
) -> None:
    assert effective_limit(LIMITS, agent_limit, llm_type, priority, window) == limit


def test_the_floor_can_be_changed() -> None:
    assert effective_limit(ContextConfig(min_limit=1000), 1200, "", 3, None) == 1200


@pytest.mark.parametrize(("failed", "seconds"), [(0, 5), (1, 5), (2, 10), (3, 20), (4, 40), (5, 60), (5000, 60)])
def test_delays_double_up_to_the_maximum(failed: int, seconds: float) -> None:
    assert RetryPolicy().delay_seconds(failed) == seconds


def test_a_tools_policy_starts_from_the_default_policy() -> None:
    config, _ = parsed(retry_policies={"default": {"max_attempts": 7}, "per_tool": {"shell": {"max_delay_seconds": 9}}})
    assert config.retry_policies.policy_for("shell") == RetryPolicy(7, 5, 9)


@pytest.mark.parametrize(
    ("retention", "weights"),
    [
        ({}, Weights()),
        ({"preset": "newest"}, PRESETS["newest"]),
        ({"weights": {"recency": 20}}, Weights(recency=20)),
        ({"preset": "newest", "weights": {"length": 0}}, replace(PRESETS["newest"], length=0)),
    ],
)
def test_single_weights_are_laid_over_a_preset(retention: dict[str, Any], weights: Weights) -> None:
    config, problems = parsed(retention=retention)
    assert (config.retention.weights, problems) == (weights, [])
    assert parsed(**config.to_mapping()) == (config, [])


def test_weights_over_a_hundred_give_way_to_the_presets() -> None:
    config, problems = parsed(retention={"weights": {"recency": 60, "role_user": 45}})
    assert config.retention == Retention()
    assert problems == [
        "context_config.retention.weights: recency, the highest role, failures, operations and length come to 135: at "
        "most 100; the preset's hold"
    ]


def test_no_preset_scores_above_a_hundred() -> None:
    assert {name: weights.most for name, weights in PRESETS.items() if weights.most > 100} == {}


def test_what_was_parsed_can_be_written_and_parsed_again() -> None:
    config, _ = parse_context_config(yaml.safe_load(DOCUMENT))
    written = yaml.safe_dump({"context_config": config.to_mapping()})
    assert parse_context_config(yaml.safe_load(written)) == (config, [])


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
fields = st.dictionaries(
    st.sampled_from(
        [
            "min_limit",
            "default_limit",
            "per_llm",
            "breaking_strategy",
            "retention",
            "retry_policies",
            "recovery_mode",
            "relevance",
            "x",
        ]
    ),
    json_like,
)


@given(fields | json_like)
def test_no_content_breaks_the_parser(content: Any) -> None:
    config, _ = parse_context_config(content)
    assert parse_context_config(config.to_mapping()) == (config, [])
    assert effective_limit(config, None, "", 1, None) >= config.min_limit
