"""Minification of code: fewer tokens, the same meaning, no comments, blank lines or trailing spaces.

Lines, indentation, strings and URLs stay as they are. One pass goes from left to right; a construct found
unterminated once is not looked for again, so the work stays linear on any input.
"""

import re

INTERESTING = re.compile(r"[\"'`#/]")
FENCE = "```"
SLASH_LANGUAGES = frozenset(
    "c cc cpp c++ cs csharp css dart go h hpp java javascript js json jsonc jsx kotlin kt less php rs "
    "rust scala scss swift ts tsx typescript".split()
)
HASH_LANGUAGES = frozenset(
    "bash dockerfile elixir ini makefile perl py python r rb ruby sh shell toml yaml yml zsh".split()
)
HASH_SIGNS = ("def ", "from ", "elif ", "#!", "print(", "# ", "async def ", "fi", "done", "echo ")
SLASH_SIGNS = ("//", "/*", "const ", "let ", "var ", "function ", "#include", "public ", "private ", "}")


def minify_code(text: str) -> str:
    """Minify the fenced blocks of ``text``, or all of it when it holds none."""
    if FENCE not in text:
        return _minify(text, _language_of(text))
    pieces = text.split(FENCE)
    return FENCE.join(piece if index % 2 == 0 else _minify_fence(piece) for index, piece in enumerate(pieces))


def _minify_fence(block: str) -> str:
    name, newline, body = block.partition("\n")
    if not newline:
        return block  # inline, on one line
    language = name.strip().lower()
    known = "hash" if language in HASH_LANGUAGES else "slash" if language in SLASH_LANGUAGES else _language_of(body)
    return f"{name}\n{_minify(body, known)}"


def _language_of(code: str) -> str:
    """``hash`` or ``slash``, after the sign that starts a comment, by a vote of the lines; ``none`` when undecided."""
    lines = [line.strip() for line in code.splitlines()]
    hashes = sum(line.startswith(HASH_SIGNS) for line in lines)
    slashes = sum(line.startswith(SLASH_SIGNS) or line.endswith(";") for line in lines)
    return "none" if hashes == slashes else "hash" if hashes > slashes else "slash"


def _minify(code: str, language: str) -> str:
    if language == "none":
        return _without_blank_lines(code)
    scanner = _Scanner(code, language)
    return "".join(text if verbatim else _without_blank_lines(text) for text, verbatim in scanner.pieces())


def _without_blank_lines(code: str) -> str:
    lines = code.split("\n")
    inner = [stripped for line in lines[1:-1] if (stripped := line.rstrip())]
    if len(lines) == 1:
        return code
    return "\n".join([lines[0].rstrip(), *inner, lines[-1]])


class _Scanner:
    """Splits code into stretches of code without comments, and strings to be kept as they are."""

    def __init__(self, code: str, language: str) -> None:
        self.code, self.language = code, language
        self.unterminated: set[str] = set()  # ends that the rest of the text does not hold
        self.line_end = -1  # of the line whose ``open_quotes`` are known to be closed nowhere on it
        self.open_quotes: set[str] = set()

    def pieces(self) -> list[tuple[str, bool]]:
        results: list[tuple[str, bool]] = []
        plain: list[str] = []
        position = start = 0
        while sign := INTERESTING.search(self.code, position):
            at = sign.start()
            if string_end := self._string_end(at):
                plain.append(self.code[start:at])
                results += [("".join(plain), False), (self.code[at:string_end], True)]
                plain, start, position = [], string_end, string_end
            elif comment_end := self._comment_end(at):
                plain.append(self.code[start:at])
                start = position = comment_end
            else:
                position = at + 1
        plain.append(self.code[start:])
        return [*results, ("".join(plain), False)]

    def _string_end(self, at: int) -> int:
        """Return where the string that starts here ends, or 0 if none does."""
        quote = self.code[at]
        if quote not in "\"'`":
            return 0
        if self.code.startswith(quote * 3, at) and quote != "`":
            return self._find(quote * 3, at + 3)
        if quote == "`":
            return self._find("`", at + 1)
        return self._line_string_end(quote, at + 1)

    def _line_string_end(self, quote: str, position: int) -> int:
        if position > self.line_end:
            self.line_end = self._line_end(position)
            self.open_quotes = set()
        while quote not in self.open_quotes and position < self.line_end:
            if self.code[position] == "\\":
                position += 1
            elif self.code[position] == quote:
                return position + 1
            position += 1
        self.open_quotes.add(quote)
        return 0

    def _comment_end(self, at: int) -> int:
        """Return where the comment that starts here ends, its newline excluded, or 0 if none starts here."""
        if self.language == "hash":
            return self._line_end(at) if self.code[at] == "#" and self._starts_word(at) and not self._shebang(at) else 0
        if self.code.startswith("/*", at):
            return self._find("*/", at + 2)
        return self._line_end(at) if self.code.startswith("//", at) and self.code[at - 1 : at] != ":" else 0

    def _starts_word(self, at: int) -> bool:
        return at == 0 or self.code[at - 1].isspace()

    def _shebang(self, at: int) -> bool:
        return at == 0 and self.code.startswith("#!")

    def _line_end(self, at: int) -> int:
        end = self.code.find("\n", at)
        return len(self.code) if end < 0 else end

    def _find(self, closing: str, start: int) -> int:
        if closing in self.unterminated:
            return 0
        end = self.code.find(closing, start)
        if end < 0:
            self.unterminated.add(closing)
            return 0
        return end + len(closing)
