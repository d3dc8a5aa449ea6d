from dialogs.tools.registry import Tool

TOOLS: tuple[Tool, ...] = ()
