"""Names of people and groups, by which others know who speaks: two names that look alike count as one."""

import unicodedata
from collections.abc import Iterable

from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from dominds.visible_text import visible

# Letters and digits that most fonts draw alike, from Unicode's confusables as far as names have them.
_LOOKS = {
    "a": "АаΑαɑ",
    "b": "ВΒ",
    "c": "СсϹϲ",
    "d": "Ԁԁɗ",
    "e": "ЕеΕ",
    "g": "ɡց",
    "h": "НһΗհ",
    "j": "Јј",
    "k": "КкΚκ",
    "l": "1IІӀ\u04cfΙǀ|",
    "i": "іιɩı",
    "m": "МмΜ",
    "n": "Νոп",
    "o": "0ОоΟοՕօσ",
    "p": "РрΡρ",
    "q": "ԛգ",
    "r": "г",
    "s": "Ѕѕ",
    "t": "ТтΤτ",
    "u": "υսᴜ",
    "v": "Ѵѵν",
    "w": "ԜԝωѡᎳ",
    "x": "ХхΧχ",
    "y": "УуΥγү",
    "z": "ΖᏃ",
}
_LIKE = str.maketrans({lookalike: letter for letter, lookalikes in _LOOKS.items() for lookalike in lookalikes})
_PAIRS = (("rn", "m"), ("vv", "w"))


def skeleton(name: str) -> str:
    """Return the common form of all names that look like this one."""
    plain = unicodedata.normalize("NFKD", name)
    unmarked = "".join(character for character in plain if unicodedata.category(character)[0] != "M")
    plain = unmarked.translate(_LIKE).casefold()
    for pair, like in _PAIRS:
        plain = plain.replace(pair, like)
    return plain


def alike(name: str, others: Iterable[str]) -> str | None:
    """Return the first of these names that looks like this one."""
    folded, like = name.casefold(), skeleton(name)
    return next((other for other in others if other.casefold() == folded or skeleton(other) == like), None)


def check_name(name: str, own: User | Group) -> None:
    """Raise ``ValidationError`` for a name with invisible characters, or one that looks like somebody else's."""
    if not name.strip() or visible(name) != name or unicodedata.normalize("NFKC", name) != name:
        raise ValidationError(_("The name holds characters that cannot be seen, or that look like others."))
    column = "username" if isinstance(own, User) else "name"
    others = type(own)._default_manager.exclude(pk=own.pk).values_list(column, flat=True)
    if (other := alike(name, others.iterator())) is not None:
        raise ValidationError(_("It looks too much like the name {other}.").format(other=other))
