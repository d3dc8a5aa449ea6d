"""Formats of texts without a file's name: patches, markup, data, queries, scripts and programs, told by their lines."""

import re
from collections.abc import Sequence
from itertools import pairwise

MOST_LINES = 200  # that are read of a text, its first ones
MOST_CHARS, LONGEST_LINE = 10_000, 240  # characters
BEGINNING_CHARS = 2_000
MINIFIED_CHARS, MINIFIED_SIGNS = 400, 0.08  # a line on average; of all characters
FEWEST_LINES = 3  # of which nothing is a format; a line or two may be an answer of any kind
DATA = frozenset({"json", "yaml", "settings"})  # whose values are facts, as those of any output

COMMENT = re.compile(
    r"\s*(?:#(?!!|include\b|define\b|if|endif|else|undef|pragma|\[|!\[)|//|/\*|\*/|\*(?: |$)|--(?: |$|-)|;(?:;|\s|$)"
    r"|REM |<!--|%(?: |%|$)|dnl )"
)

REMARK = re.compile(r"\s*(?:#(?!#)|//|/\*|\*/|\* )")  # of programs alone, where nearly all of a text is remarks

MODULE_START = re.compile(r"\s*(?:package [\w:.]+;|use (?:strict|warnings|v?5[\d.]*);)")  # Perl's; Java's as well
COMMENTED = 0.5  # of a file's lines, from which what is left are settings unless it is prose

PATCH_HEAD = re.compile(r"(?:diff --git |diff -\S+ |Index: |--- \S|\*\*\* \S)", re.M)
PATCH_HUNK = re.compile(r"^(?:@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|\*{15}|\d+(?:,\d+)?[acd]\d+(?:,\d+)?$)", re.M)

MARKUP_START = re.compile(r"\s*<(?:\?xml|!DOCTYPE|!--|html\b|svg\b)", re.I)
MARKUP_LINE = re.compile(r"\s*</?[A-Za-z!?][\w:.-]*(?:\s[^<>]*)?(?:>|$)")
MARKUP_END = re.compile(r"</[A-Za-z][\w:.-]*>|/>")

JSON_LINE = re.compile(
    r'\s*(?:"(?:[^"\\]|\\.){0,400}"\s*:.*|[\]\[{}]{1,4},?|\},? ?\{|"(?:[^"\\]|\\.)*"?,?|-?\d[\d.eE+-]*,?'
    r"|(?:true|false|null),?)\s*$"
)

YAML_PAIR = re.compile(r"\s*(?:- +)*(?:[\w.$/@*-]+|\"[^\"]{1,80}\"|'[^']{1,80}')\s?:(?:\s+\S.*|\s*)$")
YAML_ITEM = re.compile(r"\s*-(?:\s+\S.*)?$")
YAML_OPENING = re.compile(r"\s*(?:- +)*[\w.$/@\"'*-]+:\s*(?:[|>][+-]?|&\w+|!\w+)?\s*$")

SECTION = re.compile(r"\s*\[{1,2}[\w .:\"'@/*-]{1,80}\]{1,2}\s*$")
SETTING = re.compile(r"\s*[\w.\"'@$\[\]-]{1,80}(?: [\w-]{1,30}){0,2}\s*[=:](?!=)\s*.*$")

SQL_START = re.compile(
    r"\s*(?:SELECT\b|INSERT INTO\b|UPDATE \S+\s+SET\b|DELETE FROM\b"
    r"|CREATE (?:OR REPLACE |UNIQUE |TEMP(?:ORARY)? |VIRTUAL )*"
    r"(?:TABLE|VIEW|INDEX|FUNCTION|PROCEDURE|TRIGGER|EXTENSION|TYPE|CAST|OPERATOR|DOMAIN|SCHEMA|DATABASE|ROLE|USER"
    r"|SEQUENCE|AGGREGATE)\b"
    r"|ALTER (?:TABLE|EXTENSION|FUNCTION|OPERATOR|TYPE|VIEW|DATABASE|ROLE)\b"
    r"|DROP (?:TABLE|FUNCTION|VIEW|INDEX|OPERATOR|TYPE|SCHEMA|TRIGGER|AGGREGATE)\b"
    r"|GRANT \w|REVOKE \w|COMMENT ON\b|MERGE INTO\b|TRUNCATE\b|BEGIN(?: TRANSACTION)?;|COMMIT;|EXPLAIN\b"
    r"|WITH \w+ AS\b)",
    re.I,
)
SQL_LINE = re.compile(
    r"\s*(?:FROM|WHERE|JOIN|LEFT|INNER|GROUP BY|ORDER BY|HAVING|LIMIT|UNION|VALUES|SET|AND|OR|ON|AS|RETURNS|LANGUAGE"
    r"|BEGIN|END|DECLARE|RETURN|PRIMARY KEY|FOREIGN KEY|CONSTRAINT|REFERENCES|OPERATOR|FUNCTION|STORAGE|STRICT"
    r"|IMMUTABLE)\b|\(?.*(?:\),?|;|,)\s*$|[()]",
    re.I,
)

