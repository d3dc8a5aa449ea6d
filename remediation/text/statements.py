"""Statements: the sentences of a dialog, and how much each would be missed by whoever goes on with the work.

The work is linear in the text: statements are of bounded length, and of what a tool printed only so much is read.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from dominds.weighted_cache import Bounded
from remediation.text.exact_tokens import Tokens, shape_of, tokens_in, worth_of_values
from remediation.text.secret_masking import redact

RoleText = tuple[str, str]  # "user", "assistant", "system" or "tool"; and what it said

LONGEST_STATEMENT = 400  # characters; a longer sentence is cut at a blank
MOST_CHARS = 120_000  # that are read of one text: its beginning and its end
REMEMBERED_CHARS = 20_000_000  # of texts whose statements a process remembers, the statements themselves included
SENTENCE_CHARS = 1_000  # what a remembered statement takes, in characters
TOOL_CHARS = 6_000  # the same of what a tool printed: results stand at the beginning, verdicts at the end

STRONG = 3.0  # the strength from which a rule is marked as one
WEAK = 2.5  # of "write it without recursion"
WEAK_REMARK = 0.8  # of "the parser works without recursion", which only tells
MEMORABLE_WORTH = 2.0  # of a statement that introduces itself as worth remembering
REQUEST_WORTH = 2.0  # of what a person asks for
PERSON_WORTH = 1.0  # of any sentence of a person that says something
PERSON_TRUST = 1.6  # what a person said matters more than what the agent said
TOOL_TRUST = 0.6  # what a tool printed can be had again
NARRATION = 0.35  # of "Let me look at the tests": what the agent was about to do


class Kind(IntEnum):
    """In the order of their claim on a ledger's budget."""

    RULE = 0
    FAILURE = 1
    FACT = 2


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence or line. ``order`` is its place among all, ``source`` the place of the text that it stands in."""

    role: str
    text: str
    kind: Kind
    worth: float
    strength: float  # of a rule; 0 of what is none
    tokens: Tokens
    spelled: bool  # it names a number, a day or a time in words
    order: int
    source: int


SPELLED = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|hundred|thousand|half|twice|once|"
    r"zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|monday|tuesday|wednesday|thursday|friday|saturday|sunday|"
    r"montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|today|tomorrow|tonight|heute|morgen|übermorgen|"
    r"yesterday|weekend|(?:last|next) (?:night|week|month|year|spring|summer|autumn|fall|winter)|(?:days?|weeks?|months?|years?) ago|"
    r"gestern|wochenende|(?:letzte|nächste)[nrs]? (?:nacht|woche|monat|jahr)|vor \w+ (?:tagen|wochen|monaten|jahren))\b",
    re.I,
)

# "don't know" and "it doesn't" report; "don't push" instructs.
STRONG_RULE = re.compile(
    r"\bnever\b(?! mind)|\bmust(?: not|n[’']t)\b|\bunder no circumstances\b|\b(?:forbidden|prohibited|off[- ]limits|hands off)\b"
    r"|\bno(?:t| longer) allowed\b|(?-i:\bSTOP\b)|(?<!\bI )(?<!\bwe )(?<!\bthey )\b(?:do not|don[’']t)\b"
    r"|(?:^|[,;:.!(–—-]\s*|\b(?:please|and|but|so|also|then|should|must|always|to) )(?:stop|avoid|refrain from)\b"
    r"|\b(?:no|zero) \w+(?: \w+)? (?:before|until|after|between|without|on|this week|today|tonight|tomorrow)\b|\bnot (?:before|until)\b"
    r"|\b(?:nie|niemals|keinesfalls|verboten|untersagt|unterlass\w*|auf keinen fall|(?:darf|darfst|dürfen) (?:\w+ ){0,4}(?:nichts?|kein\w*)|"
    r"bitte (?:\w+ )?(?:nicht|kein\w*)|finger (?:weg|von)|(?:kein\w* .{1,40}|nichts) (?:ge)?(?:änder|fass|anfass|lösch|schick|"
    r"send|verwend|benutz|nenn|versprech|erwähn)\w*)\b|\byou should(?: not|n[’']t)\b|\bleave .{1,40} alone\b"
    r"|\b(?:jamais|interdit\w*|il ne faut (?:pas|plus)|nunca|jamás|prohibid\w+|proibid\w+|non (?:devi|dovete|si deve)|vietato)\b"
    r"|\bne pas \w+(?:er|ir|re)\b|\b(?:ne |n[’'])\w+ez (?:pas|plus|rien)\b"
    r"|\bno (?:se (?:puede|debe)n?|debes|debemos|hay que)\b|\bbajo ning[uú]n\w* \w+|\bnão (?:pode|deve|se pode|se deve)\w*\b"
    r"|(?:^|[.,;:¡] ?)(?:no|não) \w+[aeo]s? (?:nada|nunca|el|la|los|las|o|a|os|as|n[oa]s?)\b|(?:^|[.,;:] ?)ne \w+e pas\b"
    r"|\b(?:нельзя|запрещ\w+|ни в коем случае|никогда|не (?:надо|смей\w*|\w+[ауя]й(?:те)?|\w+ь?те))\b"
    r"|不要|不得(?!不)|不准|不许|不允许|禁止|严禁|切勿|请勿|千万别|别[再动改删用碰]|しないで|てはいけ|てはだめ|ないでください|ないこと"
    r"|하지 ?마|지 마세요|금지|안 됩니다|ممنوع|يمنع|لا يجوز|لا يسمح|إياك",
    re.I,
)  # fmt: skip
WEAK_RULE = re.compile(
    r"\b(should(?: not|n[’']t)|may not|cannot|can[’']t|avoid|without|only|always|must|not to|instead of|except|unless|not|"
    r"nicht|kein\w*|nur|immer|muss|müssen|ohne|solo|siempre|sin|toujours|sans|seulement|"
    r"leave .{1,40} alone|keep .{1,30} (?:private|secret|unchanged))\b|^no (?!problem|idea|worries|errors?|issues?|thanks)[a-z]"
    r"|必须|只能|不能|不可|一定要|务必|だけ|必ず|\b(?:только|всегда|должн\w+|обязательно)\b",
    re.I,
)
REPORTS = re.compile(
    r"\b(I|we|they|it|he|she|you) (?:really )?(don[’']t|do not|cannot|can[’']t|never) (?:really )?"
    r"(know|knew|think|understand|see|saw|remember|have|had|need|mind|care|believe|expect|find|tell|want to|got|get)\b"
    r"|\bit never\b|\bwas never\b|\bhas never\b|\bnever (?:came|reached|got|worked|happened|runs?|ran|reaches)\b",
    re.I,
)
REMARK = re.compile(
    r"(?:the|this|that|these|those|an?|one|another|some|I|we|he|she|it|they|there|our|my|his|her|its|their)\b", re.I
)
FAILURE = re.compile(
    r"\b(errors?|err|fail(?:ed|s|ure|ures|ing)?|exception|traceback|fatal|panic(?:ked)?|crash(?:ed|es)?|refused|denied|"
    r"time(?:d|s)? out|unreachable|out of memory|oom|segfault|rejected|aborted|broken|broke|breaks|corrupt(?:ed)?|not found|"
    r"does(?: not|n[’']t) (?:work|help|exist)|did(?: not|n[’']t) (?:work|help)|rolled back|regression|deadlock\w*|leak(?:s|ed)?|lost|"
    r"wrong|bug|died|hangs?|hung|stuck|froze|freezes|no luck|no (?:difference|effect)|stopped working|won[’']t (?:start|work|load|open)|"
    r"exit (?:status|code) [1-9]\d*|fehler\w*|fehlgeschlagen|gescheitert|abgelehnt|kaputt|abgebrochen|abgestürzt|hängt|vergeblich|"
    r"(?:funktioniert|klappt|geht|startet) (?:\w+ )?nicht|nichts gebracht|"
    r"erreurs?|échec|échoué\w*|planté\w*|bloqu[eé]\w*|ne (?:marche|fonctionne|répond|démarre) (?:pas|plus)|falló|fallo|falla|cuelga|cayó|"
    r"no (?:funcion|arranc|sirv)\w*|caiu|trava|falhou|não funcion\w*|erros?|ошибк\w+|упал[аои]?|падает|\w*завис\w+|сбо[йи]\w*|слома\w+|"
    r"крашит\w*|не (?:работа\w+|запуска\w+|помог\w+|удал\w+|открыва\w+))\b"
    r"|\b\w{1,60}(?:Error|Exception|Timeout)\b|[✗❌]|错误|报错|出错|失败|异常|崩溃|中断|卡死|卡住|超时|没有?用|失敗|異常|エラー|固ま"
    r"|落ち(?:た|ました)|動(?:かない|きません)|いきません|실패|오류|에러|멈[춥췄]|خطأ|فشل|تعطل|لا يعمل",
    re.I,
)
NO_FAILURE = re.compile(
    r"\b(no|zero|0|without(?: any)?) (errors?|failures?|failed)\b|\b(errors?|failures?|failed)\s?[:=]\s?0\b", re.I
)
MEMORABLE = re.compile(
    r"\b(remember|note that|important|decided?|decision|agreed|prefers?|deadline|due|owner|owned by|called|named|codename|"
    r"nicknamed|birthday|lives? in|allergic|favou?rite|assigned to|responsible|approved|chose|choose|will use|switch(?:ed)? to|"
    r"root cause|cause|because|the plan is|goal|budget|located|stored (?:in|at|under)|runs? on|depends on|instead|turned out|"
    r"turns out|means that|rule[sd]? out|not a fix|the fix|fixed|confirmed|owed|remains|blocked|waiting for|next step|until|"
    r"wichtig|entschieden|entscheidung|vereinbart|beschlossen|weil|ursache|bleibt|stattdessen|zuständig|frist|bis|"
    r"settled on|going with|went with|opted|geeinigt|porque|decid\w+|acord\w+|nos quedamos|ficamos com|combinamos|"
    r"parce que|finalement|retenu|convenu|решили|решено|договорились|остановились на|потому что|из-за|причин\w+|важно)\b"
    r"|décidé|因为|决定|重要|记住|原因|根因|选了|定了|改用|なので|決定|決ま|ことにし|결정|정했|때문|قرر|اخترنا|اتفق|لأن",
    re.I,
)
REQUEST = re.compile(
    r"\b(please|(?:could|can|would) (?:you|someone|somebody|anybody)|I(?:[’']d)? (?:want|need|like|would like|expect|prefer|appreciate)|"
    r"we (?:want|need|should|have to)|"
    r"make sure|needs? to|has to|have to|let[’']s|later|afterwards|also|careful|must|should|write (?:that|it) down|"
    r"bitte|ich (?:will|möchte|brauche|hätte gern)|wir (?:brauchen|wollen|sollten|müssen)|soll(?:te|en)?|muss|kannst du|"
    r"können sie|könnten sie|später|danach|außerdem|"
    r"als nächstes|quiero|necesito|por favor|puedes|podrías?|hay que|você pode|poderia|preciso|precisamos|"
    r"je veux|j[’']ai besoin|s[’']il (?:te|vous) pla[iî]t|peux-tu|pouvez-vous|pourr(?:ais|iez)|il faut|"
    r"пожалуйста|нужно|надо|хочу|мо(?:жешь|жете|гли бы)|(?:посмотри|пришли|проверь|сделай|добавь)(?:те)?)\b"
    r"|^(?:(?:ok(?:ay)?|now|next|then|so),? )?(?:add|build|change|check|compare|convert|create|delete|explain|find|fix|give|have a look|list|"
    r"look|make|move|put|remove|rename|replace|run|send|set|show|switch|test|tell|try|update|use|write)\b"
    r"|请|需要|帮我|帮忙|麻烦|给我|接下来|ください|お願い|もらえ|いただけ|ほしい|주세요|부탁|هل يمكنك|من فضلك|أريد|يجب",
    re.I,
)
NARRATES = re.compile(
    r"(?:(?:ok(?:ay)?|good|great|sure|right|now|first|next|then|so|und|nun|jetzt)[,.:]? )?"
    r"(?:let me|let us|let[’']s|I[’']ll|I will|I am going to|I[’']m going to|now I|looking at|checking|reading|running|"
    r"starting|preparing|ich (?:schaue|sehe|prüfe|lese|werde)|lass mich)\b",
    re.I,
)
INJECTION = re.compile(
    r"\b(ignore|disregard|forget|override|bypass)\b.{0,40}\b(instructions?|rules?|prompts?|above|previous|prior|earlier)\b"
    r"|\bapprove (?:all|every)|\bsystem prompt\b|\byou are now\b|\bnew instructions?\b|\bact as\b|\bdo anything now\b",
    re.I,
)
STATEMENT_END = re.compile(r"(?<=[.!?;])[\"'”’)\]]{0,2}\s+(?=[\"'“(\[„]?[^\W_]|[`*-])|(?<=[。！？；])")
NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|z\.B|d\.h|bzw|ca|etc|vs|approx|no|nr|dr|mr|mrs|ms|st|fig|bspw|inkl|max|min)|\b\d{1,2}|\b[A-Z])\.$",
    re.I,
)
BULLET = re.compile(r"^(?:[-*•>#]+|\d{1,3}[.)])\s+")
BLANKS = re.compile(r"\s+")
# Encoded data, over which the patterns above would take quadratic time.
LONG_WORD = re.compile(r"([!-~]{60})[!-~]{140,}")
FENCE = re.compile(r"^\s*(?:```|~~~)")

# The beginning of a log line that reports nothing unusual, and how long something took: they would crowd out the facts.
ROUTINE = re.compile(
    r"\[?(?:\d{4}-\d\d-\d\d[T ]?)?(?:\d\d:\d\d(?::\d\d)?[.,\d]{0,10}Z?\]?)? ?\[?(?:TRACE|DEBUG|INFO)\b\]?:? ?"
)
DURATION = re.compile(r"(?:\bin )?\b\d{1,12}(?:\.\d{1,6})? ?(?:ns|us|µs|ms|s|sec|seconds)\b")

# Where a line of a program gives itself away. Words that prose begins with as well ask for more signs of a program.
LOCATION = re.compile(r"^(?:[\w./\\-]{1,200}[:-]\d{1,6}[:-]\s?|\s{0,8}\d{1,6}\t|[+>-] {0,12}(?=[a-z@\"#]))")
CODE = re.compile(
    r"(?:async def|def|class|fn|func|function|impl|struct|interface|enum|namespace|typedef)\s+[\w<]"
    r"|(?:except|catch|elif|else if|try|finally|else|do|switch|case)\b[^.?!]*[:{]$"
    r"|[}\])]+ *(?:catch|else|finally|,|;)"
    r"|(?:if|for|while|with|match|unless)\b[^.?!]*[:{]$"
    r"|(?:if|for|while|switch|catch)\s*\(.*\)\s*\{?$"
    r"|(?:raise|throw|return|yield|await|assert|del|new|delete|goto|lambda)\b.*(?:[(){}=;]|\bErr\b|\bError\b|\bException\b|\bNone\b|\bnull\b)"
    r"|(?:from [\w.]+ import|import [\w.{*]+|#include|using |package |require\(|export |public |private |protected |static )"
    r"|(?:const|let|var|final|auto|int|bool|string|void|char|float|double)\s+[\w<>*\[\]]+\s*[=;({:]"
    r"|@\w[\w.]*(?:\(.*\))?$"
    r"|[\w.\[\]\"']+\s*[-+*/|&%:]?=\s*(?:[\w.]+\(|\[|\{|lambda\b|not\b|await\b|new\b|f?[\"'].*[\"']$|[\w.]+\[|self\.|None$|True$|False$)"
    r"|(?:[\w]+\.)*[\w]+\((?:.*\)[;,:]?|[^)]*)$"
    r"|(?:raise|return|throw|yield) [\w.]+$|[\w.]+(?:: [\w\[\], |.]+)? = \S.*$|[\w.]+=[\w.]+(?:\([^)]*\))?,"
    r"|f?[\"'].*[\"'](?:,|:|\s*%|\.format\()|[\w.\[\]'\", ]+\)\)*(?: as \w+)?:?,?$|[A-Z]\w+(?:Error|Exception),$"
    r"|self\.\w+|this\.\w+|\"\"\"|'''"
    r"|.*(?:[{};]|\):|\) ->.*:|=>\s*\{?|&&|\|\||==|!=|:=|->)$"
    r"|.*\b(?:except|catch)\b.{1,60}\b(?:as|e|err|error|ex)\b\)?\s*[:{]"
    r"|.*\berr != nil\b|.*\blog(?:ger|ging)?\.\w+\("
)  # fmt: skip
VALUE = re.compile(r"[A-Z][A-Z0-9_]+\s?=\s?[^\s({\[]+$")  # a setting is a fact, wherever it stands


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A statement as it stands alone: what does not depend on the texts beside it."""

    text: str
    shape: str
    kind: Kind
    worth: float  # of its words, without the values in it
    strength: float
    share: float  # of its worth that counts, by who said it
    values: tuple[tuple[str, str, float], ...]  # tokens, their shapes and their worth
    tokens: Tokens
    spelled: bool


