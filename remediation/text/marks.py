"""The runtime's own marks, and foreign text that cannot be read as one of them.

Accounts, ledgers, packages and recalled passages say by marks, such as "12 person:" or "[7 user]", who said what and
when. All else in them was written by people, agents, tools and files. It passes ``disarm`` first, so that no nonce is
needed, which would change the beginning of each request.
"""

import re
import unicodedata

from dominds.redaction import holds_any

BY_RULE = "(Quoted by rule; read_archive has the rest.)"
KEY_FACTS = "Key facts from messages that are no longer shown (rules still hold):"
RULE = "Rule: "
OMITTED = "[…]"
PART_END, PART_BEGIN = " …", "… "  # of a sentence that was cut into parts
CUT = " [shortened; read_archive shows the rest]"  # behind what is left of an answer
# Who speaks, by role and as the marks have it.
SPEAKERS = {"user": "person", "assistant": "agent", "system": "instructions"}
ROLES = {speaker: role for role, speaker in SPEAKERS.items()}

BLANK = r" \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"  # that end no line
MARKS = re.compile(
    # Of turns and speakers, as accounts, ledgers, recalled passages and requests to a summariser have them.
    # So would others' words for a speaker read beside them.
    r"(?P<colon>\b\d{1,9}(?:-\d{1,9})?\s{1,4}(?:person|agent|called|instructions|tool|user|human|assistant|system"
    r"|benutzer|nutzer|utilisateur|usuario|пользователь|用户|用戶|ユーザー|사용자)):"
    r"|[\[［](?P<label>(?:turn )?\d{1,9}\s{1,4}[^\W\d][\w ,/-]{0,19}|turn \d{1,9})[\]］]"
    r"|(?P<bracket>[\[［](?:(?=(?:turn )?\d{1,9}\s{1,4}[^\W\d]|turn \d)"
    # Notices in place of what is left out.
    r"|(?=(?:Result of|Omitted|Summary of|Cut, since|Recalled by|… [\d,]+ (?:lines|characters)|I answered this"
    r"|Left out of|Earlier messages|The beginning of this|The tool was not run|A person changed))))"
    rf"|(?P<rule>(?:^|(?<=[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]))(?:[{BLANK}>|*•-]*\brule:)+[{BLANK}]*)"
    r"|(?P<notice>\(Quoted by rule;|Key facts from messages that are no longer shown|Previous \d{1,9} turns?(?=: \d)"
    r"|Drafted by the runtime|Resuming from overflow:|Continue task:|– begun with:)",
    re.I | re.M,
)


# Each mark holds one of these signs or words, and then one of the parts below. To look for them takes a tenth of the
# pattern's time.
SIGNS = (":", "[", "［", "by rule;", "key facts from", "by the runtime")
NEEDED = (
    *"[ ［ person: agent: called: instructions: tool: rule: turn: turns: overflow: task: with: user: human:".split(),
    *"assistant: system: nutzer: utilisateur: usuario: ь: 户: 戶: ー: 자:".split(),
    *("by rule;", "key facts from", "by the runtime"),
)


# Letters of other alphabets that look like a mark's.
LOOKALIKES = dict(
    zip(
        "аеорсухіѕԁɡһӏαορνικτуАЕОРСТХВНКМІЅΑΒΕΗΙΚΜΝΟΡΤ【〔〚〖】〕〛〗∶︓ː",
        "aeopcyxisdghlaopviktyAEOPCTXBHKMISABEHIKMNOPT[[[[]]]]:::",
        strict=True,
    )
)
OF_MARKS = re.compile(r"[\w\s:;()\[\]-]+")  # signs that marks are made of: to look behind others takes time
LINES = re.compile(r".+")


class _Seen(dict[int, str]):
    """What a reader sees in place of a sign: its plain form, and nothing of what has no width or only adorns it."""

    def __missing__(self, code: int) -> str:
        signs = unicodedata.normalize("NFKD", chr(code))
        kept = (sign for sign in signs if sign.isspace() or unicodedata.category(sign)[0] not in "CM")
        seen = "".join(LOOKALIKES.get(sign, sign) for sign in kept)
        self[code] = seen if not seen or OF_MARKS.fullmatch(seen) else chr(code)
        return self[code]


_SEEN = _Seen()


def disarm(text: str) -> str:
    """Return foreign text with the same words, of which nothing reads as a mark of the runtime's, to the eye either."""
    if not text.isascii() and (seen := text.translate(_SEEN)) != text and holds_any(seen.casefold(), NEEDED):
        text = LINES.sub(lambda line: _see_through(line[0]), text)
    folded = text.casefold()
    return MARKS.sub(_disarm, text) if holds_any(folded, SIGNS) and holds_any(folded, NEEDED) else text


def _see_through(line: str) -> str:
    """Return the line as it is seen if a mark is disguised in it."""
    seen = line.translate(_SEEN)
    return seen if seen != line and len(MARKS.findall(seen)) > len(MARKS.findall(line)) else line


def _disarm(mark: re.Match[str]) -> str:
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
    """Return foreign text as it stands behind a label: disarmed, and each further line behind a bar."""
    return "\n| ".join(map(disarm, text.splitlines()))