SCRIPT_START = re.compile(r"#! ?/\S")
SHELL_BLOCK = re.compile(
    r"\s*(?:fi|done|esac|then|do|else|;;|\w[\w-]*\s?\(\)\s*\{?|(?:el)?if\s.*;?\s*then|(?:for|while|until)\s.*;?\s*do"
    r"|case\s.*\sin)\s*(?:[;&|#].*)?$"
)
SHELL_LINE = re.compile(
    r"\s*(?:[A-Za-z_]\w*\+?=\S*|(?:export|local|readonly|unset|set|shift|source|trap|exit|return|echo|printf|cd|mkdir"
    r"|rm|cp|mv|ln|cat|grep|sed|awk|test|eval|exec|read|chmod|chown|sudo|apt-get|git|curl|docker|python3?|make|declare"
    r"|alias|\.|\[\[?)(?:\s.*|$)|[\w./-]+\s+.*(?:\\|\|\||&&|\||>&2)$"
    r"|.*\$(?:\{\w|\(|[A-Za-z_@#?*0-9]).*|\}|\{|[\w.*|\"-]+\)\s*$|-{1,2}[\w-]+.*\\$)"
)

MAKE_RULE = re.compile(r"[\w.$(){}/%*-]+(?: [\w.$(){}/%*-]+){0,7} ?:(?!=)(?:\s+[\w.$(){}/%*-].*|\s*)$|\.PHONY\b")
MAKE_LINE = re.compile(
    r"\t\S.*|\s*[\w.-]+\s*[:?+]?=.*|(?:if(?:n?eq|n?def)|else|endif|include|-include|define|endef|export)\b.*"
    r"|[\w.$(){}/ %-]+\\$|.*\$\([^)]+\).*"
)
DOCKER_LINE = re.compile(
    r"(?:FROM|RUN|COPY|ADD|ENV|ARG|WORKDIR|EXPOSE|CMD|ENTRYPOINT|USER|VOLUME|LABEL|SHELL|HEALTHCHECK|ONBUILD)\s+\S"
)
CMAKE_LINE = re.compile(
    r"\s*(?:[a-z_]+|[A-Z_]+|endif|endforeach|endfunction|endmacro) ?\(.*\)?\s*$|\s*[A-Z_]+\s+\S.*\)?$|\s*\)$"
)

PROGRAM_LINE = re.compile(
    r"\s*(?:#\s*(?:include|define|if|ifdef|ifndef|endif|else|elif|undef|pragma|error)\b.*|#!?\[.*\]|[{}()\[\]]+[;,)]*"
    r"|.*(?:[{};]|\)\s*\\?|[({\[,]|=>|->|&&|\|\||\\)"
    r"|@\w[\w.]*(?:\(.*\))?|(?:def|class|import|from|if|elif|for|while|with|try|except|return|raise|yield|assert|async"
    r"|await|pass|else:|sub|my|our|use|package|require|module|end|begin|fn|let|const|var|func|function|type|struct|enum"
    r"|impl|pub|mod|namespace|template|public|private|static|proc|set|local|unless|foreach|"
    r"typedef|extern|union|case|default|switch|do|then|interface|export|throw|new|delete|void|int|char|long|unsigned"
    r"|double|float|bool)\b.*"
    r"|[\w.\[\]\"'$@%>:*&-]+(?:\s*[-+*/|&.]?=(?!=)\s*.+|\s?\(.*)|.*=>.*,?)$"
)
# Signs that no prose, no table and no log has at so many of its lines.
PROGRAM_SIGN = re.compile(
    r"[;{]\s*(?://.*|/\*.*|#.*)?$|^\s*[})\]]+[;,)]*\s*$|^\s*#\s*(?:include|define|ifn?def|endif|undef|pragma)\b"
    r"|\w\(.*\)\s*[:{;]\s*$|^\s*(?:[a-z_]\w*(?:\.\w+)*|[$@%]\w+|my [$@%(]\w*)\s*[-+*/|&.]?=\s"
    r"|^\s*(?:def|class|sub|fn|func|function|proc|impl|struct|pub|import|from \S+ import|use [\w:]+|package \w|require"
    r"|module|template|namespace|return|raise|elif|except|public|private|static|typedef|extern)\b.*[^.!?\s]$"
    r"|^\s*[a-z-]+:\s?[^;]+;|=>|->\w|::\w|\bself\.|\bthis\."
)


