import os
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.catalog.catalog import (
    Catalog,
    ModelInfo,
    UnknownModel,
    current_catalog,
    lay_over,
    load_catalog,
    retirement_of,
)
from dominds.llm.catalog.fields import API_TYPES, entries_of
from dominds.llm.models.model import Echo, Forcing, Thinking
from dominds.llm.models.prices import Hours, Price
from dominds.llm.providers.lmstudio import LMSTUDIO
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE
from dominds.yaml_fields import Problem, Reading
from tests.dominds.llm.asking import info

NOWHERE = Path("/nonexistent")


def catalog_of(folder: Path, llm_yaml: str | bytes) -> Catalog:
    content = llm_yaml.encode() if isinstance(llm_yaml, str) else llm_yaml
    (folder / "llm.yaml").write_bytes(content)
    return load_catalog(folder)


def problems_of(folder: Path, llm_yaml: str | bytes) -> list[str]:
    file = str(folder / "llm.yaml")
    problems = [problem for problem in catalog_of(folder, llm_yaml).problems if problem.file == file]
    return [f"{problem.path}: {problem.reason}" for problem in problems]


# What is shipped


def test_the_shipped_metadata_have_no_problems() -> None:
    catalog = load_catalog(NOWHERE)
    assert catalog.problems == ()
    assert [model for model in catalog.models.values() if model.unusable] == []
    assert {"google", "lmstudio", "ollama", "llamacpp", "demo", "openai", "anthropic"} <= set(catalog.providers)


@pytest.mark.parametrize("model", load_catalog(NOWHERE).models.values(), ids=lambda m: f"{m.provider_id}/{m.model_id}")
def test_every_shipped_model_can_turn_yellow_and_red(model: ModelInfo) -> None:
    limit, _ = model.limit
    if limit is None or model.provider_id == "demo":
        return
    critical = model.critical_max_tokens or limit * 9 // 10
    assert (model.optimal_max_tokens or 100_000) < critical
    assert critical < (model.input_length or limit)


@pytest.mark.parametrize(
    ("provider_id", "model_id", "expected"),
    [
        ("openai", "gpt-5.6", (1_050_000, 600_000, 829_800)),  # 0.9 x 922,000
        ("openai", "gpt-6.2-astra", (1_050_000, 600_000, 829_800)),
        ("alibaba", "qwen3.8-max", (1_000_000, 300_000, 891_900)),
        ("kimi-code", "kimi-for-coding", (262_144, 180_000, 210_000)),
        ("aliyun-bailian", "qwen3-coder-next", (262_144, None, 184_320)),  # floor(0.9 x 204,800)
        ("aliyun-bailian", "glm-4.7", (202_752, None, 152_985)),  # floor(0.9 x 169,984)
        ("volcano-engine-coding-plan", "deepseek-v3.2", (128_000, 64_000, 86_400)),  # floor(0.9 x 96,000)
        ("anthropic", "claude-sonnet-4-5", (200_000, None, None)),
        ("anthropic", "claude-fable-5-2", (1_000_000, 300_000, None)),
    ],
)
def test_shipped_thresholds(provider_id: str, model_id: str, expected: tuple[int | None, ...]) -> None:
    model = load_catalog(NOWHERE).model(provider_id, model_id)
    assert (model.context_length, model.optimal_max_tokens, model.critical_max_tokens) == expected


def test_local_servers_need_no_key_and_state_no_limit() -> None:
    model = load_catalog(NOWHERE).model("lmstudio", "qwen3-14b")
    assert (model.kind, model.api_key_env, model.limit) == (LMSTUDIO, "", (None, ""))


@pytest.mark.parametrize(
    ("name", "forcing"),
    [
        ("anthropic/claude-fable-5-2", Forcing.NONE),
        ("anthropic/claude-opus-5", Forcing.NAMED),
        ("anthropic/claude-haiku-4-5", Forcing.NAMED),
        ("openai/gpt-6.2-astra", Forcing.ALLOWED),
        ("google/gemini-4-argon", Forcing.REQUIRED),
        ("z.ai/glm-5.3", Forcing.NONE),
        ("moonshot/kimi-k3", Forcing.REQUIRED),
        ("lmstudio/qwen3-14b", Forcing.REQUIRED),
        ("ollama/qwen3", Forcing.NONE),
    ],
)
def test_how_shipped_models_are_made_to_call_a_tool(name: str, forcing: Forcing) -> None:
    assert load_catalog(NOWHERE).model(*name.split("/")).forcing is forcing


