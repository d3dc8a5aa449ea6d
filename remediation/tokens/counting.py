"""Token counts of text, messages and tools. Estimates, for sizing requests; health never sees them."""

import json
import logging
import math
import re
import threading
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Literal

from dominds.llm.messages import Message, ToolSpec
from dominds.weighted_cache import Bounded
from remediation.tokens.families import MESSAGE_OVERHEAD, REPLY_OVERHEAD, Family, family_of
from remediation.tokens.vocabularies import SINGLE_DIGITS, Encode, TokenizerUnavailable, load, pieces

log = logging.getLogger(__name__)

CountSource = Literal["tokenizer", "characters"]

TEKKEN = "tekken"
CHARACTERS = "characters"  # what ``context.yaml`` calls counting without a tokenizer
CHARACTERS_PER_TOKEN = 4
CALL_OVERHEAD = 4  # tokens that set a tool call apart from text, such as <tool_call> and its end, with line breaks
TOOLS_OVERHEAD = 60  # the template's own words before a list of tools: 50 in Llama 3.1's, 70 in Qwen 2.5's

CACHE_ENTRIES = 16_384
LONGEST_KEY = 256  # characters; longer texts are remembered by a digest, so the cache holds at most 4 MB of text

# Names that the ``tokenizer`` of ``context.yaml`` takes, beside the vocabularies' own.
TOKENIZER_NAMES = {
    "gpt-4": "cl100k_base",
    "gpt-4-turbo": "cl100k_base",
    "gpt-3.5-turbo": "cl100k_base",
    "cl100k_base": "cl100k_base",
    "gpt": "o200k_base",
    "gpt-4o": "o200k_base",
    "gpt-4.1": "o200k_base",
    "gpt-5": "o200k_base",
    "o200k_base": "o200k_base",
    SINGLE_DIGITS: SINGLE_DIGITS,
    "llama3": "llama3",
    "llama2": "llama2",
    "mistral": "mistral",
    TEKKEN: TEKKEN,
    CHARACTERS: CHARACTERS,
}

# The older GPT models' vocabulary; every other name of the gpt family, and every unknown one, counts by o200k_base, as
# the gpt-tokenizer package does by default.
# Mistral's models since Nemo of July 2024, but for Small and Large of that year.
TEKKEN_NAMES = re.compile(
    r"nemo|ministral|devstral|magistral|pixtral|voxtral|mistral-(small|medium|large)(?!.*-24\d\d)"
)
CL100K_NAMES = ("gpt-4-", "gpt-3.5", "gpt-35")


# Whose vocabularies have a token for each digit. Against their own on code, pages, logs and dialogs, November 2026: Qwen 3 within
# 1.1 % (o200k_base up to 57 % too low), Gemma 3 within 5.1 %, and 15 % too low on code (16 to 57 % otherwise).
SINGLE_DIGIT_NAMES = ("smollm", "qwen", "gemma")


def counter_for(model_name: str, tokenizer: str = "") -> "Counter":
    """The counter of a model, or of the ``tokenizer`` in ``context.yaml`` where one is set.

    The key is a name in TOKENIZER_NAMES or the path of a Hugging Face ``tokenizer.json``. What cannot be built is
    logged once and counted by characters.
    """
    family = family_of(model_name)
    vocabulary = vocabulary_for(model_name, tokenizer)
    if vocabulary != CHARACTERS:
        try:
            return _counter(vocabulary, family, load(vocabulary))
        except TokenizerUnavailable as error:
            _log_once(vocabulary, str(error))
    return _counter(CHARACTERS, family, count_characters)


def vocabulary_for(model_name: str, tokenizer: str = "") -> str:
    """The vocabulary's name, a path, or ``characters``."""
    if tokenizer:
        return TOKENIZER_NAMES.get(tokenizer.lower(), tokenizer)
    family, name = family_of(model_name), model_name.lower()
    if family is Family.MISTRAL and TEKKEN_NAMES.search(name):
        return TEKKEN
    if family is not Family.GPT:
        return family.value
    if any(part in name for part in SINGLE_DIGIT_NAMES):
        return SINGLE_DIGITS
    old = name.endswith("gpt-4") or any(part in name for part in CL100K_NAMES)
    return "cl100k_base" if old else "o200k_base"


