"""Whole conversations by the shipped catalog, against doubles that refuse what the real servers refuse."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from dominds.llm.catalog.catalog import load_catalog
from dominds.llm.connect import connect, key_of
from dominds.llm.messages import Message, Request, Role, ToolCall
from dominds.llm.models.dialects import EFFORTS
from dominds.llm.models.model import LoadedLimit, ModelInfo, Thinking
from dominds.llm.models.params import faults_of_settings, tune
from dominds.llm.models.room import output_room
from dominds.llm.provider import (
    ContextOverflow,
    ForcingRefused,
    OutputBudgetTooLarge,
    RefusedForGood,
    StaleReasoning,
)
from dominds.llm.providers.anthropic_messages import ANTHROPIC_COMPATIBLE
from dominds.llm.providers.kinds import KINDS
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE
from dominds.llm.providers.vllm import VLLM
from dominds.llm.usage import Usage
from tests.dominds.llm.asking import ADD_REMINDER, CLEAR_MIND, Outcome, ask, info
from tests.doubles.brains import Call, Prompt, Reply
from tests.doubles.chat import ChatDouble
from tests.doubles.local_servers import LlamaCppDouble, LMStudioDouble, OllamaDouble, SGLangDouble, VLLMDouble
from tests.doubles.messages import MessagesDouble
from tests.doubles.responses import ResponsesDouble
from tests.doubles.serving import Double

pytestmark = pytest.mark.server

CATALOG = load_catalog(Path("/nonexistent"))
TOOLS = (CLEAR_MIND, ADD_REMINDER)
KEY = "k-stable-0123456789"


def brain(prompt: Prompt) -> Reply:
    """Thinks, looks twice by a tool, and answers; calls what it must."""
    if prompt.required_tools:
        return Reply(calls=(Call(prompt.required_tools[0], {"reminder_content": "Goal"}),))
    results = 0
    for message in reversed(prompt.messages):
        if message.role == "user":
            break
        results += message.role == "tool"
    if results < 2:
        return Reply("I look.", (Call("add_reminder", {"n": results}),), reasoning=f"Step {results}.")
    return Reply(f"Answer {len(prompt.messages)}.", reasoning="It is clear.")


@dataclass
class Talk:
    """A conversation as the runtime keeps it."""

    model: ModelInfo
    key: str = KEY
    epoch: int = 0
    messages: tuple[Message, ...] = ()
    outcomes: tuple[Outcome, ...] = ()

    def ask(self, **fields: Any) -> Outcome:
        request = Request(
            self.model.model_id,
            "Be brief.",
            self.messages,
            TOOLS,
            epoch=self.epoch,
            conversation="dialog-1",
            **{"max_output_tokens": output_room(self.model, 1000), **fields},
        )
        outcome = ask(connect(self.model, environ={self.model.api_key_env: self.key}), request)
        self.outcomes += (outcome,)
        finished = outcome.finished
        self.messages += (
            Message(Role.ASSISTANT, outcome.text, finished.tool_calls, provider_items=finished.provider_items),
            *(Message(Role.TOOL, "done", tool_call_id=call.id) for call in finished.tool_calls),
        )
        return outcome

    def say(self, text: str) -> None:
        """One message, and its round of calls up to an answer."""
        self.messages += (Message(Role.USER, text),)
        while self.ask().finished.tool_calls:
            pass

    def rewrite(self) -> None:
        """The first round's calls are summarised: what stood behind it was thought on something else."""
        _, second, *_ = [at for at, message in enumerate(self.messages) if message.role is Role.USER]
        summary = (Message(Role.USER, "What was said."), Message(Role.ASSISTANT, "A summary."))
        self.messages = (*summary, *self.messages[second:])
        self.epoch += 1


def shipped(name: str) -> ModelInfo:
    return CATALOG.model(*name.split("/"))


