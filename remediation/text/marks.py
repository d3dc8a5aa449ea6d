"""The runtime's own marks, and foreign text that cannot be read as one of them.

Accounts, ledgers, packages and recalled passages say by marks, such as "12 person:" or "[7 user]", who said what and
when. All else in them was written by people, agents, tools and files. It passes ``disarm`` first, so that no nonce is
needed, which would change the beginning of each request.
"""

import re

from dominds.redaction import holds_any

BY_RULE = "(Quoted by rule; read_archive has the rest.)"
KEY_FACTS = "Key facts from messages that are no longer shown (rules still hold):"
RULE = "Rule: "
# Who speaks, by role and as the marks have it.
SPEAKERS = {"user": "person", "assistant": "agent", "system": "instructions"}
ROLES = {speaker: role for role, speaker in SPEAKERS.items()}

MARKS = re.compile(
    # Of turns and speakers, as accounts, ledgers, recalled passages and requests to a summariser have them.
    r"(?P<colon>\b\d{1,9}(?:-\d{1,9})?\s{1,4}(?:person|agent|called|instructions|tool)):"
    r"|[\[［](?P<label>(?:turn )?\d{1,9}\s{1,4}[^\W\d][\w ,/-]{0,19}|turn \d{1,9})[\]］]"
    r"|(?P<bracket>[\[［](?:(?=(?:turn )?\d{1,9}\s{1,4}[^\W\d]|turn \d)"
    # Notices in place of what is left out.
    r"|(?=(?:Result of|Omitted|Summary of|Cut, since|Recalled by|… [\d,]+ (?:lines|characters)|I answered this"
    r"|Left out of|Earlier messages|The beginning of this)\b)))"
    r"|(?P<rule>(?:^|(?<=[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]))(?:[ \t>|*•-]*\brule:)+[ \t]*)"
    r"|(?P<notice>\(Quoted by rule;|Key facts from messages that are no longer shown|Previous \d{1,9} turns?(?=: \d)"
    r"|Drafted by the runtime|Resuming from overflow:|Continue task:|– begun with:)",
    re.I | re.M,
)


# Each mark holds one of these. To look for them takes a tenth of the pattern's time.
NEEDED = (
    *("[", "［", "person:", "agent:", "called:", "instructions:", "tool:", "rule:", "by rule;", "key facts from"),
    *("turn:", "turns:", "by the runtime", "overflow:", "task:", "with:"),
)


def disarm(text: str) -> str:
    """Return foreign text with the same words, of which nothing reads as a mark of the runtime's."""
    return MARKS.sub(_disarm, text) if holds_any(text.lower(), NEEDED) else text


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