def characters_per_four(text: str) -> int:
    """The plain rule, ceil(characters / 4). It counts Chinese, Japanese and Korean at a quarter: see below."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def _kind_of(character: str) -> str:
    if character == ELSE:
        return "?"
    if character.isalnum():
        return "0" if character.isdigit() else "a" if character.islower() else "A"
    return "n" if character in "\r\n" else " " if character.isspace() else "."


# Tokens of each kind of character, and of what stands beside what. Kinds of ASCII: a for lower case, A for capitals, 0 for
# digits, "." for signs, n for line ends, and the blank. Least squares on half of 2,600 texts of 25 kinds against the mean of
# o200k_base, llama3, tekken and (of Latin script) cl100k_base; docs/quality.md has the errors on the other half and on
# vocabularies that were left out.
ASCII_TOKENS = (
    (b"a", 0.133), (b"A", 0.17), (b"0", 0.44), (b".", 0.015), (b" ", 0.015), (b"n", 1.09),
    (b" a", 0.44), (b" A", 0.44), (b"na", 1.0), (b"nA", 1.0), (b".a", 1.0), (b".A", 1.0), (b"aA", 1.24), (b"AA", 0.22),
    (b" 0", 2.06), (b".0", 1.56), (b"0a", 1.43), (b"0A", 1.43), (b" .", 0.67), (b"..", 0.21),
)  # fmt: skip
SCRIPT_TOKENS = (
    (re.compile("[\u0080-\u024f\u1e00-\u1eff]"), 1.28),  # Latin with accents, which part a word
    (re.compile("[\u0370-\u03ff\u1f00-\u1fff]"), 0.42),  # Greek
    (re.compile("[\u0400-\u052f]"), 0.33),  # Cyrillic
    (re.compile("[\u0590-\u08ff]"), 0.39),  # Hebrew, Arabic
    (re.compile("[\u0900-\u0eff]"), 0.44),  # of India, Thai, Lao
    (re.compile("[\u2000-\u2bff]"), 0.65),  # dashes, quotation marks, arrows, frames
    (re.compile("[\u3000-\u303f\uff00-\uffef]"), 0.18),  # marks between Chinese characters
    (re.compile("[\u3040-\u30ff]"), 0.61),  # Japanese kana
    (re.compile("[\u3400-\u9fff\uf900-\ufaff]"), 0.8),  # Chinese
    (re.compile("[\u1100-\u11ff\uac00-\ud7af]"), 0.74),  # Korean
)
ELSE = "\x7f"  # stands for a run of other characters, and is of no kind
OTHER_TOKENS = 2.0  # of an emoji, or of a script of which no text was measured
KINDS = bytes(ord(kind) for kind in "".join(map(_kind_of, map(chr, range(128))))) + b"?" * 128
NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def count_characters(text: str) -> int:
    """Tokens where no vocabulary is at hand, by the kinds of the text's characters and their order.

    Vocabularies differ by more than any such rule can know: some have a token for each digit, others for three.
    """
    ascii_only = text.isascii()
    plain = text if ascii_only else NOT_ASCII.sub(ELSE, text)
    # Behind a blank, as most texts stand: then parts take together no less than the whole.
    kinds = f" {plain}".encode("ascii").translate(KINDS) if text else b""
    tokens = sum(share * kinds.count(kind) for kind, share in ASCII_TOKENS)
    return math.ceil(tokens if ascii_only else tokens + _tokens_of_scripts("".join(NOT_ASCII.findall(text))))


def _tokens_of_scripts(wide: str) -> float:
    tokens, left = 0.0, len(wide)
    for script, share in SCRIPT_TOKENS:
        characters = len(script.findall(wide))
        tokens += share * characters
        left -= characters
        if not left:
            break
    return tokens + OTHER_TOKENS * left


class Counter:
    """Counts tokens by any count of a text, with a bounded cache. Safe to share between threads. ``source`` says by what: a
    tokenizer's vocabulary, or characters alone."""

    def __init__(self, name: str, family: Family, encode: Encode, entries: int = CACHE_ENTRIES) -> None:
        self.name = name
        self.source: CountSource = "characters" if name == CHARACTERS else "tokenizer"
        self.reply_overhead = REPLY_OVERHEAD[family]  # tokens once per request, around all its messages
        self._message_overhead = MESSAGE_OVERHEAD[family]
        self._encode = encode
        self._known = Bounded[int](entries)

    def count(self, text: str) -> int:
        key = _key(text)
        tokens = self._known.get(key)
        if tokens is None:
            tokens = self._count_afresh(text)
            self._known.put(key, tokens, weight=1)
        return tokens

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """One count per text, in order; texts that occur twice are counted once."""
        counts = {text: self.count(text) for text in set(texts)}
        return [counts[text] for text in texts]

    def count_messages(self, messages: Sequence[Message]) -> int:
        """Text, tool calls and the template's overhead; together the sum of messages counted one by one. ``provider_items`` are not counted: providers do not send
        their reasoning of earlier turns to the model again, and LM Studio has none."""
        overhead = self._message_overhead * len(messages)
        calls = CALL_OVERHEAD * sum(len(message.tool_calls) for message in messages)
        return overhead + calls + sum(self.count_many(list(_texts_of(messages))))

    def count_tools(self, tools: Sequence[ToolSpec]) -> int:
        """The tools as chat templates print them: one JSON object each, under the template's own words. None: 0."""
        if not tools:
            return 0
        return TOOLS_OVERHEAD + sum(self.count_many([_schema_text(tool) for tool in tools]))

    def _count_afresh(self, text: str) -> int:
        try:
            return sum(self._encode(piece) for piece in pieces(_well_formed(text)))
        except Exception as error:  # noqa: BLE001  # a tokenizer's own failure must not stop a dialog; it is logged
            _log_once(self.name, f"Tokenizer {self.name} failed on a text of {len(text)} characters: {error}")
            return count_characters(text)


def _texts_of(messages: Sequence[Message]) -> Iterable[str]:
    for message in messages:
        if message.text:
            yield message.text
        for call in message.tool_calls:
            yield f'{{"name": "{call.name}", "arguments": {call.arguments}}}'


def _schema_text(tool: ToolSpec) -> str:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False, default=str)


def _key(text: str) -> str | bytes:
    if len(text) <= LONGEST_KEY:
        return text
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _well_formed(text: str) -> str:
    """Without half surrogate pairs, which no vocabulary holds and the libraries refuse."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


_counters: dict[tuple[str, Family], Counter] = {}
_reported: set[str] = set()
_shared = threading.Lock()


def _counter(name: str, family: Family, encode: Encode) -> Counter:
    with _shared:
        return _counters.setdefault((name, family), Counter(name, family, encode))


def _log_once(name: str, text: str) -> None:
    with _shared:
        if name in _reported:
            return
        _reported.add(name)
    log.warning("%s Counting characters instead: estimates are coarse.", text)
