"""The words by which texts are found: plain words, identifiers and their parts, numbers and dates.

Scripts that use no blanks, such as Chinese, are cut into pairs of signs.
Indexed texts and questions pass the same rules, so a rule has to be consistent, but need not be right.
"""

import re
import unicodedata
from functools import lru_cache

LONGEST_WORD = 64  # characters
LONGEST_TOKEN = 256  # characters that are read of a token: longer ones are encoded data, which nobody looks for
REMEMBERED_WORDS = 65_536

# A run without blanks, such as a word, a path, an identifier, a date or an address.
TOKEN = re.compile(r"\w[\w./:@#%+'’\-]*")
JOINTS = re.compile(r"[\W_]+")
# Where an identifier's parts meet: fooBar, HTTPServer, abc123, 20th.
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W\d_]+")
WIDE = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+)"
)
WIDE_SIGNS = frozenset("WF")
ACCENTS = re.compile("[\u0300-\u036f]+")
CONTRACTION = re.compile(r"['’](?:s|t|d|m|re|ve|ll)\b", re.IGNORECASE)
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

# English and German words, without accents, that do not tell what a sentence is about. Some of those in questions are
# rare in statements, and would outweigh the words that matter.
FUNCTION_WORDS = frozenset(
    "a about after all also am an and any are as at be because been before being but by can could did do does doing "
    "done for from get got had has have having he her here hers him his how i if in into is it its just let like me "
    "might more most much must my no nor not now of off on once one only or other our ours out over own please same "
    "shall she should so some such than that the their theirs them then there these they this those through to too "
    "under until up us very was we were what when where whether which while who whom whose why will with would yes you "
    "your yours ain aren couldn didn doesn don hadn hasn haven isn shouldn wasn weren won wouldn "
    "aber als am an auch auf aus bei bin bis bist da dann das dass dein dem den denn der des die dies diese dieser "
    "dieses doch du durch ein eine einem einen einer eines er es euch fur hat habe haben hatte ich ihm ihn ihr ihre im "
    "in ist ja jetzt kann kein keine man mein mich mir mit nach nein nicht noch nun nur ob oder schon sein seine sich "
    "sie sind so soll uber um und uns unser unter vom von vor wann war waren warum was wie wir wird wo wurde zu zum "
    "zur".split()
)
# Endings, tried in this order. Without them a search finds 81 % of the answers to 760 questions about five long
# dialogs, and with them 85 %.
ENDINGS = ("ings", "ing", "edly", "ed", "ers", "ern", "er", "em", "en", "es", "ly", "s", "e")


def columns(text: str) -> int:
    """Return the width of a text in columns. Chinese signs take two; each says as much as two or three letters."""
    if text.isascii():
        return len(text)
    return len(text) + sum(map(WIDE_SIGNS.__contains__, map(unicodedata.east_asian_width, text)))


def lower_in_place(text: str) -> str:
    """Return the text in lower case, with each sign at its place: ``lower`` makes two signs of some."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(sign.lower()[:1] for sign in text)


def words(text: str) -> list[str]:
    """Return the words of ``text`` in order, without function words, each in the form that is compared."""
    results: list[str] = []
    if not text.isascii():
        text = unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    for token in TOKEN.findall(THOUSANDS.sub("", CONTRACTION.sub("", text))):
        results += _known_words_of(token) if len(token) <= LONGEST_TOKEN else _words_of(token)
    return results


def _words_of(token: str) -> tuple[str, ...]:
    """Return a token's parts, and the whole token where it has more than one."""
    if not token.isascii() and WIDE.search(token):
        return _wide_words(token)
    token = token[:LONGEST_TOKEN].rstrip("./:@#%+'’-")
    pieces = [piece for piece in JOINTS.split(token) if piece]
    parts = [part for piece in pieces for part in PARTS.findall(piece)]
    plain = tuple(formed for part in parts if (formed := _form_of(part[:LONGEST_WORD])))
    return plain if len(parts) < 2 or len(token) > LONGEST_WORD else (*plain, token.casefold())


_known_words_of = lru_cache(maxsize=REMEMBERED_WORDS)(_words_of)


def _form_of(part: str) -> str:
    """Return a part in the form that is compared, or an empty text for a function word or a single letter."""
    word = part.casefold()
    if word.isdigit():
        return word.lstrip("0") or "0"
    return "" if word in FUNCTION_WORDS or len(word) < 2 else stem(word)


def _wide_words(token: str) -> tuple[str, ...]:
    """Return pairs of neighbouring signs of scripts without blanks, and the words of the others.

    A sign that stands alone stays single.
    """
    results: list[str] = []
    for place, piece in enumerate(WIDE.split(token)):
        if place % 2:
            results += [piece[i : i + 2] for i in range(max(1, len(piece) - 1))]
        elif piece:
            results += _words_of(piece.strip("./:@#%+'’-_"))
    return tuple(results)


def stem(word: str) -> str:
    """Return a word without English and German endings of number, tense and case. At least three letters stay."""
    if len(word) <= 3 or not word.isalpha():
        return word
    if word.endswith(("ies", "ied")) and len(word) > 4:
        return word[:-3] + "y"
    ending = next((end for end in ENDINGS if word.endswith(end) and len(word) - len(end) >= 3), "")
    if not word.endswith("ss"):
        word = word.removesuffix(ending)
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word