def at(model: ModelInfo, double: Double) -> ModelInfo:
    """The model as the double serves it, in the dialect of the double: some vendors speak two."""
    if isinstance(double, ChatDouble) and model.kind == ANTHROPIC_COMPATIBLE:
        model = replace(model, kind=OPENAI_COMPATIBLE)
    has_version = model.kind.name.startswith("anthropic")
    return replace(model, model_id=double.model, base_url=double.url if has_version else f"{double.url}/v1")


def messages(family: str, **fields: Any) -> Callable[[str], Double]:
    return lambda model: MessagesDouble(family, brain, model=model, **fields)


def chat(family: str, **fields: Any) -> Callable[[str], Double]:
    return lambda model: ChatDouble(family, brain, model=model, **fields)


CLOUDS: list[tuple[str, Callable[[str], Double]]] = [
    ("anthropic/claude-fable-5-2", messages("anthropic-5.5")),
    ("anthropic/claude-opus-5-5", messages("anthropic-5.5", binding="record")),
    ("anthropic/claude-sonnet-5-5", messages("anthropic-5.5-sonnet")),
    ("anthropic/claude-haiku-5-5", messages("anthropic-5.5-haiku")),
    ("anthropic/claude-opus-5", messages("anthropic-5")),
    ("anthropic/claude-haiku-4-5", messages("anthropic-4")),
    ("openai/gpt-5.6-terra", lambda model: ResponsesDouble("openai-5.6", brain, model=model)),
    ("openai/gpt-6.1-sol", lambda model: ResponsesDouble("openai-6.1", brain, model=model)),
    ("google/gemini-4-argon", chat("gemini")),
    ("moonshot/kimi-k3", chat("kimi")),
    ("deepseek/deepseek-flash", chat("deepseek")),
    ("deepseek/deepseek-v4-pro", messages("deepseek")),
    ("z.ai/glm-5.3", chat("glm")),
    ("bigmodel/glm-5.3", messages("glm")),
    ("alibaba/qwen3.8-max", chat("qwen")),
    ("minimax.io/MiniMax-M3", chat("minimax")),
    ("minimax.io/MiniMax-M3", chat("minimax", reasoning="reasoning_details")),
]
LOCAL: list[tuple[str, Callable[[str], Double]]] = [
    ("lmstudio/qwen3-14b", lambda model: LMStudioDouble(brain, model=model, window=32_768)),
    ("lmstudio/qwen3-14b", lambda model: LMStudioDouble(brain, model=model, window=32_768, reasoning="think")),
    ("llamacpp/default", lambda model: LlamaCppDouble(brain, model=model)),
    ("ollama/qwen3", lambda model: OllamaDouble(brain, model=model, window=32_768)),
    ("ollama/qwen3", lambda model: OllamaDouble(brain, model=model, window=32_768, reasoning="think")),
]
ALL = [*CLOUDS, *LOCAL]
NAMES = [name for name, _ in ALL]


@pytest.mark.parametrize(("name", "start"), ALL, ids=NAMES)
def test_usual_rounds_of_calls_are_never_refused(name: str, start: Callable[[str], Double]) -> None:
    model = shipped(name)
    with start(model.model_id) as double:
        talk = Talk(at(model, double))
        talk.say("First.")
        talk.say("Second.")
        talk.rewrite()
        talk.say("Third.")
        talk.rewrite()
        talk.messages += (Message(Role.USER, "Call clear_mind."),)
        forced = talk.ask(force="clear_mind")
        assert double.refusals == []
    assert all(isinstance(outcome.finished.usage, Usage) for outcome in talk.outcomes)
    if model.forcing != "none" and not name.startswith("ollama"):
        assert [call.name for call in forced.finished.tool_calls][-1:] == ["clear_mind"]
    texts = "".join(outcome.text for outcome in talk.outcomes)
    assert "Step" not in texts and "think" not in texts
    shows_thinking = not name.startswith(("openai/", "google/"))  # these show none, or a summary at most
    if shows_thinking and model.thinking not in (Thinking.ADAPTIVE, Thinking.BUDGET):
        assert talk.outcomes[0].reasoning.strip() == "Step 0."