def test_shipped_traits() -> None:
    catalog = load_catalog(NOWHERE)
    fable, kimi, gemini = (
        catalog.model(*name.split("/"))
        for name in ("anthropic/claude-fable-5-2", "moonshot/kimi-k3", "google/gemini-4-argon")
    )
    assert (fable.thinking, fable.is_bound, fable.echo) == (Thinking.ALWAYS, True, Echo.SENT)
    assert (kimi.echo, gemini.echo) == (Echo.CALLS, Echo.SIGNATURES)
    assert catalog.model("minimax.io", "MiniMax-M3").max_tokens_field == "max_completion_tokens"
    assert gemini.modalities == ("text", "image")


@pytest.mark.parametrize(
    ("today", "words"),
    [
        (date(2026, 10, 30), ""),
        (date(2026, 10, 31), "retires on 2026-11-30, in 30 days"),
        (date(2026, 11, 29), "retires on 2026-11-30, in 1 day."),
        (date(2026, 11, 30), "retired on 2026-11-30"),
        (date(2027, 1, 1), "retired on 2026-11-30"),
    ],
)
def test_a_model_that_ends_is_warned_of_30_days_before(today: date, words: str) -> None:
    model = load_catalog(NOWHERE).model("anthropic", "claude-sonnet-4-5")
    result = retirement_of(model, today)
    assert words in result if words else result == ""
    assert retirement_of(load_catalog(NOWHERE).model("anthropic", "claude-fable-5-2"), today) == ""


@pytest.mark.parametrize(
    ("context", "taken", "limit"),
    [(200, 150, 150), (200, 200, 200), (None, 150, 150), (200, None, 200), (None, None, None)],
)
def test_the_input_limit_is_what_binds(context: int | None, taken: int | None, limit: int | None) -> None:
    assert info(OPENAI_COMPATIBLE, context_length=context, input_length=taken).input_limit == limit


# Overrides


def test_an_override_of_one_field_keeps_the_rest(tmp_path: Path) -> None:
    catalog = catalog_of(
        tmp_path, "providers: {openai: {models: {gpt-5.5: {optimal_max_tokens: 50000}, mine: {name: Mine}}}}"
    )
    changed, shipped = catalog.model("openai", "gpt-5.5"), load_catalog(NOWHERE).model("openai", "gpt-5.5")
    assert changed.optimal_max_tokens == 50_000
    assert (changed.context_length, changed.base_url) == (shipped.context_length, shipped.base_url)
    assert catalog.model("openai", "gpt-5.4") == load_catalog(NOWHERE).model("openai", "gpt-5.4")
    assert catalog.model("openai", "mine").name == "Mine"
    assert catalog.problems == ()


def test_a_provider_of_ones_own(tmp_path: Path) -> None:
    catalog = catalog_of(
        tmp_path,
        """
        providers:
          mine:
            name: My server
            apiType: openai-compatible
            baseUrl: http://10.0.0.5:8000/v1
            apiKeyEnvVar: MY_KEY
            models:
              m:
                input_length: 32000
                caution_remediation_cadence_generations: 3
                supports_tool_choice: true
                tokenizer: llama3
        """,
    )
    assert catalog.problems == ()
    assert catalog.model("mine", "m") == ModelInfo(
        provider_id="mine",
        model_id="m",
        name="m",
        kind=OPENAI_COMPATIBLE,
        base_url="http://10.0.0.5:8000/v1",
        api_key_env="MY_KEY",
        input_length=32_000,
        cadence=3,
        supports_tool_choice=True,
        modalities=OPENAI_COMPATIBLE.modalities,
        states_modalities=False,
        tokenizer="llama3",
    )
    assert catalog.model("mine", "m").limit == (32_000, "input_length")


