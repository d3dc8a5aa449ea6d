"""Conversations as Markdown or plain text, in which a line tells who speaks: exports that are made for people."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dialogs.extras.imports.conversation import Item

ASKING = ("user", "you", "human", "me", "prompt", "question")
ANSWERING = re.compile(
    r"(?:assistant|response|answer|bot|ai|model|chatgpt|gpt|o\d|claude|gemini|grok|copilot"
    r"|deepseek|llama|mistral|qwen)\b.*"
)
OURS = re.compile(r"(?:result of (?P<tool>\S+?)(?:,? .*)?|notice|round \d+)")  # headings of our own export
# A heading, bold words, or a word with a colon; a picture may stand before the name.
LABEL = re.compile(
    r" {0,3}(?P<style>#{1,6} +|)(?P<bold>\*\*|__|)(?:[^\w\s#*_]{1,4} +)?(?P<name>[A-Za-z][\w .()'-]{0,60}?)"
    r"(?= *(?:[:*_]|$)) *(?P<colon>:?)(?P=bold)(?P<later>:?) *(?P<rest>.*)"
)
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
TITLES = ("- title: ", "# ")  # LibreChat's, and everybody's
CALL = re.compile(r"\n\nCalls `([^`\n]+)`:\n\n(`{3,})json\n(.*?)\n\2(?=\n|$)", re.S)
WHOLE_FENCE = re.compile(r"(`{3,})\n(.*)\n\1", re.S)
RULE = re.compile(r"(?:-{3,}|\*{3,}|_{3,}|)\s*")


@dataclass(slots=True)
class _Said:
    speaker: str
    lines: list[str] = field(default_factory=list)


def conversation_in(text: str) -> Item | None:
    """Return the conversation as a list of messages with a title, or None where no line tells that a person speaks."""
    lines = text.splitlines()
    parts = list(_parts(lines))
    if not any(part.speaker in ASKING for part in parts):
        return None
    titles = (line.removeprefix(mark).strip() for mark in TITLES for line in lines if line.startswith(mark))
    return {"title": next(titles, ""), "messages": list(filter(None, map(_message, parts)))}


def _parts(lines: list[str]) -> Iterator[_Said]:
    """Yield what each speaker says. All labels of a file look alike; a line that looks otherwise is part of a text."""
    closings = defaultdict(list)
    for place, line in enumerate(lines):
        if (fence := FENCE.fullmatch(line)) and not fence[2].strip():
            closings[fence[1]].append(place)
    look, said, end = None, None, -1
    for place, line in enumerate(lines):
        if place <= end:  # within a block of code
            label = None
        elif fence := FENCE.fullmatch(line):
            label, after = None, closings[fence[1]]
            at = bisect_right(after, place)
            end = after[at] if at < len(after) else place
        else:
            label = _label_of(line)
        if label and look in (None, label[0]):
            if said:
                yield said
            look, said = label[0], _Said(label[1], [label[2]])
        elif said:
            said.lines.append(line)
    if said:
        yield said


def _label_of(line: str) -> tuple[str, str, str] | None:
    """Return how a label looks, whom it names, and what follows in its line."""
    if not (found := LABEL.fullmatch(line)):
        return None
    style, name, rest = found["style"].strip(), found["name"].lower(), found["rest"]
    if style:
        name, rest = f"{name} {rest}".strip(), ""
    bare = re.sub(r" *\(.*", "", name)
    if not (style or found["colon"] or found["later"] or (found["bold"] and not rest)):
        return None
    known = bare in ASKING or ANSWERING.fullmatch(bare) or (style and OURS.fullmatch(bare))
    is_round = bare.startswith("round ")  # a heading above those of its turns
    return ("###" if is_round else style or found["bold"] or ":", bare, rest) if known else None


def _message(said: _Said) -> dict[str, Any] | None:
    while said.lines and RULE.fullmatch(said.lines[-1]):
        said.lines.pop()
    text = "\n".join(said.lines).strip()
    if said.speaker in ASKING:
        return {"role": "user", "content": text}
    if not (ours := OURS.fullmatch(said.speaker)):
        calls = [{"name": name, "arguments": arguments} for name, _, arguments in CALL.findall(f"\n\n{text}")]
        return {"role": "assistant", "content": CALL.sub("", f"\n\n{text}").strip(), "tool_calls": calls}
    if not ours["tool"]:
        return {"type": "notice"}
    block = WHOLE_FENCE.fullmatch(text)
    return {"role": "tool", "content": block[2] if block else text}
