"""smolagents' agent that calls tools: it tells calls and results back as text, and ends each task by a call."""

import contextlib
import io
import sys

from common import place, report, run
from smolagents import OpenAIServerModel, ToolCallingAgent, tool


@tool
def run_command(command: str) -> str:
    """Run a command of the shell and return what it printed.

    Args:
        command: The command.
    """
    return run(command)


run_command.name = "run"
model = OpenAIServerModel(place["MODEL"], api_base=f"{place['BASE_URL']}/v1", api_key=place["KEY"])
agent = ToolCallingAgent(tools=[run_command], model=model, max_steps=4)
with contextlib.redirect_stdout(io.StringIO()):
    answers = [str(agent.run(text, reset=False)) for text in sys.argv[1:]]
report(answers)
