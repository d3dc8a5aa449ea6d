"""Texts that both databases can store, which is neither a NUL character nor half of a surrogate pair, and sentences."""

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


def as_sentence(text: str) -> str:
    """Return the text with a full stop where a provider ended without a mark, so that a sentence can follow it."""
    words = text.rstrip()
    return f"{words}." if words and (words[-1].isalnum() or words[-1] in "\"'`)]}”") else words
