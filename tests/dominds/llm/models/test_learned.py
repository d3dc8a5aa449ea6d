"""What a model refuses teaches its traits, which hold from the next request on."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dominds.llm.messages import Message, Request, Role, ToolCall, ToolSpec
from dominds.llm.models import learned
from dominds.llm.models.model import Echo, ModelInfo
from dominds.llm.provider import (
    ContextOverflow,
    ForcingRefused,
    ImagesRefused,
    OutputAboveMaximum,
    Overloaded,
    ProviderError,
    RequestRefused,
    StaleReasoning,
)
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE
from tests.dominds.llm.asking import ask, info
from tests.doubles.brains import Call, Prompt, Reply
from tests.doubles.chat import ChatDouble
from tests.doubles.chat_families import CLOUDS
from tests.doubles.local_servers import LlamaCppDouble, LMStudioDouble


@pytest.fixture(autouse=True)
def _nothing_is_learned() -> Iterator[None]:
    learned.forget()
    yield
    learned.forget()


TOO_LONG = (
    "Invalid '{}': string too long. Expected a string with maximum length 1024, but got a string with length 2121 "
    "instead."
)


@pytest.mark.parametrize(
    ("error", "trait", "value"),
    [
        (
            StaleReasoning("The reasoning_content in the thinking mode must be passed back to the API."),
            "echo",
            Echo.CALLS,
        ),
        (StaleReasoning("thinking is enabled but reasoning_content is missing in assistant"), "echo", Echo.CALLS),
        (
            StaleReasoning("Function call is missing a thought_signature in functionCall parts."),
            "echo",
            Echo.SIGNATURES,
        ),
        (StaleReasoning("The block is bound to a different conversation. Remove the block"), "is_bound", True),
        (Overloaded("Conversation roles must alternate user/assistant/user/assistant/..."), "alternates", True),
        (
            RequestRefused("Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."),
            "nine_ids",
            True,
        ),
        (OutputAboveMaximum("max_tokens is too large", most=8_192), "output_length", 8_192),
        (ContextOverflow("prompt is too long", window=4_096, prompt_tokens=4_200), "context_length", 4_096),
        (ImagesRefused("this model does not support image input"), "modalities", ("text",)),
        (RequestRefused(TOO_LONG.format("tools[13].function.description")), "description_chars", 1_024),
        (RequestRefused(TOO_LONG.format("tools[0].description")), "description_chars", 1_024),
        (
            RequestRefused("tools.0.custom.description: String should have at most 2048 characters"),
            "description_chars",
            2_048,
        ),
        (
            RequestRefused(
                "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with "
                "length 150 instead."
            ),
            "most_tools",
            128,
        ),
    ],
)
def test_a_refusal_teaches_a_trait_once(error: ProviderError, trait: str, value: Any) -> None:
    model = replace(info(OPENAI_COMPATIBLE), modalities=("text", "image"), states_modalities=False)
    assert learned.learn(model, error)
    assert getattr(learned.with_learned(model), trait) == value
    assert not learned.learn(model, error)
    assert learned.with_learned(ModelInfo("other", "a-model", "M", OPENAI_COMPATIBLE)) == ModelInfo(
        "other", "a-model", "M", OPENAI_COMPATIBLE
    )


@pytest.mark.parametrize(
    "words",
    ["Unsupported parameter.", TOO_LONG.format("tools[1].function.name"), TOO_LONG.format("messages[2].content")],
)
def test_another_refusal_teaches_nothing(words: str) -> None:
    assert not learned.learn(info(OPENAI_COMPATIBLE), RequestRefused(words))


@pytest.mark.server
def test_a_description_is_whole_until_it_is_refused() -> None:
    """OpenAI takes long ones since May 2025; Azure told of 1,024 characters for longer."""
    for most, refusals in ((0, 0), (1_024, 1)):
        with ChatDouble(replace(CLOUDS["deepseek"], description_chars=most), brain) as double:
            model = ModelInfo(
                f"mine-{most}", double.model, "M", OPENAI_COMPATIBLE, f"{double.url}/v1", api_key="k-0123"
            )
            request = Request(double.model, "", (Message(Role.USER, "Hello"),), (LONG,))
            if refusals:
                with pytest.raises(RequestRefused) as refused:
                    ask(model.kind.connect(model, model.api_key), request)
                assert learned.learn(model, refused.value)
            known = learned.with_learned(model)
            ask(known.kind.connect(known, known.api_key), request)
            (tool,) = double.requests[-1].body["tools"]
            assert len(tool["function"]["description"]) == (most or len(LONG.description))


def brain(prompt: Prompt) -> Reply:
    if prompt.messages[-1].role == "tool":
        return Reply("It rains.", reasoning="Clear.")
    return Reply("", (Call("look", {}),), reasoning="Let me look.")


LONG = ToolSpec("look", "Look outside. " * 200, {"type": "object", "properties": {}})
LOOK = ToolSpec("look", "Look outside.", {"type": "object", "properties": {}})
WAIT = ToolSpec("wait", "Wait.", {"type": "object", "properties": {}})


@pytest.mark.server
def test_a_thinking_model_under_an_own_id_is_refused_once() -> None:
    with ChatDouble("deepseek", brain) as double:
        model = ModelInfo("mine", double.model, "M", OPENAI_COMPATIBLE, f"{double.url}/v1", api_key="k-0123456789")
        messages: tuple[Message, ...] = (Message(Role.USER, "How is the weather?"),)
        refusals = 0
        for _ in range(3):
            while True:
                known = learned.with_learned(model)
                try:
                    outcome = ask(
                        known.kind.connect(known, known.api_key), Request(double.model, "", messages, (LOOK,))
                    )
                except StaleReasoning as error:
                    refusals += 1
                    assert learned.learn(model, error)
                    continue
                break
            finished = outcome.finished
            said = Message(Role.ASSISTANT, outcome.text, finished.tool_calls, provider_items=finished.provider_items)
            results = (Message(Role.TOOL, "Rain.", tool_call_id=call.id) for call in finished.tool_calls)
            messages = (*messages, said, *(results if finished.tool_calls else (Message(Role.USER, "And now?"),)))
        assert refusals == 1


@pytest.mark.server
def test_a_server_that_is_told_by_a_word_alone_gets_it() -> None:
    with LMStudioDouble(brain) as double:
        model = ModelInfo("mine", double.model, "M", OPENAI_COMPATIBLE, f"{double.url}/v1")
        request = Request(double.model, "", (Message(Role.USER, "And?"),), (LOOK, WAIT), force="look")
        with pytest.raises(ForcingRefused) as refused:
            ask(model.kind.connect(model, ""), request)
        assert learned.learn(model, refused.value)
        assert ask(model.kind.connect(learned.with_learned(model), ""), request).finished.tool_calls
        assert double.bodies[-1]["tool_choice"] == "required"


@pytest.mark.server
def test_a_template_that_wants_turns_gets_them() -> None:
    with LlamaCppDouble(alternates=True) as double:
        model = ModelInfo("mine", double.model, "M", OPENAI_COMPATIBLE, f"{double.url}/v1")
        history = (
            Message(Role.ASSISTANT, "Welcome."),
            Message(Role.USER, "Hello"),
            Message(Role.USER, "Are you there?"),
            Message(Role.ASSISTANT, "", (ToolCall("call_1_1", "look", "{}"),)),
            Message(Role.TOOL, "Rain.", tool_call_id="call_1_1"),
            Message(Role.ASSISTANT, "It rains."),
            Message(Role.SYSTEM, "Be brief."),
            Message(Role.USER, "And now?"),
        )
        request = Request(double.model, "Be kind.", history, (LOOK,))
        with pytest.raises(ProviderError) as refused:
            ask(model.kind.connect(model, ""), request)
        assert learned.learn(model, refused.value)
        assert ask(model.kind.connect(learned.with_learned(model), ""), request).text


def test_what_was_learned_is_taken_over_as_json() -> None:
    model = replace(info(OPENAI_COMPATIBLE), modalities=("text", "image"), states_modalities=False)
    learned.learn(model, StaleReasoning("The reasoning_content in the thinking mode must be passed back."))
    learned.learn(model, ImagesRefused("At most 0 image(s) may be provided in one prompt."))
    learned.learn(model, OutputAboveMaximum("too large", most=8_192))
    stored = json.loads(json.dumps(learned.traits_of(model)))
    learned.forget()
    learned.restore(model.provider_id, model.model_id, {**stored, "context_length": 9, "alternates": "yes"})
    known = learned.with_learned(model)
    assert (known.echo, known.output_length, known.alternates) == (Echo.CALLS, 8_192, False)
    assert known.modalities == ("text",)
