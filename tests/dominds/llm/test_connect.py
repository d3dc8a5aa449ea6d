import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dominds.llm.catalog.catalog import load_catalog
from dominds.llm.connect import connect
from dominds.llm.models.model import ModelInfo
from dominds.llm.provider import AuthFailed, RequestRefused
from dominds.llm.providers.anthropic_messages import AnthropicMessages
from dominds.llm.providers.kinds import kind_named
from dominds.llm.providers.openai_chat import OpenAIChat
from dominds.llm.providers.openai_responses import OpenAIResponses
from dominds.llm.providers.scripted import Scripted
from tests.dominds.llm.asking import ask

ROOT = Path(__file__).parents[3]
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
        ("google", "gemini-3.8-flash", OpenAIChat),
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
    assert not {key.strip() for key in KEYS.values()} & set(re.findall(r"[\\w-]+", repr(provider)))


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


def printed_by(program: str) -> str:
    """In a process of its own, where nothing else has loaded anything."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()


def test_the_library_brings_no_web_framework() -> None:
    program = (
        "import sys, dominds.llm.connect, dominds.llm.providers.lmstudio, dominds.llm.retry\n"
        "print(*({'django', 'celery', 'channels'} & set(sys.modules)))"
    )
    assert printed_by(program) == ""


def test_no_vendors_library_is_needed_for_a_call() -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from dominds.llm.catalog.catalog import load_catalog\n"
        "from dominds.llm.connect import connect\n"
        "for model in load_catalog(Path('/nonexistent')).models.values():\n"
        "    connect(model, environ={model.api_key_env: 'key'})\n"
        "print(*({'openai', 'anthropic', 'lmstudio'} & set(sys.modules)))\n"
    )
    assert printed_by(program) == ""


def test_an_api_type_that_nobody_knows_cannot_connect() -> None:
    model = ModelInfo("mine", "m", "M", kind_named("codex"))
    with pytest.raises(RequestRefused, match="apiType 'codex' of 'mine' is not known"):
        connect(model)
