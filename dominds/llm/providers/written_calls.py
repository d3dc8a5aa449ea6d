"""Recognition of calls that a model wrote as text and that its server did not read: nothing runs, and the answer looks
whole.

This happens if a server lacks the parser for its model, and sometimes with hosted models.
"""

import re
from collections.abc import Collection

from dominds.llm.providers.outgoing import named_tool
from dominds.llm.providers.think_tags import is_quoted

BAR = "[|\uff5c\u2016]"  # DeepSeek's bars have three forms
OBJECT = r"[^<>]{0,4000}?\"name\"\s*:\s*\""  # a call in JSON, up to the name of the tool
# The forms of text before the name of a tool.
BEFORE = (
    rf"<\|?tool_call\|?>(?:\s*(?:<function=|call:|functions\.)|{OBJECT}|\s*)",  # Hermes, Qwen, GLM, Gemma
    r"<\|tool_call_begin\|>\s*",  # Kimi
    rf"<{BAR}+DSML{BAR}+\s*invoke\s+name=\"",  # DeepSeek since 3.2
    rf"tool\u2581sep{BAR}>\s*",  # DeepSeek before
    r"<(?:minimax:tool_call|function_calls|tool_calls?)>\s*<invoke\s+name=\"",  # MiniMax
    r"<tool_calls?>\s*<(?=\w)",  # Qwen 3.6, whose tags are the names of tools
    r"\[TOOL_CALL\]\s*\{\s*\"?tool\"?\s*(?:=>|:)\s*\"",  # MiniMax M2
    r"<function=",  # Llama
    r"declaration:default_api:",  # Gemini
    r"^call:(?=[\w.:-]{1,80}\{)",  # Gemma, on a server that drops its marks
    rf"\[TOOL_CALLS\](?:{OBJECT}|\s*)",  # Mistral
    r"(?:<\|channel\|>|\A\s*|assistant)commentary\s+to=(?=functions\.)",  # gpt-oss
)
CALL = re.compile(rf"(?:{'|'.join(BEFORE)})([\w.:-]{{1,80}})", re.M)
# gpt-oss sometimes loses the name of the tool. Only calls begin in this way.
NAMELESS = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>commentary\b")
PUNCTUATION = re.compile(r"<[^<>]*>|[\]}]|```")  # the end of a call, or of one of its arguments


def call_written_in(text: str, offered: Collection[str]) -> str:
    """Return the offered tool whose call ends the text, "a tool" for a call without a name, or an empty text.

    A call that is quoted, or that words follow, is only talked about.
    """
    calls = list(CALL.finditer(text)) if offered else []
    if offered and not calls and NAMELESS.match(text):
        return "a tool"
    if not calls or is_quoted(text[: calls[-1].start()]):
        return ""
    last = calls[-1]
    *parts, rest = PUNCTUATION.split(text[last.end() :])
    return "" if parts and rest.strip() else named_tool(last[1], offered)
