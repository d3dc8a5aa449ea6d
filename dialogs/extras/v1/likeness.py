"""Likeness of a conversation as a client sends it to one that is stored: a rule on values, linear in their length.

Clients send their history back, and not as they received it: cut at the head, with a summary in its place, with
material of their own put into the newest message, with answers trimmed or rewritten. So exchanges are compared, from
the end: the end is where a conversation goes on.
"""

import hashlib
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import orjson

from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.notices import without_notices
from dialogs.extras.v1.values import tells_value_of
from dialogs.runtime.outcomes import generation_of_call

DISTINCT_CHARS = 80  # of agreeing text, without white space: less may well have been said in two conversations
OCCURRENCES = 8  # of one text in another that are looked at
MOST_BEYOND = 8  # exchanges that a client puts after those that are stored
# Words by which a summary is asked for that is to take the place of what was said, one of each, as programs were seen
# to write them. Other languages go by structure alone.
_WORDS = {
    "English": (
        "summar|compact|condens|snapshot|hand-?off|continuing",
        r"conversation|session|context|\bchat\b|\babove\b|so far|scratchpad",
    ),
    "German": ("zusammen ?fass|fasse?n? .{1,80}zusammen", "gespräch|unterhaltung|sitzung|diskussion|verlauf|bisher"),
    "Chinese": ("总结|總結|摘要|概括|概述|压缩", "对话|對話|会话|聊天|上下文|以上|讨论"),
    "Japanese": ("要約|まとめ|圧縮", "会話|セッション|これまで|上記|やり取り|チャット"),
    "Korean": ("요약|정리해", "대화|세션|지금까지|채팅"),
    "Russian": (
        r"резюм|суммир|обобщ|сводк|кратк\w+ (?:содержание|пересказ)|подве\w+ итог|перескаж",
        r"разговор|бесед|диалог|сесси|\bчат|переписк|контекст|сказанн",
    ),
    "Ukrainian": ("підсум|стисл|узагальн", "розмов|бесід|діалог|сесі"),
    "French": ("résum|récapitul|synth[èé]", r"discussion|échange|entretien|ci-dessus|jusqu['’](?:ici|à)"),
    "Spanish": (
        r"resumen|resumir|resúme|sintetiz|\bresum[ae] (?:la|el|esta|este|toda|todo|nuestra)\b",
        "conversaci|charla|sesión|hasta ahora",
    ),
    "Portuguese": ("resumo|resumir|resuma|sintetiz", r"conversa\b|conversação|sessão|até agora|bate-papo"),
    "Italian": ("riassum|riassunto|riepilog|sintesi|sintetizz", "conversazione|discussione|sessione|finora"),
    "Polish": ("podsum|streszcz|streść", "rozmow|sesj|dotychczas"),
    "Dutch": ("samenvat|vat .{1,80} samen", "gesprek|sessie|tot nu toe"),
    "Turkish": ("özet", "konuşma|sohbet|oturum|şimdiye kadar"),
    "Vietnamese": ("tóm tắt", "trò chuyện|hội thoại|cho đến nay"),
    "Arabic": ("لخص|لخّص|ملخص|تلخيص", "محادثة|حوار|جلسة"),
    "Hindi": ("सारांश|संक्षेप", "बातचीत|वार्तालाप|अब तक"),
}
_SUMMARY, _OF_TALK = (re.compile("|".join(words), re.I) for words in zip(*_WORDS.values(), strict=True))
_TAG = re.compile(r"<[^<>]{1,40}>")
_FRAME = re.compile(r"<([a-z][\w-]{0,40})[^<>]{0,40}>(.*)</\1>", re.DOTALL)  # the outermost one of its name
_THOUGHTS = {
    f"</{name}>": re.compile(rf"<{name}\b[^<>]*>.*?</{name}>", re.DOTALL)
    for name in ("details", "think", "thinking", "reasoning")
}
_REMINDERS = {  # Claude Code; Gemini CLI, which lists the folder's files anew when it resumes a session
    f"</{name}>": re.compile(rf"<{name}>.*?</{name}>", re.DOTALL) for name in ("system-reminder", "session_context")
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """A user's words, and all that was answered up to their next words, with single spaces.

    The answer is kept without any spaces, too, since clients trim and join differently. ``final`` is the last message
    of it alone, ``begin`` the position of the first message, and ``calls`` the ids of calls that were made here.
    """

    message: str
    answer: str
    answered: str
    begin: int = field(default=0, compare=False)
    final: str = field(default="", compare=False)
    calls: frozenset[str] = field(default=frozenset(), compare=False)


def exchanges_of(messages: Iterable[ClientMessage]) -> list[Exchange]:
    """Messages in a row of one side are one. Tool results do not count: clients shorten them."""
    results: list[Exchange] = []
    texts: list[str] = []
    answer: list[str] = []
    calls: list[str] = []
    begin = -1
    for message in messages:
        match message.role:
            case "user" if text := without_reminders(message.spoken):
                if answer:
                    results.append(_exchange(texts, answer, begin, calls))
                    texts, answer, begin, calls = [], [], -1, []
                texts.append(text)
            case "assistant" if text := without_additions(message.text).strip():
                answer.append(text)
        calls += [call.id for call in message.calls if generation_of_call(call.id)]
        begin = message.position if begin < 0 else begin
    return [*results, _exchange(texts, answer, begin, calls)] if texts or answer else results


def _exchange(texts: list[str], answer: list[str], begin: int, calls: list[str]) -> Exchange:
    words = " ".join(answer).split()
    final = "".join(answer[-1].split() if answer else ())
    return Exchange(" ".join(texts), " ".join(words), "".join(words), begin, final, frozenset(calls))


def without_additions(answer: str) -> str:
    """An answer without notices, and without the reasoning that clients fold into it as elements of its own."""
    return _without(_THOUGHTS, without_notices(answer))


def without_reminders(spoken: str) -> str:
    """A user's words with single spaces, without what programs say beside them, and not always as before: the date, the
    files in a folder. Where there is nothing else it stays."""
    text = " ".join(spoken.split())
    without = _without(_REMINDERS, text)
    return text if without == text else " ".join(without.split()) or text


def _without(elements: Mapping[str, re.Pattern[str]], text: str) -> str:
    if "</" not in text:
        return text
    for closing, element in elements.items():
        end = text.rfind(closing) + len(closing)
        if end >= len(closing):  # up to there each one that opens closes, so none is looked through in vain
            text = element.sub("", text[:end]) + text[end:]
    return text


# -- how to find it again ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Keys:
    """Digests by which a dialog is found: of the first and the newest thing that its user said, and of all of them."""

    first: str
    newest: str
    whole: str


def keys_of(exchanges: Sequence[Exchange]) -> Keys:
    messages = [exchange.message for exchange in exchanges]
    return Keys(digest(messages[:1]), digest(messages[-1:]), digest(messages))


def answer_key(answer: str) -> str:
    """The same for one answer, or nothing where it has no text."""
    text = "".join(without_additions(answer).split())
    return digest([text]) if text else ""


def digest(texts: Sequence[str]) -> str:
    return hashlib.sha256(orjson.dumps(texts)).hexdigest()


# -- how alike they are ------------------------------------------------------------------------------------------------


class Agreement(IntEnum):
    """The agreement of two exchanges. ``LIKE``: one side's words are the same, or a call, whose id no other has;
    ``MESSAGE``: only the user's words are."""

    NONE = 0
    MESSAGE = 1
    LIKE = 2
    SAME = 3


@dataclass(frozen=True, slots=True)
class Fit:
    """The fit of a history to a dialog at whose head it ends, best last in order; ``beyond`` exchanges of it come
    after that.

    ``summed_up``: it holds the summary that was asked for last, in the place of what is stored.
    """

    exact: bool
    same: int
    like: int
    beyond: int = 0
    summed_up: bool = False

    @property
    def rank(self) -> tuple[int, int, int]:
        return -self.beyond, self.same, self.like


def agreement(exchange: Exchange, stored: Exchange) -> Agreement:
    if exchange.message == stored.message:
        if exchange.answered == stored.answered or tells_value_of(exchange.answer, stored.answer):
            return Agreement.SAME
        is_like = exchange.calls & stored.calls or _are_alike(exchange, stored)
        return Agreement.LIKE if is_like else Agreement.MESSAGE
    if exchange.calls & stored.calls:
        return Agreement.LIKE
    is_answer = exchange.answered and exchange.answered in (stored.answered, stored.final)
    if is_answer and _is_part(exchange.message, stored.message):
        return Agreement.LIKE
    return Agreement.NONE


def _are_alike(exchange: Exchange, stored: Exchange) -> bool:
    """Check whether one answer is the other one cut, or has most of its words."""
    half = (min(len(exchange.answered), len(stored.answered)) + 1) // 2
    if not half or exchange.answered[:half] == stored.answered[:half]:
        return half > 0
    one, other = set(exchange.answer.split()), set(stored.answer.split())
    return 2 * len(one & other) >= min(len(one), len(other))


def _is_part(one: str, other: str) -> bool:
    """Check whether one of the texts stands in the other, word for word."""
    short, long = sorted((one, other), key=len)
    start = long.find(short)
    for _ in range(OCCURRENCES):
        end = start + len(short)
        if start < 0 or not short:
            break
        if not (long[max(0, start - 1) : start].isalnum() or long[end : end + 1].isalnum()):
            return True
        start = long.find(short, start + 1)
    return not short


def same_beginning(history: Sequence[Exchange], stored: Sequence[Exchange]) -> int:
    """Count the exchanges that both have in common from the beginning on."""
    count = 0
    for one, other in zip(history, stored, strict=False):
        if agreement(one, other) < Agreement.SAME:
            break
        count += 1
    return count


def without_spaces(texts: Iterable[str]) -> str:
    return "".join(word for text in texts for word in text.split())


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The last thing that was asked in a dialog, and its answer; ``before`` is what was said before that."""

    asked: str
    answered: str
    before: tuple[ClientMessage, ...]

    @classmethod
    def of(cls, messages: Sequence[ClientMessage]) -> "LastAnswer":
        last = next((at for at in reversed(range(len(messages))) if messages[at].role == "user"), len(messages))
        answer = "".join(
            without_additions(message.text) for message in messages[last + 1 :] if message.role == "assistant"
        )
        asked = without_reminders(messages[last].spoken) if last < len(messages) else ""
        return cls(asked, "".join(answer.split()), tuple(messages[:last]))

    def place_in(self, messages: Sequence[ClientMessage]) -> int | None:
        """Find which message, system messages included, holds the answer as a summary of what was said before.

        None means that it is no summary, but repeated as the answer that it was, or quoted. The message holds all
        of the answer, or what stands between two tags of it.

        Whether the words ask for a summary is checked last, and is not enough for the newest message: there, an
        answer may be quoted. Its place decides: in a frame that was asked for, as the answer to other words,
        alone and first, behind the user's last words or before the last answer.
        """
        if not any(message.role == "assistant" for message in self.before):
            return None
        spoken = [
            without_reminders(one.spoken) if one.role == "user" else " ".join(one.text.split()) for one in messages
        ]
        if any(one.role == "user" and text == self.asked for one, text in zip(messages, spoken, strict=True)):
            return None
        texts = ["".join(text.split()) for text in spoken]
        place = max((at for at, text in enumerate(texts) if stands_in(self.answered, text)), default=None)
        if place is None:
            return None
        is_alone = place == 0 and texts[0] == self.answered and len(messages) > 1
        is_framed = any(stands_in(part, texts[place]) for part in _parts_between_tags(self.asked, self.answered))
        return place if is_framed or is_alone or self._is_among(messages, texts, place) else None

    def _is_among(self, messages: Sequence[ClientMessage], texts: Sequence[str], place: int) -> bool:
        if messages[place].role == "assistant":
            return texts[place] == self.answered and not any(one.role == "assistant" for one in messages[:place])
        event = next("".join(one.text.split()) for one in reversed(self.before) if one.role == "assistant" and one.text)
        if any(
            one.role == "assistant" and text == event for one, text in zip(messages[place:], texts[place:], strict=True)
        ):
            return True
        answer = next(
            ("".join(without_reminders(one.spoken).split()) for one in reversed(self.before) if one.role == "user"), ""
        )
        ahead = [text for one, text in zip(messages[:place], texts[:place], strict=True) if one.role != "system"]
        if ahead and answer and all(one.role != "assistant" for one in messages[:place]) and answer.endswith(ahead[-1]):
            return len(ahead) > 1 or asks_for_summary(self.asked)
        return place < len(messages) - 1 and asks_for_summary(self.asked)


def asks_for_summary(message: str) -> bool:
    return bool(_SUMMARY.search(message) and _OF_TALK.search(message))


def stands_in(answered: str, text: str) -> bool:
    """Check whether enough of an answer, up to a tag, stands in a text; both are without white space."""
    return any(len(part) >= DISTINCT_CHARS and part in text for part in _TAG.split(answered))


def _parts_between_tags(asked: str, answered: str) -> list[str]:
    """Return the parts of the answer between tags that the request asked for by name."""
    return [match[2] for match in _FRAME.finditer(answered) if f"<{match[1]}" in asked]


def _sums_up(exchange: Exchange, history: Sequence[Exchange], text: str) -> bool:
    """Check whether a stored answer stands in the text in the place of what was said before it."""
    if not stands_in(exchange.answered, text) or any(one.message == exchange.message for one in history):
        return False
    to_other_words = len(exchange.answered) >= DISTINCT_CHARS and history[0].answered == exchange.answered
    framed = any(stands_in(part, text) for part in _parts_between_tags(exchange.message, exchange.answered))
    return to_other_words or framed or asks_for_summary(exchange.message)


def fit_of_beginning(history: Sequence[Exchange], stored: Sequence[Exchange]) -> Fit | None:
    """The fit of the history up to the last exchange that is stored: a client puts material of its own, such as files,
    between the conversation and the newest message, or had another model answer meanwhile."""
    most = min(MOST_BEYOND, len(history) - 1) if stored else 0
    for beyond in range(1, most + 1):
        end = len(history) - beyond
        if agreement(history[end - 1], stored[-1]) >= Agreement.LIKE and (result := fit(history[:end], stored)):
            return replace(result, exact=False, beyond=beyond)
    return None


def not_stored(history: Sequence[Exchange], stored: Sequence[Exchange]) -> list[Exchange]:
    """Return the exchanges of the history that the dialog lacks.

    One that comes unchanged with each request is stored already, unless another took its place: two of them have
    the same answer.
    """
    newest = {exchange.answered: exchange for exchange in stored}
    return [exchange for exchange in history if newest.get(exchange.answered) != exchange]


def fit(history: Sequence[Exchange], stored: Sequence[Exchange], text: str = "") -> Fit | None:
    """Judge how well a history fits what is stored, up to the head of both. None means another conversation, or
    an older place of this one.

    Where the history holds all that the user ever wrote, each answer may be rewritten; where it holds all of several
    exchanges, each message may have more around it. Where something is left out or replaced, most of it must agree, the
    last exchange included, in more text than two conversations happen to share; a summary of the conversation, made
    here, that stands in the ``text`` of the request, without white space, is enough of that.
    """
    least = min(len(history), len(stored))
    tail = 0
    results: list[Agreement] = []
    while tail < least and (seen := agreement(history[-1 - tail], stored[-1 - tail])):
        results.append(seen)
        tail += 1
    if not tail:
        return None
    middle, within = history[: len(history) - tail], stored[: len(stored) - tail]
    head = same_beginning(middle, within)
    between = list(_in_order(middle[head:], within[head:]))
    like = sum(seen >= Agreement.LIKE for seen in results) + head + len(between)
    same = results.count(Agreement.SAME) + head + between.count(Agreement.SAME)
    if [one.message for one in history] == [one.message for one in stored]:
        is_it = like > 0 or tail > 1
    else:
        agreeing = [*history[:head], *history[len(history) - tail :]]
        chars = sum(len(exchange.message) + len(exchange.answered) for exchange in agreeing)
        is_distinct = chars >= DISTINCT_CHARS or bool(history[-1].calls & stored[-1].calls)
        is_whole = 1 < like == tail == len(history) == len(stored)
        is_it = results[0] >= Agreement.LIKE and (
            is_whole
            or (2 * like >= len(history) and is_distinct)
            or any(_sums_up(one, history, text) for one in stored)
        )
    return Fit(same == len(history) == len(stored), same, like) if is_it else None


def _in_order(history: Sequence[Exchange], stored: Sequence[Exchange]) -> Iterator[Agreement]:
    """Yield the agreement of exchanges that are alike and in the same order on both sides, with gaps or without."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, exchange in enumerate(stored):
        places[exchange.message].append(place)
        for answer in {exchange.answered, exchange.final}:
            places[answer].append(place)
    end = len(stored)
    for one in reversed(history):
        for known in (places.get(one.message, []), places.get(one.answered, [])):
            before = bisect_left(known, end)
            if before and (seen := agreement(one, stored[known[before - 1]])) >= Agreement.LIKE:
                end = known[before - 1]
                yield seen
                break
