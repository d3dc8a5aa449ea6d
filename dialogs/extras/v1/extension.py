from dialogs.extension import Extension

EXTENSION = Extension(
    name="v1",
    summary="/v1 for clients of OpenAI's and Anthropic's APIs, and /mcp for agents elsewhere.",
    programs="dialogs.extras.v1.programs",
)
