"""Minification of code: lines that are blank or only comment go, and all others stay as they are."""

import re

FENCE = "```"
COMMENT = re.compile(r"\s*(?:#(?![!\w])|//|--\s|/\*.*\*/\s*$)")
STRING_END = re.compile("\"\"\"|'''|`")  # of a string of several lines, within which nothing is a comment


def minify_code(text: str) -> str:
    """Minify the fenced blocks of ``text``, or all of it when it holds none."""
    if FENCE not in text:
        return _minify(text)
    pieces = text.split(FENCE)
    return FENCE.join(piece if index % 2 == 0 else _minify_block(piece) for index, piece in enumerate(pieces))


def _minify_block(block: str) -> str:
    name, newline, body = block.partition("\n")
    return f"{name}\n{_minify(body)}\n" if newline else block


def _minify(code: str) -> str:
    kept: list[str] = []
    in_string = False
    for line in code.split("\n"):
        if in_string or (line.strip() and not COMMENT.match(line)):
            kept.append(line if in_string else line.rstrip())
            in_string ^= len(STRING_END.findall(line)) % 2 == 1
    return "\n".join(kept)