THINKING_PARAMS = [
    ("anthropic/claude-opus-5", "anthropic-5", {"type": "adaptive"}),
    ("anthropic/claude-sonnet-5-5", "anthropic-5.5-sonnet", {"type": "between_tools"}),
    ("anthropic/claude-haiku-4-5", "anthropic-4", {"type": "enabled", "budget_tokens": 2048}),
]


@pytest.mark.parametrize(("name", "family", "thinking"), THINKING_PARAMS, ids=[row[0] for row in THINKING_PARAMS])
def test_thinking_that_an_operator_asked_for_is_never_refused(name: str, family: str, thinking: dict[str, Any]) -> None:
    """Also in the middle of a round whose beginning another model wrote, and where a tool is forced."""
    with MessagesDouble(family, brain, model=name.split("/")[1]) as double:
        talk = Talk(replace(at(shipped(name), double), model_params={"thinking": thinking}))
        talk.say("First.")
        talk.messages += (
            Message(Role.USER, "Second."),
            Message(Role.ASSISTANT, "", (ToolCall("x", "add_reminder", "{}"),)),
            Message(Role.TOOL, "done", tool_call_id="x"),
        )
        talk.ask()
        talk.rewrite()
        talk.messages += (Message(Role.USER, "Call clear_mind."),)
        talk.ask(force="clear_mind")
        assert double.refusals == []
    assert talk.outcomes[0].reasoning == "Step 0."


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize(("name", "start"), ALL, ids=NAMES)
def test_an_effort_that_passed_the_check_is_never_refused(
    name: str, start: Callable[[str], Double], effort: str
) -> None:
    """Nor is a short answer, for which a budget of thinking has no room, or a tool that is forced."""
    model, settings = shipped(name), {"general": {"effort": effort}}
    if faults_of_settings(model, settings, {}):
        assert effort in ("none", "minimal")
        return
    with start(model.model_id) as double:
        talk = Talk(tune(at(model, double), settings))
        talk.say("First.")
        talk.messages += (Message(Role.USER, "Call clear_mind."),)
        talk.ask(force="clear_mind", max_output_tokens=1_200)
        assert double.refusals == []


def test_what_is_turned_off_stays_off_beside_a_great_effort() -> None:
    """An agent's effort over what llm.yaml says of its model: it was saved while that said something else."""
    with MessagesDouble("anthropic-5.5-haiku", brain, model="claude-haiku-5-5") as double:
        model = at(shipped("anthropic/claude-haiku-5-5"), double)
        model = replace(model, model_params={"thinking": {"type": "disabled"}})
        talk = Talk(tune(model, {"general": {"effort": "max"}}))
        talk.say("First.")
        assert double.refusals == []
    assert talk.outcomes[0].reasoning == ""


def test_a_dialog_that_is_only_appended_to_keeps_its_thinking_whole() -> None:
    with MessagesDouble("anthropic-5.5", brain) as double:
        talk = Talk(at(shipped("anthropic/claude-opus-5-5"), double))
        for number in range(3):
            talk.say(f"Message {number}.")
        last = double.bodies[-1]
        kept = [block for message in last["messages"] for block in message["content"] if block["type"] == "thinking"]
        assert double.refusals == []
    assert len(kept) == len(talk.outcomes) - 1


@pytest.mark.parametrize("name", ["anthropic/claude-opus-5-5", "google/gemini-4-argon"])
def test_another_key_sends_none_of_what_the_first_one_thought(name: str) -> None:
    start = dict(CLOUDS)[name]
    with start(shipped(name).model_id) as double:
        talk = Talk(at(shipped(name), double))
        talk.say("First.")
        talk.key = "k-another-0123456789"
        talk.say("Second.")
        assert double.refusals == []


