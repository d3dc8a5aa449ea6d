"""Directives: what a person tells the agent to do or to leave from now on, such as bans, formats and preferences.

A sentence is one by what it does: it addresses the agent, and it binds work that is still to come. Talk between people
is full of "never", "don't" and "always" that bind nobody, so a directive begins a sentence or a clause of its own. That
a directive is missed costs less than that talk becomes a rule: an unmarked sentence is still a person's sentence.
English, German and Chinese are read, the languages of the pages and of the dialogs that the rules were tried on.
"""

import re

from dominds.redaction import holds_any
from remediation.text.reading import asks

# Where a clause of its own may begin, behind a label such as "Constraint:" too.
_CLAUSE = re.compile(r"(?:[,;:.!(–—]\s*|\s-+\s|\bbut\s)(?:(?:and|but|so|or|also|then|please)\s)*")
# After "don't" or "never" these tell of the speaker, or are idioms.
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
# Of one clause. Who begins with "I", "it" or "this" tells of something and directs nobody.
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
    # Of things that must be so, what is said of all or to somebody binds; the rest tells.
    r"|(?:^|[，。；：！,;:!\s]|(?:所有|每|任何)\w{1,12}|你|你们|您|都|均|一律|请)必须"
)
_ORDER = re.compile(r"(?:^|[.:!] )STOP \w")  # "###STOP###" ends a recorded dialog
# What the two long patterns cannot be without. Looking for these takes a tenth of their time.
IN_FORBIDS = (
    *"not n't n’t never avoid stop refrain leave must only forbidden prohibited off-limits".split(),
    *("no ", "hands off", "off limits"),
)
IN_GERMAN = (*"niemals keinesfalls keinen verboten untersagt arf ürf bitte finger".split(), "ab jetzt", "ab sofort")


def is_directive(text: str) -> bool:
    """Check one sentence of a person's. Who asks or tells directs nobody."""
    if asks(text):
        return False
    if ("STOP" in text and _ORDER.search(text)) or (not text.isascii() and _CHINESE.search(text)):
        return True
    lowered = text.lower()  # patterns that ignore case take several times as long
    if _BINDS.search(lowered) or (holds_any(lowered, IN_GERMAN) and GERMAN.search(lowered)):
        return True
    return holds_any(lowered, IN_FORBIDS) and any(map(FORBIDS.match, _CLAUSE.split(lowered)))
