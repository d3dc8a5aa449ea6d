"""LangChain's standard tests of chat models, for ``ChatOpenAI`` at the place that the environment names."""

import os

from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests


class TestChat(ChatModelIntegrationTests):
    chat_model_class = ChatOpenAI
    chat_model_params = {
        "base_url": f"{os.environ['BASE_URL']}/v1",
        "api_key": os.environ["KEY"],
        "model": os.environ["MODEL"],
        "max_retries": 0,
        "stream_usage": True,
    }
    supports_json_mode = True
    has_tool_choice = True
    model_override_value = os.environ["MODEL"]