def test_reasoning_of_an_epoch_that_is_gone_is_refused_as_stale() -> None:
    """What happens to a runtime that forgets to count its rewrites."""
    with MessagesDouble("anthropic-5.5", brain) as double:
        talk = Talk(at(shipped("anthropic/claude-opus-5-5"), double))
        talk.say("First.")
        talk.say("Second.")
        talk.rewrite()
        talk.epoch = 0
        with pytest.raises(StaleReasoning):
            talk.say("Third.")
        talk.epoch = 2
        talk.ask()
        assert [refusal.status for refusal in double.refusals] == [400]


def test_thinking_that_the_server_dropped_is_logged_without_its_text() -> None:
    with MessagesDouble("anthropic-5.5", brain, binding="drop") as double:
        talk = Talk(at(shipped("anthropic/claude-opus-5-5"), double), epoch=1)
        with capture_logs() as logged:
            talk.say("First.")
            talk.say("Second.")
            talk.messages = (Message(Role.USER, "Another beginning."), *talk.messages[1:])
            known = len(logged)
            talk.say("Third.")
    lines = [line for line in logged if line["event"] == "input_transformed"]
    assert all(line in logged[known:] for line in lines), "nothing was dropped before"
    thoughts = len(talk.outcomes) // 3 * 2  # of the first two messages; what came after the change is not dropped
    assert [(line["blocks"], line["first"]) for line in lines] == [(thoughts, "messages.1.content.0")] * 3
    assert [line["kinds"] for line in lines] == [{"thinking_dropped: prefix_binding_mismatch": thoughts}] * 3
    assert "Step" not in str(lines) and "clear" not in str(lines)


def beginning(body: dict[str, Any]) -> list[Any]:
    """What a provider reads in its order, without marks of the cache."""
    text = body.get("messages") or body["input"]
    parts = [body.get("system"), body.get("instructions"), body.get("tools"), *_flat(text)]
    return [_unmarked(part) for part in parts]


def _flat(texts: list[dict[str, Any]]) -> list[Any]:
    """Messages whose content is a list grow at their end."""
    flat: list[Any] = []
    for message in texts:
        content = message.get("content")
        flat += [(message["role"], block) for block in content] if isinstance(content, list) else [message]
    return flat


def _unmarked(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _unmarked(value) for key, value in part.items() if key != "cache_control"}
    return [_unmarked(each) for each in part] if isinstance(part, list | tuple) else part


@pytest.mark.parametrize(("name", "start"), ALL, ids=NAMES)
def test_each_request_of_an_epoch_begins_with_the_one_before(name: str, start: Callable[[str], Double]) -> None:
    model = shipped(name)
    with start(model.model_id) as double:
        talk = Talk(at(model, double))
        for number in range(3):
            talk.say(f"Message {number}.")
        began = [beginning(body) for body in double.bodies]
    assert len(began) == 9
    for before, after in pairwise(began):
        assert after[: len(before)] == before and len(after) > len(before)


FORCED: list[tuple[str, Callable[[str], Double]]] = [
    ("anthropic/claude-fable-5-2", messages("anthropic-5.5")),
    ("moonshot/kimi-k3", chat("kimi")),
    ("z.ai/glm-5.3", chat("glm")),
    ("bigmodel/glm-5.3", messages("glm")),
    ("alibaba/qwen3.8-max", chat("qwen")),
    ("deepseek/deepseek-flash", chat("deepseek")),
    ("deepseek/deepseek-v4-pro", messages("deepseek")),
]


@pytest.mark.parametrize(("name", "start"), FORCED, ids=[name for name, _ in FORCED])
def test_refusals_to_be_forced_are_recognised(name: str, start: Callable[[str], Double]) -> None:
    model = replace(shipped(name), supports_tool_choice=True, forced_tool="named", thinking_off={})
    with start(model.model_id) as double:
        talk = Talk(at(model, double), messages=(Message(Role.USER, "Call clear_mind."),))
        with pytest.raises(ForcingRefused):
            talk.ask(force="clear_mind")
        talk.ask()
        assert len(double.refusals) == 1


