"""The tool by which an agent asks a person. The run waits for the answer."""

from dialogs.actions import questions
from dialogs.actions.questions import ASK_HUMAN, LONGEST_CHOICE, MOST_CHOICES
from dialogs.context.tool_calls import Awaited, Result
from dialogs.store.change import Change
from dialogs.tools.tool import Invocation, Tool, parameters
from dominds.llm.messages import ToolSpec
from dominds.visible_text import is_blank


def ask_human(change: Change, call: Invocation) -> Result | Awaited:
    question = str(call.arguments["question"])
    if is_blank(question):
        return Result("The question is blank. Write what you want to know.", failed=True)
    questions.ask(change, question, call.call_id, call.arguments.get("choices", ()))
    return Awaited.PERSON


TOOLS = (
    Tool(
        ToolSpec(
            ASK_HUMAN,
            "Ask a person something that only they can decide or know. The answer comes back as this call's result.",
            parameters(
                ["question"],
                question={"type": "string", "minLength": 1},
                choices={
                    "type": "array",
                    "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_CHOICE},
                    "maxItems": MOST_CHOICES,
                    "description": "short answers to choose from, where there are some; the person may write another",
                },
            ),
        ),
        inside=ask_human,
        always=True,
    ),
)
