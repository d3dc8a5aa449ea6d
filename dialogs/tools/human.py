"""Asking the person: the run waits for the answer."""

from dialogs.actions import rounds
from dialogs.context.tool_calls import Result
from dialogs.models import Question
from dialogs.store.change import Change
from dialogs.tools.tool import Invocation, Tool, parameters
from dominds.llm.messages import ToolSpec

ASK_HUMAN = "ask_human"


def ask_human(change: Change, call: Invocation) -> Result:
    question = Question.objects.create(
        dialog=change.dialog,
        kind=Question.Kind.QUESTION,
        text=str(call.arguments["question"]),
        tool_call_id=call.call_id,
    )
    rounds.announce(change, question)
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