LONG = Message(Role.USER, "word " * 40_000)  # 50,000 tokens as the doubles count
LONG_REQUEST = Request("m", "", (LONG,))
WINDOWS: list[Callable[[str], Double]] = [
    *(
        lambda model, words=words: LMStudioDouble(brain, model=model, overflow=words)
        for words in ("n_keep", "truncate", "keep_first")
    ),
    *(
        lambda model, status=status: LlamaCppDouble(brain, model=model, overflow_status=status)
        for status in (400, 500, 200)
    ),
    lambda model: OllamaDouble(brain, model=model, is_cloud=True),
    lambda model: VLLMDouble(brain, model=model),
    lambda model: SGLangDouble(brain, model=model),
    *(chat(family, window=32_768) for family in ("kimi", "qwen", "gemini", "glm", "minimax")),
    chat("deepseek", window=32_768),
    chat("openai", window=32_768, maximum=8_192),
]


@pytest.mark.parametrize("start", WINDOWS)
def test_every_vendors_words_for_an_overflow_are_recognised(start: Callable[[str], Double]) -> None:
    with start("m") as double:
        model = at(info(VLLM, max_tokens_field="max_completion_tokens"), double)
        with pytest.raises(ContextOverflow) as caught:
            ask(connect(replace(model, base_url=f"{double.url}/v1", api_key_env="K"), environ={"K": KEY}), LONG_REQUEST)
    assert not isinstance(caught.value, OutputBudgetTooLarge)


@pytest.mark.parametrize("start", [lambda: VLLMDouble(brain), lambda: SGLangDouble(brain)])
def test_a_refused_budget_names_its_numbers_and_less_passes(start: Callable[[], Double]) -> None:
    with start() as double:
        model = at(info(VLLM), double)
        request = Request(double.model, "", (Message(Role.USER, "word " * 20_000),), max_output_tokens=16_000)
        with pytest.raises(OutputBudgetTooLarge) as caught:
            ask(connect(model), request)
        room = caught.value.room
        assert room is not None and 7_000 < room < 8_000
        ask(connect(model), replace(request, max_output_tokens=room))


def test_an_overflow_inside_a_stream_of_the_responses_api_is_one() -> None:
    with ResponsesDouble("openai-5.6", brain, window=40_000, maximum=8_000) as double, pytest.raises(ContextOverflow):
        Talk(at(shipped("openai/gpt-5.6-terra"), double), messages=(LONG,)).ask(max_output_tokens=16)


def test_an_unknown_model_is_refused_for_good() -> None:
    with ResponsesDouble("openai-5.6", brain) as double:
        model = replace(at(shipped("openai/gpt-5.6-terra"), double), model_id="gone")
        with pytest.raises(RefusedForGood):
            Talk(model, messages=(Message(Role.USER, "Hello"),)).ask()


@pytest.mark.parametrize(
    ("kind", "double", "source"),
    [
        ("lmstudio", LMStudioDouble, "loaded_context_length"),
        ("llamacpp", LlamaCppDouble, "n_ctx"),
        ("ollama", OllamaDouble, "context_length, /api/ps"),
        ("vllm", VLLMDouble, "max_model_len"),
        ("vllm", SGLangDouble, "max_model_len"),
    ],
)
def test_each_local_server_says_its_window(kind: str, double: Callable[..., Double], source: str) -> None:
    with double(brain, window=12_345) as running:
        model = at(info(KINDS[kind]), running)
        assert model.kind.loaded_window is not None
        result = model.kind.loaded_window(model.base_url, model.model_id, key_of(model))
    assert result == LoadedLimit(12_345, source)


def test_what_a_cache_read_and_wrote_is_reported() -> None:
    with MessagesDouble("anthropic-5.5", brain, weight=100) as double:
        talk = Talk(at(shipped("anthropic/claude-opus-5-5"), double))
        talk.say("First.")
        reports = [outcome.finished.usage for outcome in talk.outcomes]
    assert all(isinstance(report, Usage) for report in reports)
    first, *_, last = reports
    assert isinstance(first, Usage) and isinstance(last, Usage)
    assert first.cache_write_tokens and last.cache_read_tokens
    assert last.cache_read_tokens < last.prompt_tokens
