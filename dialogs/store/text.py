"""Texts that both databases can store: neither stores a NUL character or half of a surrogate pair."""

NUL = "\x00"
REPLACEMENT = "\ufffd"


def storable(text: str) -> str:
    """Return the text with a replacement for each character that cannot be stored, since models do send them."""
    return text.replace(NUL, REPLACEMENT).encode("utf-8", "replace").decode()


def unstorable_reason(text: str) -> str:
    """Return the reason why the text cannot be stored, as the end of a sentence, or an empty text."""
    if NUL in text:
        return "holds a NUL character, which cannot be stored"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is no character"
    return ""
