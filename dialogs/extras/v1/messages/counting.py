"""``/v1/messages/count_tokens``: the estimated size of a request as it was sent, before any rewrite."""

from dialogs.actions.attachments import text_with
from dialogs.context.sizes import parts_tokens
from dialogs.extras.v1.conversations import agent_of
from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.tools.offer import offer
from dialogs.tools.registry import tools_under
from dialogs.tools.tool import Tool
from dominds.llm.messages import ImagePart, Message, Role, ToolCall, ToolSpec
from remediation.tokens.calibration import estimate_request
from remediation.tokens.counting import counter_for


def est_tokens(request: ChatRequest) -> int:
    """Estimate a request with the agent's own instructions and tools. Raises ``ApiError`` or ``Refusal``."""
    agent, served = agent_of(request)
    model = served.model
    instructions = "\n\n".join(text for text in (agent.instructions, request.instructions) if text)
    clients = [ToolSpec(tool["name"], tool["description"], tool["parameters"]) for tool in request.tools]
    offered = {spec.name: Tool(spec) for spec in clients} | tools_under(served.policy, agent)
    tools = offer(offered, served, instructions).tools
    counter = counter_for(model.model_id, model.tokenizer or "")
    messages = [_message(message) for message in request.messages]
    text = estimate_request(instructions, messages, tools, counter).counted.total
    return text + parts_tokens(messages, model)


def _message(message: ClientMessage) -> Message:
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in message.calls)
    images = tuple(
        ImagePart(file.media_type, b"", file.name, pixels=file.pixels) for file in message.attached if file.pixels
    )
    return Message(Role(message.role), text_with(message.text, message.attached), calls, message.call_id, parts=images)
