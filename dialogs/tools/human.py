"""Asking the person: the run waits for the answer."""

from dialogs.actions import questions
from dialogs.actions.questions import ASK_HUMAN
from dialogs.context.tool_calls import Result
from dialogs.store.change import Change
from dialogs.tools.tool import Invocation, Tool, parameters
from dominds.llm.messages import ToolSpec


def ask_human(change: Change, call: Invocation) -> Result:
    questions.ask(change, str(call.arguments["question"]), call.call_id)
    return Result("", pending=True)


TOOLS = (
    Tool(
        ToolSpec(
            ASK_HUMAN,
            "Ask a person something that only they can decide or know. The answer comes back as this call's result.",
            parameters(["question"], question={"type": "string", "minLength": 1}),
        ),
        inside=ask_human,
        always=True,
    ),
)