# A dialog's texts stay the same from one rewrite to the next, and one rewrite asks for them up to three times.
_read = Bounded[tuple[_Sentence, ...]](REMEMBERED_CHARS)


def statements_of(texts: Sequence[RoleText]) -> list[Statement]:
    """All statements of ``texts`` that say something, in their order, without secrets, source code and injected orders."""
    results = [
        (source, role, sentence) for source, (role, text) in enumerate(texts) for sentence in _sentences(role, text)
    ]
    shapes = Counter(sentence.shape for _, _, sentence in results)
    alike = Counter({token: shape for _, _, sentence in results for token, shape, _ in sentence.values}.values())
    return [
        Statement(
            role,
            sentence.text,
            sentence.kind,
            (sentence.worth + worth_of_values(sentence.values, alike))
            * shapes[sentence.shape] ** -0.5
            * sentence.share,
            sentence.strength,
            sentence.tokens,
            sentence.spelled,
            order,
            source,
        )
        for order, (source, role, sentence) in enumerate(results)
    ]


def _sentences(role: str, text: str) -> tuple[_Sentence, ...]:
    known = _read.get((role, text))
    if known is None:
        known = tuple(
            _judged(role, statement)
            for statement in sentences_of(text, role)
            if role != "tool" or not INJECTION.search(statement)
        )
        _read.put((role, text), known, len(text) + SENTENCE_CHARS * len(known))
    return known


