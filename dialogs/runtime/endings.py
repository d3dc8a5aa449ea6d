"""What people are told of an answer that ended otherwise than by its own last word. It is kept as it came."""

from dialogs.runtime.stream_reply import Reply
from dominds.llm.stream import FinishReason

MORE_OUTPUT = "output_length of its model, or max_tokens of the agent, allows more."
NOTICES: dict[str, str] = {
    FinishReason.LENGTH: f"The answer was cut off where the output that was asked for ended. {MORE_OUTPUT}",
    FinishReason.THOUGHT_ONLY: (
        f"The model spent all of its output on thinking, and said nothing. A lower effort leaves some for an answer; {MORE_OUTPUT}"
    ),
    FinishReason.WINDOW_EXCEEDED: "The answer was cut off: the model's context window is full.",
    FinishReason.REFUSAL: "The model, or a filter of its provider, refused to answer.",
    FinishReason.PAUSE: "The provider paused before the answer was whole. Send a message to go on.",
    FinishReason.COMPACTION: "The provider shortened the conversation, and ended there. Send a message to go on.",
}
SILENT = "The model ended without a word."


def notice_of(reply: Reply) -> str:
    """Empty where the answer is whole, or goes on after its calls."""
    if reply.tool_calls:
        return ""
    return NOTICES.get(reply.finish_reason, "" if reply.text.strip() else SILENT)
