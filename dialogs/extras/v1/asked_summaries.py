"""Summaries of a conversation that its program asked for, and their place in what it tells later."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dialogs.extras.v1.exchanges import DISTINCT_CHARS, Exchange, without_additions, without_reminders
from dialogs.extras.v1.history import ClientMessage

# A request for a summary of the conversation has one word of each of the two groups. These are words that programs were
# seen to use; in other languages only the structure of what is told shows a summary.
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
        is_framed = any(stands_in(part, texts[place]) for part in parts_between_tags(self.asked, self.answered))
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


def parts_between_tags(asked: str, answered: str) -> list[str]:
    """Return the parts of the answer between tags that the request asked for by name."""
    return [match[2] for match in _FRAME.finditer(answered) if f"<{match[1]}" in asked]


def sums_up(exchange: Exchange, history: Sequence[Exchange], text: str) -> bool:
    """Check whether a stored answer stands in the text in the place of what was said before it."""
    if not stands_in(exchange.answered, text) or any(one.message == exchange.message for one in history):
        return False
    to_other_words = len(exchange.answered) >= DISTINCT_CHARS and history[0].answered == exchange.answered
    framed = any(stands_in(part, text) for part in parts_between_tags(exchange.message, exchange.answered))
    return to_other_words or framed or asks_for_summary(exchange.message)