def format_of(text: str, by_person: bool = False) -> str:
    """Name the format: ``diff``, ``markup``, ``json``, ``yaml``, ``settings``, ``sql``, ``shell``, ``make`` or
    ``program``; empty for none of them.

    People write about code and quote it, so a message of theirs has a format only if no prose surrounds it.
    """
    lines = [line[:LONGEST_LINE] for line in text[:MOST_CHARS].splitlines()[:MOST_LINES] if line.strip()]
    if lines and SCRIPT_START.match(lines[0]):
        return "program"
    if lines and MARKUP_START.match(lines[0]) and lines[-1].rstrip().endswith(">"):
        return "markup"
    if _is_minified(text[:MOST_CHARS]):
        return "program"
    if len(lines) < FEWEST_LINES:
        return ""
    least = 0.95 if by_person else 0.0
    if _is_patch(lines, text, by_person):
        return "diff"
    if _is_markup(lines, max(0.4, least)):
        return "markup"
    if lines[0].lstrip()[:1] in ("{", "[", '"') and _share(JSON_LINE, lines) >= max(0.9, least):
        return "json"
    bare = [line for line in lines if not COMMENT.match(line)]
    if len(bare) < FEWEST_LINES:
        return "program" if not by_person and _share(REMARK, lines) > 0.7 else ""
    if by_person and not _begins_and_ends_as_code(bare):
        return ""
    if not by_person and MODULE_START.match(bare[0]):
        return "program"
    if not by_person and _is_commented(lines, bare):
        return "settings"
    return next((name for name, judge in JUDGES if judge(bare, least)), "")


def holds_data(text: str) -> bool:
    """Check by its beginning whether a text that is not prose holds values, like other output, and is not a
    program.
    """
    return format_of(text[:BEGINNING_CHARS]) in DATA


def _is_patch(lines: Sequence[str], text: str, by_person: bool) -> bool:
    if not PATCH_HUNK.search(text, 0, MOST_CHARS):
        return False
    marked = sum(line[0] in "+-@ \t<>!*\\" or bool(PATCH_HEAD.match(line)) for line in lines)
    return marked >= 0.8 * len(lines) if by_person else marked >= 0.5 * len(lines)


def _is_minified(text: str) -> bool:
    """Recognise a program in a few long lines, written for machines. JSON in one line is an answer like any other."""
    signs = sum(map(text.count, ";{}()="))
    return (
        len(text) > MINIFIED_CHARS * (text.count("\n") + 1)
        and text.lstrip()[:1] not in '{["'
        and signs > MINIFIED_SIGNS * len(text)
    )


def _is_markup(lines: Sequence[str], least: float) -> bool:
    tagged = _share(MARKUP_LINE, lines)
    ended = sum(bool(MARKUP_END.search(line)) for line in lines)
    begins = bool(MARKUP_START.match(lines[0])) and (ended > 1 or len(lines) > 8)
    return (begins and least < 0.9) or (ended >= 2 and tagged >= least and lines[0].lstrip()[:1] == "<")


def _is_yaml(lines: Sequence[str], least: float) -> bool:
    """Recognise pairs and items of which some are nested: a flat list of pairs is what many commands print."""
    nested = 0
    for line, following in pairwise(lines):
        deeper = _indent(following) - _indent(line)
        nested += bool(YAML_OPENING.match(line)) and (deeper > 0 or (not deeper and following.lstrip()[0] == "-"))
    if not nested and lines[0] != "---":
        return False
    paired = sum(bool(YAML_PAIR.match(line)) for line in lines)
    shaped = paired + sum(not YAML_PAIR.match(line) and bool(YAML_ITEM.match(line)) for line in lines)
    inner = sum(_indent(line) > 0 and not YAML_PAIR.match(line) and not YAML_ITEM.match(line) for line in lines)
    return (
        paired >= 2 and shaped >= max(0.5, least - 0.2) * len(lines) and shaped + inner >= max(0.9, least) * len(lines)
    )


