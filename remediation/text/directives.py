"""Directives: sentences that tell the agent what to do or not to do from now on, such as bans, formats and preferences.

A directive addresses the agent and binds later work. Talk between people is full of "never", "don't" and "always" that
bind nobody, so these words count only where they begin a sentence or a clause. In doubt a sentence is no directive: a
missed one is still kept as a person's sentence, but talk that is taken for a rule misleads the agent. English, German
and Chinese are read, the languages of the pages and of the dialogs on which the patterns were tried.
"""

import re

from dominds.redaction import holds_any
from remediation.text.reading import asks

# What stands between two clauses, or between a label such as "Constraint:" and its clause.
_CLAUSE = re.compile(r"(?:[,;:.!(–—]\s*|\s-+\s|\bbut\s)(?:(?:and|but|so|or|also|then|please)\s)*")
# After "don't" or "never" these words tell something about the speaker or belong to an idiom.
_IDIOM = (
    r"(?:forget|worry|mind|be|let|get me|hesitate|feel|know|knew|think|thought|believe|see|saw|seen|like|want|need"
    r"|have|had|care|remember|understand|expect|miss|you|they|we|i|even|really|say|give up|quit|lose|ever|in|a|the|is"
    r"|was|got|been|came|heard|\w+ed|\w+ing)\b"
)
_VERBS = (
    r"(?:add|answer|ask|call|check|commit|deploy|format|give|include|keep(?! it\b| \w+ing\b)|make|name|open|push|put"
    r"|reply|report|respond|run|send|show|speak|stick|store|test|use|write)"
)
_ANSWERS = (
    r"(?:answers?|repl(?:y|ies)|responses?|explanations?|outputs?|summar(?:y|ies)|wording|tone|clocks|times"
    r"|timestamps|dates|units|measurements)"
)
_SCOPE = r"\b(?:always|all|every|each|only|never|unless|whenever|before|until|from now on|in future|at all times)\b"
# These read one clause. One that begins with "I", "it" or "this" tells something and directs nobody.
_TELLS = r"(?!(?:i|we|he|she|it|they|there|this|that|which|if|in (?:either|my|some))\b)"
FORBIDS = re.compile(
    rf"(?:please |also |and |so )*(?:do not|don[’']t|never|avoid|stop|refrain from)\s(?!{_IDIOM}|\w+-)\w"
    r"|under no circumstances\b|.*\bhands off\b|not (?:before|until)\b"
    r"|.*\bleave .{1,40} (?:alone|as (?:it is|they are))\b"
    rf"|{_TELLS}.*\b(?:you (?:must|should|may|can|are)|must)(?:n[’']t| not| never| only)\b"
    rf"|{_TELLS}.{{2,60}} must (?:always )?(?:stay|remain|be \w+(?:ed|en))\b"
    r"|.*\b(?:is|are) (?:strictly )?(?:forbidden|prohibited|off[- ]limits|not allowed|no longer allowed)\b"
    r"|(?:no|not) (?!problem|idea|worr|issue|thank|one\b|matter|way\b|need|doubt|error|luck|sure|only\b)"
    r"(?:\w+ ){1,4}(?:before|until|between|without|unless|from|outside|on|this week|today|tonight|tomorrow)\b",
)
_BINDS = re.compile(
    rf"^(?:[\w ]{{1,24}}: )?(?:(?:from now on|for \w+(?: \w+)?|in future|please|always|and|now)[,:]? )*{_VERBS}\b"
    rf".*(?:{_SCOPE}|\b{_ANSWERS}\b)"
    rf"|^(?:[\w ]{{1,24}}: )?(?:only (?!if\b|me\b|my\b|one\b|a\b|the\b|then\b|thing\b)[\w.-]+(?: [\w.-]+){{0,4}}[.!]?$"
    rf"|always {_VERBS}\b|(?:from now on|in future),? (?!i\b|we\b))"
    rf"|^(?:[\w ]{{1,24}}: )?(?:i|user)(?:[’']d| would)? (?:rather|prefers?|likes?|wants?) (?!you to\b|to\b)"
    rf".{{0,40}}\b{_ANSWERS}\b",
)
GERMAN = re.compile(
    r"\b(?:niemals|keinesfalls|auf keinen fall|unter keinen umständen|verboten|untersagt|ab (?:jetzt|sofort)"
    r"|(?<!\bich )(?<!\bwir )(?:darf|darfst|dürfen) (?!ich\b|wir\b)(?:\w+ ){0,4}(?:nichts?|kein\w*)"
    r"|bitte (?:\w+ )?(?:nicht(?! falsch\b)|kein\w*|nur|immer)|finger (?:weg|von))\b",
)
_CHINESE = re.compile(
    "(?<!我)(?<!我们)(?:不要(?!紧(?!贴))|不得(?!不)|不准|不许|不允许|禁止|严禁|切勿|请勿|千万别|绝对不能|任何时候都不能|别直接|别[再动改删用碰]|务必|从现在起|以后都)"
    # "必须" (must) binds if it is said of all things or to somebody; otherwise it tells how something is.
    r"|(?:^|[，。；：！,;:!\s]|(?:所有|每|任何)\w{1,12}|你|你们|您|都|均|一律|请)必须"
)
_ORDER = re.compile(r"(?:^|[.:!] )STOP \w")  # "###STOP###" ends a recorded dialog
# Each match of FORBIDS and of GERMAN holds one of these. To look for them takes a tenth of the patterns' time.
IN_FORBIDS = (
    *"not n't n’t never avoid stop refrain leave must only forbidden prohibited off-limits".split(),
    *("no ", "hands off", "off limits"),
)
IN_GERMAN = (*"niemals keinesfalls keinen verboten untersagt arf ürf bitte finger".split(), "ab jetzt", "ab sofort")


def is_directive(text: str) -> bool:
    """Check whether a sentence is a directive. A question is none."""
    if asks(text):
        return False
    if ("STOP" in text and _ORDER.search(text)) or (not text.isascii() and _CHINESE.search(text)):
        return True
    lowered = text.lower()  # patterns that ignore case take several times as long
    if _BINDS.search(lowered) or (holds_any(lowered, IN_GERMAN) and GERMAN.search(lowered)):
        return True
    return holds_any(lowered, IN_FORBIDS) and any(map(FORBIDS.match, _CLAUSE.split(lowered)))