def test_an_existing_dominds_file_works_and_its_other_keys_are_reported(tmp_path: Path) -> None:
    text = """
    providers:
      codex:
        name: Codex
        apiType: codex
        baseUrl: https://chatgpt.com/backend-api/codex/
        apiKeyEnvVar: CODEX_HOME
        tech_spec_url: https://example.com
        model_param_options: {general: {max_tokens: {type: number}}}
        models: {gpt-5.2-codex: {name: G, context_length: 272000, context_window: 272K}}
    """
    catalog = catalog_of(tmp_path, text)
    model = catalog.model("codex", "gpt-5.2-codex")
    assert model.context_length == 272_000
    assert "apiType 'codex'" in model.unusable
    paths = [problem.path for problem in catalog.problems]
    assert paths == [
        "providers.codex.tech_spec_url",
        "providers.codex.model_param_options",
        "providers.codex.apiType",
        "providers.codex.models.gpt-5.2-codex.context_window",
    ]


def test_the_facts_of_a_model_are_read(tmp_path: Path) -> None:
    text = """
    providers:
      mine:
        apiType: openai-compatible
        baseUrl: http://10.0.0.5:8000/v1
        models:
          m:
            forced_tool: no
            thinking: default
            thinking_off: {enable_thinking: false}
            echo: calls
            max_tokens_field: max_completion_tokens
            modalities: [text, image]
            retires_on: 2026-12-01
            model_params: {reasoning: {effort: high}}
            prices: [{in: 2, out: 10.5, cached: 0.1, above: 200000, until: 2026-12-31}]
            supports_tool_choice: auto
    """
    catalog = catalog_of(tmp_path, text)
    assert catalog.problems == ()
    model = catalog.model("mine", "m")
    assert (model.forced_tool, model.forcing, model.supports_tool_choice) == ("no", Forcing.NONE, None)
    assert (model.thinking, model.thinking_off) == (Thinking.ON, {"enable_thinking": False})
    assert (model.echo, model.max_tokens_field) == (Echo.CALLS, "max_completion_tokens")
    assert (model.modalities, model.retires_on) == (("text", "image"), date(2026, 12, 1))
    assert model.model_params == {"reasoning": {"effort": "high"}}
    price = Price(Decimal(2), Decimal("10.5"), Decimal("0.1"), above=200_000, until=date(2026, 12, 31))
    assert model.prices == (price,)
    assert hash(model)


HALF_PAST_FOUR, HALF_PAST_MIDNIGHT = timedelta(hours=16, minutes=30), timedelta(minutes=30)


@pytest.mark.parametrize(
    ("written", "days"),
    [
        ("16:30-00:30", [range(7)]),
        ('"16:30-00:30"', [range(7)]),
        ("sun 16:30-00:30", [[6]]),
        ('"mon-fri 16:30-00:30,sat-mon 16:30-00:30"', [range(5), [5, 6, 0]]),
    ],
)
def test_hours_of_a_price(written: str, days: list[Any], tmp_path: Path) -> None:
    text = f"providers: {{openai: {{models: {{gpt-5.5: {{prices: [{{in: 5, out: 5, hours: {written}}}]}}}}}}}}"
    [price] = catalog_of(tmp_path, text).model("openai", "gpt-5.5").prices
    assert price.hours == tuple(Hours(HALF_PAST_FOUR, HALF_PAST_MIDNIGHT, frozenset(each)) for each in days)


@pytest.mark.parametrize("param", ["model", "messages", "tools", "max_tokens", "stream"])
def test_what_a_request_says_itself_is_no_param_of_a_model(param: str, tmp_path: Path) -> None:
    [problem] = problems_of(
        tmp_path, f"providers: {{openai: {{models: {{gpt-5.5: {{model_params: {{{param}: 1}}}}}}}}}}"
    )
    assert f"{param} is written by Dominds itself" in problem


