from dialogs.tools.registry import Tool

PREFIX = "mcp:"


def tools_named(name: str) -> dict[str, Tool]:
    return {}
