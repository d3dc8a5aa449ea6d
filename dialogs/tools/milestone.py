"""The tool by which an agent declares a milestone complete, and starts afresh from a handover summary."""

from dialogs.context.tool_calls import Result
from dialogs.store.change import Change
from dialogs.tools.tool import Invocation, Tool, parameters
from dominds.llm.messages import ToolSpec
from remediation.policies.fresh_start import COMPLETE_MILESTONE
from remediation.policies.requested import MILESTONE


def complete_milestone(change: Change, call: Invocation) -> Result:
    change.dialog.requested_rewrite = change.dialog.requested_rewrite or MILESTONE
    change.event("notice", text=f"Milestone completed: {call.arguments['summary']}")
    return Result("Milestone recorded. You go on from a handover summary of what was said so far.")


TOOLS = (
    Tool(
        ToolSpec(
            COMPLETE_MILESTONE,
            "Say that a milestone is reached. The conversation so far is replaced by a handover summary, and you go "
            "on.",
            parameters(["summary"], summary={"type": "string", "minLength": 1, "description": "what was completed"}),
        ),
        inside=complete_milestone,
    ),
)