def sentences_of(text: str, role: str = "user") -> Iterator[str]:
    """The sentences and lines of what somebody said, without secrets and without source code."""
    for line in redact(_excerpt(text, TOOL_CHARS if role == "tool" else MOST_CHARS)).splitlines():
        if not line.strip():
            continue
        yield from _sentences_in(line, role)


def without_fences(text: str) -> str:
    """``text`` without the fenced blocks in it."""
    kept, inside = [], False
    for line in text.splitlines():
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def _excerpt(text: str, most: int) -> str:
    """The beginning and the end of a text that is too long to read whole; fenced code apart."""
    if len(text) > most:
        half = most // 2
        text = f"{text[:half].rpartition(' ')[0] or text[:half]}\n{text[-half:].partition(' ')[2] or text[-half:]}"
    return without_fences(text) if "```" in text or "~~~" in text else text


def without_routine(line: str) -> str:
    """A log line without clock time, level and durations where it reports nothing unusual."""
    pattern_match = ROUTINE.match(line)
    return DURATION.sub("", line[pattern_match.end() :]) if pattern_match and pattern_match.end() else line


def _sentences_in(line: str, role: str) -> Iterator[str]:
    if role == "tool":
        line = without_routine(line.strip())
    line = LONG_WORD.sub(r"\1…", line.strip())
    if role == "tool" and line[:1] in "{[" and '": ' in line:
        line = line.replace('"', "")  # JSON on one line is what a tool knows, and no program
    elif is_code_line(line, role):
        return
    held = ""
    for part in STATEMENT_END.split(line):
        held = f"{held} {part.strip()}".strip()
        if NO_END.search(held):
            continue
        yield from _bounded(held)
        held = ""
    yield from _bounded(held)