# Faults


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[
            (name, value)
            for name in ("context_length", "critical_max_tokens")
            for value in ("0", "-5", "true", "1.5", "'9'", "[9]", "1e12")
        ],
        ("caution_remediation_cadence_generations", "0"),
        ("supports_tool_choice", "'yes'"),
        ("name", "5"),
        ("kind", "ollama"),
        ("forced_tool", "5"),
        ("thinking", "hard"),
        ("echo", "all"),
        ("max_tokens_field", "tokens"),
        ("modalities", "[smell]"),
        ("retires_on", "soon"),
        ("retires_on", "2026-11-30 10:00:00"),
        ("model_params", "[a]"),
        ("prices", "5"),
        ("prices", "[{in: 5}]"),
        ("prices", "[{in: 5, out: many}]"),
        ("prices", "[{in: 5, out: -1}]"),
        *[
            ("prices", f"[{{in: 5, out: 5, hours: {hours}}}]")
            for hours in ("5", "[]", "''", "'16:30'", "'24:00-01:00'", "'9:00-10:00'", "'noon-13:00'", "'mon 1-2'")
        ],
        ("prices", "[{in: 5, out: 5, hours: 'son 01:00-02:00'}]"),
        ("prices", "[{in: 5, out: 5, hours: '01:00-02:00, soon'}]"),
        ("tokenizer", "{}"),
    ],
)
def test_a_bad_field_is_reported_and_the_shipped_value_holds(field: str, value: str, tmp_path: Path) -> None:
    text = f"providers: {{openai: {{models: {{gpt-5.5: {{{field}: {value}, output_length: 77}}}}}}}}"
    [problem] = problems_of(tmp_path, text)
    assert problem.startswith(f"providers.openai.models.gpt-5.5.{field}: expected")
    model = catalog_of(tmp_path, text).model("openai", "gpt-5.5")
    assert (model.context_length, model.output_length) == (1_050_000, 77)


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("5", "the file", "expected a mapping"),
        ("providers: 5", "providers", "expected a mapping"),
        ("providers: {openai: 5}", "providers.openai", "expected a mapping"),
        ("providers: {openai: {models: [a]}}", "providers.openai.models", "expected a mapping"),
        ("providers: {openai: {models: {m: 5}}}", "providers.openai.models.m", "expected a mapping"),
        ("providers: {openai: {baseUrl: api.openai.com}}", "providers.openai.baseUrl", "http://"),
        ("providers: {openai: {baseUrl: 'http://x:99999'}}", "providers.openai.baseUrl", "http://"),
        ("providers: {openai: {apiType: 5}}", "providers.openai.apiType", "expected text"),
        ("team: {}", "team", "means nothing here"),
        ("providers: {[a]: {}}", "", "not YAML"),
        ("providers: {openai: {name: A, name: B}}", "providers.openai.name", "occurs twice"),
        ("providers: {true: {}}", "providers", "expected text as key"),
        ("providers: {", "", "not YAML in line"),
        ("!!python/name:os.system", "", "not YAML"),
        ("[" * 50 + "]" * 50, "", "nests deeper"),
        ("a: &a [x]\nb: [" + "*a, " * 51 + "]", "", "more than 50 aliases"),
        ("a" * 300_000, "", "larger than 256 KB"),
        (b"\xc3\x28bad", "", "not YAML"),
        ("a: &a [*a]", "", "expands to more"),
        ("\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 25))]), "", "expands to"),
        ("a: 2026-99-99", "", "not YAML"),
    ],
)
def test_faults_are_named_by_file_path_and_reason(text: str | bytes, path: str, words: str, tmp_path: Path) -> None:
    problems = problems_of(tmp_path, text)
    assert any(problem.startswith(f"{path}: ") and words in problem for problem in problems), problems
    assert catalog_of(tmp_path, text).model("openai", "gpt-5.4").unusable == "", "everything else still works"


def test_a_key_in_place_of_its_variables_name_is_not_repeated(tmp_path: Path) -> None:
    [problem] = problems_of(tmp_path, "providers: {openai: {apiKeyEnvVar: sk-canary-123}}")
    assert "canary" not in problem


def test_a_problem_reads_as_one_line() -> None:
    assert str(Problem("llm.yaml", "a.b", "bad")) == "llm.yaml: a.b: bad"
    assert str(Problem("llm.yaml", "", "bad")) == "llm.yaml: bad"


