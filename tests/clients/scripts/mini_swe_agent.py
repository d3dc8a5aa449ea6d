"""mini-swe-agent with its tool: each text is a task, to which an answer without a call is none. Such an answer is left
out, and asked for again once; then its user adds the next task, as by its program for terminals."""

import sys
from pathlib import Path
from typing import Any

from common import place, report
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel


class Agent(DefaultAgent):
    """An agent whose next task follows what was said before."""

    said: list[dict[str, Any]] = []

    def add_messages(self, *messages: dict[str, Any]) -> list[dict[str, Any]]:
        if self.said and messages[0]["role"] == "system":
            task = f"The user added a new task: {self.extra_template_vars['task']}"
            messages = (*self.said, {"role": "user", "content": task})
        return super().add_messages(*messages)

    def run(self, task: str = "", **kwargs: Any) -> dict[str, Any]:
        self.said = [one for one in self.messages if one["role"] != "exit"]
        self.n_consecutive_format_errors = 0
        return super().run(task, **kwargs)


provider, path = ("anthropic", "") if place["WIRE"] == "messages" else ("openai", "/v1")
options = {"api_base": f"{place['BASE_URL']}{path}", "api_key": place["KEY"]}
agent = Agent(
    LitellmModel(model_name=f"{provider}/{place['MODEL']}", model_kwargs=options, cost_tracking="ignore_errors"),
    LocalEnvironment(cwd=str(Path.cwd())),
    system_template="You are a helpful assistant.",
    instance_template="Please solve this: {{task}}",
    max_consecutive_format_errors=2,
)
report([agent.run(text)["exit_status"] for text in sys.argv[1:]])