def _is_settings(lines: Sequence[str], least: float) -> bool:
    sections = sum(bool(SECTION.match(line)) for line in lines)
    set_ = sum(bool(SETTING.match(line)) and "=" in line for line in lines)
    inner = sum(_indent(line) > 0 or line.strip()[:1] in "\"']}" for line in lines)
    return (
        sections > 0
        and set_ > 0
        and (sections + set_ + inner) >= max(0.85, least) * len(lines)
        and sections + set_ >= len(lines) / 3
    )


def _is_commented(lines: Sequence[str], bare: Sequence[str]) -> bool:
    """Recognise settings without sections, as in most of /etc, by their comments, which outnumber the settings."""
    return len(lines) - len(bare) >= COMMENTED * len(lines) and all(
        _words_in_a_row(line) < WORDS_OF_PROSE for line in bare
    )


def _is_sql(lines: Sequence[str], least: float) -> bool:
    started = sum(bool(SQL_START.match(line)) for line in lines)
    ended = sum(line.rstrip().endswith(";") for line in lines)
    return (
        started > 0
        and ended > 0
        and started + ended >= 0.2 * len(lines)
        and _share_of_either(lines, SQL_START, SQL_LINE) >= max(0.7, least)
    )


def _is_shell(lines: Sequence[str], least: float) -> bool:
    blocks = sum(bool(SHELL_BLOCK.match(line)) for line in lines)
    shell = sum(bool(SHELL_LINE.match(line) or SHELL_BLOCK.match(line)) for line in lines)
    return blocks >= max(2, len(lines) / 20) and shell >= max(0.55, least) * len(lines)


def _is_make(lines: Sequence[str], least: float) -> bool:
    if sum(bool(DOCKER_LINE.match(line)) for line in lines) >= 2 and DOCKER_LINE.match(lines[0]):
        return True
    rules = sum(bool(MAKE_RULE.match(line)) for line in lines)
    made = sum(bool(MAKE_LINE.match(line)) and not MAKE_RULE.match(line) for line in lines)
    recipes = sum(line[0] == "\t" for line in lines) + sum("$(" in line or ":=" in line for line in lines)
    if rules and recipes >= 0.2 * len(lines) and rules + made >= max(0.7, least) * len(lines):
        return True
    called = sum(bool(re.match(r"\s*\w+ ?\(", line)) for line in lines)
    return called >= 0.4 * len(lines) and called >= 3 and _share(CMAKE_LINE, lines) >= max(0.8, least)


def _is_program(lines: Sequence[str], least: float) -> bool:
    if sum(
        _words_in_a_row(line) >= WORDS_OF_PROSE and not PROGRAM_SIGN.search(line) for line in lines
    ) > MOST_PROSE * len(lines):
        return False
    signs = sum(bool(PROGRAM_SIGN.search(line)) for line in lines)
    return signs >= 0.35 * len(lines) and _share(PROGRAM_LINE, lines) >= max(0.6, least - 0.15)


WORDS_OF_PROSE = 6  # in a row, without a sign between them
MOST_PROSE = 0.08  # of a program's lines
JUDGES = (
    ("settings", _is_settings),
    ("sql", _is_sql),
    ("shell", _is_shell),
    ("make", _is_make),
    ("yaml", _is_yaml),
    ("program", _is_program),
)


def _begins_and_ends_as_code(lines: Sequence[str]) -> bool:
    return all(
        _words_in_a_row(line) < 5 and not line.rstrip().endswith((".", "?", "!", "。", "？", "！"))
        for line in (lines[0], lines[-1])
    )


def _words_in_a_row(line: str) -> int:
    return max((len(run.split()) for run in re.findall(r"(?:[A-Za-z']+ )+[A-Za-z']+", line)), default=1)


def _share(pattern: re.Pattern[str], lines: Sequence[str]) -> float:
    return sum(bool(pattern.match(line)) for line in lines) / len(lines)


def _share_of_either(lines: Sequence[str], *patterns: re.Pattern[str]) -> float:
    return sum(any(pattern.match(line) for pattern in patterns) for line in lines) / len(lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
