"""Texts that both databases can hold: neither stores a NUL character or half of a surrogate pair."""

NUL = "\x00"
REPLACEMENT = "\ufffd"


def storable(text: str) -> str:
    """Return the text with a stand-in for each character that cannot be stored; models and tools do send them."""
    return text.replace(NUL, REPLACEMENT).encode("utf-8", "replace").decode()


def unstorable_reason(text: str) -> str:
    """Say why the text cannot be stored as it is, to follow the name of what holds it; empty when it can."""
    if NUL in text:
        return "holds a NUL character, which cannot be stored"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is no character"
    return ""
