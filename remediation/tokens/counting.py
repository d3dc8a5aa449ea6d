"""Token counts of text, messages and tools. Estimates, for sizing requests; health never sees them."""

import json
import logging
import math
import re
import threading
import unicodedata
from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal

from dominds.llm.messages import Message, ToolSpec
from dominds.weighted_cache import Bounded
from remediation.tokens.families import MESSAGE_OVERHEAD, REPLY_OVERHEAD, Family, family_of, is_family_named
from remediation.tokens.vocabularies import SINGLE_DIGITS, Encode, TokenizerUnavailable, load, pieces

log = logging.getLogger(__name__)

CountSource = Literal["tokenizer", "characters"]

TEKKEN = "tekken"
CHARACTERS = "characters"  # the name in ``context.yaml`` of counting without a tokenizer
CHARACTERS_PER_TOKEN = 4
CALL_OVERHEAD = 4  # tokens around a tool call, such as <tool_call> and </tool_call> with line breaks
TOOLS_OVERHEAD = 60  # the template's own words before a list of tools: 50 in Llama 3.1's, 70 in Qwen 2.5's

CACHE_ENTRIES = 16_384
MOST_TOOLBOXES = 64  # cached counts of lists of tools: an agent's tools stay the same objects from turn to turn
LONGEST_KEY = 256  # characters; longer texts are keyed by a digest, so that the cache holds at most 4 MB of text

# The names that ``tokenizer`` in ``context.yaml`` may have, and the vocabulary of each.
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

# Mistral's models with the vocabulary Tekken: all since Nemo of July 2024, except Small and Large of that year.
TEKKEN_NAMES = re.compile(
    r"nemo|ministral|devstral|magistral|pixtral|voxtral|mistral-(small|medium|large)(?!.*-24\d\d)"
)
# The older GPT models. Every other name of the gpt family, and every unknown name, counts by o200k_base, which is also
# the default of the gpt-tokenizer package.
CL100K_NAMES = ("gpt-4-", "gpt-3.5", "gpt-35")
# Models whose vocabularies have one token for each digit. Compared with the models' own vocabularies on code, pages,
# logs and dialogs in November 2026, SINGLE_DIGITS is within 1.1 % for Qwen 3 (o200k_base: up to 57 % too low). For
# Gemma 3 it is within 5.1 %, and 15 % too low on code (o200k_base: 16 to 57 %).
SINGLE_DIGIT_NAMES = ("smollm", "qwen", "gemma")


def counter_for(model_name: str, tokenizer: str = "") -> "Counter":
    """Return the counter of a model, or of ``tokenizer`` where one is set.

    ``tokenizer`` is a name in TOKENIZER_NAMES or the path of a Hugging Face ``tokenizer.json``. If a vocabulary cannot
    be built, that is logged once, and characters are counted instead.
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
    """Return the vocabulary's name, a path, or ``characters``."""
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


def is_vocabulary_known(model_name: str, tokenizer: str = "") -> bool:
    """Check whether a model's vocabulary, or one nearly as good, is known rather than guessed."""
    return bool(tokenizer) or is_family_named(model_name) or any(p in model_name.lower() for p in SINGLE_DIGIT_NAMES)


def characters_per_four(text: str) -> int:
    """Return ceil(characters / 4), which counts Chinese, Japanese and Korean at a quarter of their tokens."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def count_characters(text: str) -> int:
    """Return ceil(characters / 4), except that each wide East Asian character or emoji counts as one token.

    On o200k_base such a character takes 0.5 to 1.5 tokens, so that a quarter would be 2 to 6 times too low.
    """
    if text.isascii():
        return characters_per_four(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return wide + math.ceil((len(text) - wide) / CHARACTERS_PER_TOKEN)


class Counter:
    """Counts the tokens of texts, messages and tools by ``encode``, with a bounded cache. Safe between threads.

    ``source`` says whether a tokenizer or the number of characters decides.
    """

    def __init__(self, name: str, family: Family, encode: Encode, entries: int = CACHE_ENTRIES) -> None:
        self.name = name
        self.source: CountSource = "characters" if name == CHARACTERS else "tokenizer"
        self.reply_overhead = REPLY_OVERHEAD[family]  # tokens once per request, around all its messages
        self._message_overhead = MESSAGE_OVERHEAD[family]
        self._encode = encode
        self._known = Bounded[int](entries)
        self._tools = Bounded[tuple[int, Sequence[ToolSpec]]](MOST_TOOLBOXES)

    def count(self, text: str) -> int:
        key = text if len(text) <= LONGEST_KEY else _digest(text)
        tokens = self._known.get(key)
        if tokens is None:
            tokens = self._count_afresh(text)
            self._known.put(key, tokens, weight=1)
        return tokens

    def count_messages(self, messages: Sequence[Message]) -> int:
        """Count text, tool calls and the template's overhead. The result is the sum over single messages.

        ``provider_items`` are left out: providers do not show a model its reasoning of earlier turns again, and LM
        Studio has none.
        """
        tokens = self._message_overhead * len(messages)
        for message in messages:
            if message.text:
                tokens += self.count(message.text)
            for call in message.tool_calls:
                tokens += CALL_OVERHEAD + self.count(f'{{"name": "{call.name}", "arguments": {call.arguments}}}')
        return tokens

    def count_tools(self, tools: Sequence[ToolSpec]) -> int:
        """Count the tools as chat templates print them: the template's own words, then a JSON object for each tool."""
        if not tools:
            return 0
        key = tuple(map(id, tools))  # the cache also holds the tools, so that their ids are not used again
        if (known := self._tools.get(key)) is None:
            known = TOOLS_OVERHEAD + sum(self.count(_schema_text(tool)) for tool in tools), tuple(tools)
            self._tools.put(key, known, weight=1)
        return known[0]

    def _count_afresh(self, text: str) -> int:
        try:
            return sum(self._encode(piece) for piece in pieces(_well_formed(text)))
        except Exception as error:  # noqa: BLE001  a tokenizer's failure must not stop a dialog
            _log_once(self.name, f"Tokenizer {self.name} failed on a text of {len(text)} characters: {error}")
            return count_characters(text)


def _schema_text(tool: ToolSpec) -> str:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False, default=str)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _well_formed(text: str) -> str:
    """Replace lone surrogates, which the libraries refuse."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


_counters: dict[tuple[str, Family], Counter] = {}
_reported: set[str] = set()
_shared = threading.Lock()


def _counter(name: str, family: Family, encode: Encode) -> Counter:
    with _shared:
        if (name, family) not in _counters:
            _counters[name, family] = Counter(name, family, encode)
        return _counters[name, family]


def _log_once(name: str, text: str) -> None:
    with _shared:
        if name in _reported:
            return
        _reported.add(name)
    log.warning("%s Counting characters instead: estimates are coarse.", text)
