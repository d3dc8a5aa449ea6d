import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dominds.llm.catalog.catalog import load_catalog
from dominds.llm.connect import connect
from dominds.llm.provider import AuthFailed, RequestRefused
from dominds.llm.providers.anthropic_messages import AnthropicMessages
from dominds.llm.providers.openai_chat import OpenAIChat
from dominds.llm.providers.openai_responses import OpenAIResponses
from dominds.llm.providers.scripted import Scripted
from tests.dominds.llm.asking import ask

CATALOG = load_catalog(Path("/nonexistent"))
KEYS = {
    "OPENAI_API_KEY": "k-openai",
    "ANTHROPIC_API_KEY": "k-anthropic",
    "ZAI_API_KEY": "k-zai",
    "GEMINI_API_KEY": " k-g\n",
}


@pytest.mark.parametrize(
    ("provider_id", "model_id", "kind"),
    [
        ("openai", "gpt-5.5", OpenAIResponses),
        ("google", "gemini-2.5-pro", OpenAIChat),
        ("lmstudio", "qwen3-14b", OpenAIChat),
        ("anthropic", "claude-sonnet-4-5", AnthropicMessages),
        ("z.ai", "glm-4.6", AnthropicMessages),
        ("demo", "echo", Scripted),
    ],
)
def test_each_api_type_has_its_wire_format(provider_id: str, model_id: str, kind: type) -> None:
    model = CATALOG.model(provider_id, model_id)
    provider = connect(model, environ=KEYS)
    assert type(provider) is kind
    assert connect(model, environ=KEYS) is provider
    assert "k-" not in repr(provider).replace("lmstudio", "")


def test_a_missing_key_is_named_by_its_variable() -> None:
    with pytest.raises(AuthFailed, match="OPENAI_API_KEY is not set"):
        connect(CATALOG.model("openai", "gpt-5.5"), environ={})


def test_a_key_that_cannot_be_sent_is_refused_without_showing_it() -> None:
    with pytest.raises(AuthFailed, match="OPENAI_API_KEY") as caught:
        connect(CATALOG.model("openai", "gpt-5.5"), environ={"OPENAI_API_KEY": "canaryü"})
    assert "canary" not in str(caught.value)


def test_an_unusable_model_says_why() -> None:
    with pytest.raises(RequestRefused, match="because"):
        connect(replace(CATALOG.model("openai", "gpt-5.5"), unusable="because"), environ=KEYS)


def test_the_demo_answers_without_any_key() -> None:
    assert ask(connect(CATALOG.model("demo", "echo"), environ={})).text == "You said: Hello"


def test_the_library_brings_no_web_framework() -> None:
    code = (
        "import sys, dominds.llm.connect, dominds.llm.providers.lmstudio, dominds.llm.retry\n"
        "print([name for name in ('django', 'celery', 'channels') if name in sys.modules])"
    )
    root = Path(__file__).parents[3]
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("api_type", "key_variable", "loaded"),
    [
        ("openai-compatible", "", "openai"),
        ("anthropic-compatible", "", "anthropic"),
        ("openai", "A_KEY_THAT_IS_NOT_SET", ""),
    ],
)
def test_sdks_are_loaded_before_they_are_needed(api_type: str, key_variable: str, loaded: str) -> None:
    """In a process of its own, where nothing else has loaded them."""
    program = (
        "import sys\n"
        "from dominds.llm.catalog.catalog import ModelInfo\n"
        "from dominds.llm.connect import load_sdks\n"
        f"model = ModelInfo('p', 'm', 'M', {api_type!r}, 'http://127.0.0.1:9/v1', {key_variable!r})\n"
        "assert not {'openai', 'anthropic'} & set(sys.modules)\n"
        "load_sdks([model])\n"
        "print(*({'openai', 'anthropic'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == loaded
