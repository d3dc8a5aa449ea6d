"""Removal of secrets from the text that the runtime itself writes: summaries, ledgers and logs."""

import re

from dominds.redaction import holds_any
from dominds.weighted_cache import Bounded
from remediation.text.words import lower_in_place

REDACTED = "[redacted]"

# Credentials that are known by their shape. Sources: the providers' documentation of their keys; RFC 7468 and 7519.
SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(sk|pk|rk)-[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic and their like
    r"|\b(sk|pk|rk|whsec)_(live|test)?_?[A-Za-z0-9]{16,}"  # Stripe
    r"|\b(AKIA|ASIA|AIDA|AROA)[A-Z0-9]{16}\b"  # Amazon
    r"|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[\w-]{20,}"  # Google
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bhf_[A-Za-z0-9]{20,}|\bgsk_[A-Za-z0-9]{20,}"
    r"|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{30,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",  # JSON web tokens
    re.S,
)
# RFC 6750 and 7617. The first word stays, which says that a token stood there.
AUTHORIZATION = re.compile(r"\b(Bearer|Basic)\s+(?=\S*[\d+/=_.-])[A-Za-z0-9+/=_.~-]{12,}", re.I)
URL_PASSWORD = re.compile(r"(://[^\s/:@]*):[^\s/@]+@")
# A secret by its name: NAME=value, NAME: value, "name": "value", name is value. "prompt_tokens: 12" names no secret.
# The part before the name (DB_ in DB_PASSWORD) is not matched, which would take quadratic time in texts of many
# hyphens. The pattern reads lower case and each alternative begins with a letter: otherwise it takes ten times as long.
NAMED = re.compile(
    r"((?:password|passwd|pwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|"
    r"auth[_-]?token|access[_-]?token|refresh[_-]?token|bearer[_-]?token|client[_-]?secret|token(?<![a-z]token)"
    r"|credentials(?<![a-z]credentials)|credential(?<![a-z]credential))"
    r"(?:[_-](?:id|key|value))?)"
    r"(?:[\"']?\s*(?:=>|:=|=|:)\s*[\"']?|\s+(?:is|was)(?:\s+now)?:?\s+[\"']?)"
    r"(?!\[redacted\])([^\s\"',;]{4,})"
)
REFERENCE = re.compile(r"\w+(\.\w+)*[(\[].*|[$%]?[{<].*|\$\w+", re.S)  # code that fetches the value
PLAIN = re.compile(  # a word or a count behind a weak name such as "token"
    r"[a-z]+[.!?:)]*|\d{1,9}[.)]*", re.I
)
ABOUT = re.compile(  # "the password is expired" tells no password
    r"(about|also|and|being|blank|changed|configured|correct|defined|different|empty|encrypted|exposed|expired|hashed|"
    r"incorrect|invalid|kept|known|leaked|mandatory|missing|needed|never|only|optional|provided|required|reset|rotated|"
    r"safe|same|secret|shared|still|stored|strong|unknown|unset|used|valid|weak|wrong|with|that|this|from|none|null|"
    r"true|false)"
    r"[.!?:)]*",
    re.I,
)


# Each match holds one of these; where the pattern ignores case, in lower case. To look for them takes a small part of
# the time of the patterns, and most texts hold none.
IN_SHAPES = (
    "-----BEGIN",
    *"whsec_ AKIA ASIA AIDA AROA AIza ya29. ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xox hf_ npm_ pypi- eyJ".split(),
)
IN_KEYS = re.compile(r"k[-_][A-Za-z0-9_-]{16}")
IN_AUTHORIZATION = re.compile(r"b(?:earer|asic)\s+(?=\S*[\d+/=_.-])\S{12}")
IN_NAMED = tuple(
    "passw pwd passphrase secret token credent apikey api_key api-key accesskey access_key access-key "
    "privatekey private_key private-key".split()
)


# Characters of texts that are remembered, since rewrites ask for the same text again, and of one too short for it.
REMEMBERED_CHARS, SHORT_CHARS = 4_000_000, 200
_known = Bounded[str](REMEMBERED_CHARS)


def redact(text: str) -> str:
    """Return ``text`` with API keys, tokens, passwords and private keys replaced by ``[redacted]``."""
    if len(text) < SHORT_CHARS:
        return _redact(text)
    known = _known.get(text)
    if known is None:
        known = _redact(text)
        _known.put(text, known, weight=len(text))
    return known


def _redact(text: str) -> str:
    if IN_KEYS.search(text) or holds_any(text, IN_SHAPES):
        text = SHAPES.sub(REDACTED, text)
    folded = text.casefold()
    if IN_AUTHORIZATION.search(folded):
        text = AUTHORIZATION.sub(rf"\1 {REDACTED}", text)
    if "://" in text:
        text = URL_PASSWORD.sub(rf"\1:{REDACTED}@", text)
    return _redact_named(text) if holds_any(folded, IN_NAMED) else text


def _redact_named(text: str) -> str:
    """Replace the values of names of secrets, unless they are code that fetches one, prose about one, or a count."""
    pieces: list[str] = []
    end = 0
    for match in NAMED.finditer(lower_in_place(text)):
        value = text[match.start(2) : match.end(2)]
        is_weak = match[1] in ("token", "token_id", "token-id", "credential", "credentials")
        if not (REFERENCE.fullmatch(value) or ABOUT.fullmatch(value) or (is_weak and PLAIN.fullmatch(value))):
            pieces += text[end : match.start(2)], REDACTED
            end = match.end(2)
    return "".join((*pieces, text[end:]))
