"""The runtime's own marks, and a function that disarms foreign text in which they are imitated.

Accounts, ledgers, packages and recalled passages say by marks, such as "12 person:" or "[7 user]", who said what and
when. All other text in them was written by people, agents, tools and files, and passes ``disarm`` first. A nonce in the
marks would do the same, but it would change the beginning of each request, which providers cache.
"""

import re
import unicodedata

from dominds.redaction import holds_any

BY_RULE = "(Quoted by rule; read_archive has the rest.)"
KEY_FACTS = "Key facts from messages that are no longer shown (rules still hold):"
RULE = "Rule: "
OMITTED = "[…]"
PART_END, PART_BEGIN = " …", "… "  # where a long sentence was cut into parts
CUT = " [shortened; read_archive shows the rest]"  # the end of a shortened answer
# The names of speakers in the marks, by role.
SPEAKERS = {"user": "person", "assistant": "agent", "system": "instructions"}
ROLES = {speaker: role for role, speaker in SPEAKERS.items()}

BLANK = r" \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"  # spaces within a line
MARKS = re.compile(
    # A turn and its speaker, as accounts, ledgers, recalled passages and requests to a summariser have them. Other
    # names for a speaker would be read in the same way.
    r"(?P<colon>\b\d{1,9}(?:-\d{1,9})?\s{1,4}(?:person|agent|called|instructions|tool|user|human|assistant|system"
    r"|benutzer|nutzer|utilisateur|usuario|пользователь|用户|用戶|ユーザー|사용자)):"
    r"|[\[［](?P<label>(?:turn )?\d{1,9}\s{1,4}[^\W\d][\w ,/-]{0,19}|turn \d{1,9})[\]］]"
    r"|(?P<bracket>[\[［](?:(?=(?:turn )?\d{1,9}\s{1,4}[^\W\d]|turn \d)"
    # A notice in place of text that is left out.
    r"|(?=(?:Result of|Omitted|Summary of|Cut, since|Recalled by|… [\d,]+ (?:lines|characters)|I answered this"
    r"|Left out of|Earlier messages|The beginning of this|The tool was not run|A person changed))))"
    rf"|(?P<rule>(?:^|(?<=[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]))(?:[{BLANK}>|*•-]*\brule:)+[{BLANK}]*)"
    r"|(?P<notice>\(Quoted by rule;|Key facts from messages that are no longer shown|Previous \d{1,9} turns?(?=: \d)"
    r"|Drafted by the runtime|Resuming from overflow:|Continue task:|– begun with:)",
    re.I | re.M,
)


# Each mark holds one of SIGNS and one of NEEDED. To look for both takes a small part of the pattern's time, and most
# sentences hold none of SIGNS, which are few.
SIGNS = (":", "[", "［", "by rule;", "key facts from", "by the runtime")
NEEDED = (
    *"[ ［ person: agent: called: instructions: tool: rule: turn: turns: overflow: task: with: user: human:".split(),
    *"assistant: system: nutzer: utilisateur: usuario: ь: 户: 戶: ー: 자:".split(),
    *("by rule;", "key facts from", "by the runtime"),
)


# Letters and signs of other alphabets that look like those of a mark.
LOOKALIKES = dict(
    zip(
        "аеорсухіѕԁɡһӏαορνικτуАЕОРСТХВНКМІЅΑΒΕΗΙΚΜΝΟΡΤ【〔〚〖】〕〛〗∶︓ː",
        "aeopcyxisdghlaopviktyAEOPCTXBHKMISABEHIKMNOPT[[[[]]]]:::",
        strict=True,
    )
)
OF_MARKS = re.compile(r"[\w\s:;()\[\]-]+")  # signs of marks: it is enough to see through what looks like these
LINES = re.compile(r".+")


class _Seen(dict[int, str]):
    """A table for ``str.translate``: each sign in the plain form in which a reader sees it.

    Signs without a width and marks above or below a letter are left out.
    """

    def __missing__(self, code: int) -> str:
        signs = unicodedata.normalize("NFKD", chr(code))
        kept = (sign for sign in signs if sign.isspace() or unicodedata.category(sign)[0] not in "CM")
        seen = "".join(LOOKALIKES.get(sign, sign) for sign in kept)
        self[code] = seen if not seen or OF_MARKS.fullmatch(seen) else chr(code)
        return self[code]


_SEEN = _Seen()


def disarm(text: str) -> str:
    """Return foreign text with the same words, but without anything that reads or looks like a mark of the runtime."""
    if not text.isascii() and (seen := text.translate(_SEEN)) != text and holds_any(seen.casefold(), NEEDED):
        text = LINES.sub(lambda line: _see_through(line[0]), text)
    folded = text.casefold()
    return MARKS.sub(_disarm, text) if holds_any(folded, SIGNS) and holds_any(folded, NEEDED) else text


def _see_through(line: str) -> str:
    """Return the line in plain signs if it holds a mark in others, else unchanged."""
    seen = line.translate(_SEEN)
    return seen if seen != line and len(MARKS.findall(seen)) > len(MARKS.findall(line)) else line


def _disarm(mark: re.Match[str]) -> str:
    """Return the text that takes the place of an imitated mark."""
    match mark.lastgroup:
        case "colon":
            return f"{mark['colon']},"
        case "label":
            return f"({mark['label']})"
        case "bracket":
            return "("
        case "rule":
            return ""
        case _:
            return "…"


def fenced(text: str) -> str:
    """Return foreign text to be put behind a label: disarmed, with a bar before each line but the first."""
    return "\n| ".join(map(disarm, text.splitlines()))