documents: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["providers", "models", "apiType", "baseUrl", "name", "context_length", "x", 5, None]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(documents)
def test_no_document_stops_the_others(document: Any) -> None:
    beside, alone = Reading("llm.yaml"), Reading("llm.yaml")
    beside.document = {"providers": {"a": document, "b": {"apiType": "openai", "baseUrl": "https://x/v1"}}}
    alone.document = document
    assert entries_of(beside).providers["b"]["apiType"] == "openai"
    assert entries_of(alone).problems or isinstance(document, dict | None)


def test_merging_changes_neither_side() -> None:
    below: dict[str, Any] = {"p": {"name": "P", "models": {"m": {"name": "M", "context_length": 5}}}}
    above: dict[str, Any] = {"p": {"models": {"m": {"name": "N"}, "n": {}}}, "q": {"models": {}}}
    assert lay_over(below, above)["p"] == {"name": "P", "models": {"m": {"name": "N", "context_length": 5}, "n": {}}}
    assert below == {"p": {"name": "P", "models": {"m": {"name": "M", "context_length": 5}}}}


# Look-ups


@pytest.mark.parametrize(
    ("provider_id", "model_id", "words"),
    [
        ("openai", "gpt-5.55", "no model of 'openai' named 'gpt-5.55'. Near it: gpt-5.5"),
        ("opnai", "gpt-5.5", "no provider named 'opnai'. Near it: openai"),
        ("openai", "zzz", "named 'zzz'. Choose a known one"),
    ],
)
def test_an_unknown_model_names_what_comes_near(provider_id: str, model_id: str, words: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        load_catalog(NOWHERE).model(provider_id, model_id)
    assert words in str(caught.value)


# Scripts


SCRIPTED = "providers: {mine: {apiType: scripted, models: {m: {script: '%s', kind: lmstudio, context_length: 9}}}}"


def test_a_script_beside_the_file_is_found_by_either_name(tmp_path: Path) -> None:
    (tmp_path / "story.yaml").write_text("steps: [{text: x}]")
    for name in ("story.yaml", "story"):
        model = catalog_of(tmp_path, SCRIPTED % name).model("mine", "m")
        assert (model.unusable, model.script) == ("", str((tmp_path / "story.yaml").resolve()))
        assert (model.kind.is_server, model.kind.needs_limit, model.kind.family) == (False, True, "lmstudio")


@pytest.mark.parametrize("name", ["../outside.yaml", "/etc/hostname", "link.yaml", "gone", "a\\0b"])
def test_a_script_outside_the_folder_is_not_played(name: str, tmp_path: Path) -> None:
    home = tmp_path / "minds"
    home.mkdir()
    (tmp_path / "outside.yaml").write_text("steps: [{text: x}]")
    (home / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    model = catalog_of(home, SCRIPTED % name).model("mine", "m")
    assert model.script == ""
    assert "neither a file below" in model.unusable


def test_a_broken_script_makes_its_model_unusable(tmp_path: Path) -> None:
    (tmp_path / "story.yaml").write_text("steps: [{txt: x}]")
    assert "steps[0].txt: unknown key" in catalog_of(tmp_path, SCRIPTED % "story").model("mine", "m").unusable


# The current one


def test_the_current_catalog_follows_the_files(tmp_path: Path) -> None:
    assert current_catalog(tmp_path) is current_catalog(tmp_path)
    (tmp_path / "llm.yaml").write_text(SCRIPTED % "story")
    assert "neither" in current_catalog(tmp_path).model("mine", "m").unusable
    assert current_catalog(tmp_path) is current_catalog(tmp_path)
    (tmp_path / "story.yaml").write_text("steps: [{txt: x}]")
    os.utime(tmp_path, ns=(1, 1))  # coarse clocks
    assert "unknown key" in current_catalog(tmp_path).model("mine", "m").unusable
    (tmp_path / "story.yaml").write_text("steps: [{text: longer}]")
    assert current_catalog(tmp_path).model("mine", "m").unusable == ""
    (tmp_path / "llm.yaml").unlink()
    assert "mine" not in current_catalog(tmp_path).providers


def test_all_api_types_are_known() -> None:
    assert {provider.kind.name for provider in load_catalog(NOWHERE).providers.values()} <= set(API_TYPES)