def _bounded(sentence: str) -> Iterator[str]:
    sentence = BLANKS.sub(" ", BULLET.sub("", sentence)).strip()
    while len(sentence) > LONGEST_STATEMENT:
        cut = sentence.rfind(" ", LONGEST_STATEMENT // 2, LONGEST_STATEMENT)
        cut = LONGEST_STATEMENT if cut < 0 else cut
        yield sentence[:cut]
        sentence = sentence[cut:].strip()
    if len(sentence) > 2 or (len(sentence) == 2 and not sentence.isascii()):
        yield sentence


def is_code_line(line: str, role: str = "tool") -> bool:
    """Whether a line is a program's. What people and agents write is prose unless it is code beyond doubt."""
    bare = LOCATION.sub("", line.strip(), count=1).strip() if role == "tool" else line.strip()
    if not bare or VALUE.match(bare):
        return False
    if not CODE.match(bare):
        return False
    return role == "tool" or not _reads_as_prose(bare)


def _reads_as_prose(line: str) -> bool:
    """Several plain words in a row, or a sentence's end: a person may write about ``x = f(y)``."""
    if line.endswith((".", "?", "!", "。")) or BULLET.match(line):
        return True
    words = line.split()
    return (
        sum(word.strip("`'\",.;:()").isalpha() for word in words) >= max(3, 0.6 * len(words))
        and not line.endswith(("{", "}", ";", "):", ") {"))
        and not re.match(r"(?:async def|def|class|except|raise|return|import|from|elif)\b", line)
    )


def _judged(role: str, text: str) -> _Sentence:
    strength, failure = rule_strength(role, text), is_failure(text)
    share = {"user": PERSON_TRUST, "system": PERSON_TRUST, "tool": TOOL_TRUST}.get(role, 1.0)
    tokens, spelled = tokens_in(text), bool(SPELLED.search(text))
    values = tuple((token, shape_of(token), worth) for token, worth in tokens.worths)
    return _Sentence(
        text=text,
        shape=shape_of(text),
        kind=Kind.RULE if strength >= STRONG else Kind.FAILURE if failure and not strength else Kind.FACT,
        worth=_worth_of_words(role, text, strength, failure, spelled),
        strength=strength,
        share=share * NARRATION if role == "assistant" and NARRATES.match(text) else share,
        values=values,
        tokens=tokens,
        spelled=spelled,
    )


def _worth_of_words(role: str, text: str, strength: float, failure: bool, spelled: bool) -> float:
    """What the words are worth, the values in them apart."""
    if role == "tool":
        return 2.0 * failure
    worth = strength + 2.0 * failure + MEMORABLE_WORTH * bool(MEMORABLE.search(text)) + spelled
    if role == "user":
        worth += PERSON_WORTH * (len(text) > 20 or not text.isascii()) + REQUEST_WORTH * bool(REQUEST.search(text))
    return worth


def rule_strength(role: str, text: str) -> float:
    """0 if ``text`` is no rule. A model's own prose instructs nobody unless it says so strongly."""
    if role == "tool" or text.endswith(("?", "？")):
        return 0.0
    if STRONG_RULE.search(text) and not REPORTS.search(text):
        return 2 * STRONG * (0.75 if role == "assistant" else 1.0)
    if role == "assistant" or not WEAK_RULE.search(text):
        return 0.0
    return WEAK_REMARK if REMARK.match(text) else WEAK


def is_failure(text: str) -> bool:
    return bool(FAILURE.search(text)) and not NO_FAILURE.search(text)
