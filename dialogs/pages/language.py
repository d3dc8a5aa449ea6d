"""The language of a page: English, unless its reader chose another one. Its pieces come in the same, by whatever way.

Whoever draws for people activates it. What is stored, and what goes to models and programs, is English.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.utils import translation

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def known(name: str) -> str:
    """The language of this name; English where there are no texts in it."""
    return name if name in dict(settings.LANGUAGES) else str(settings.LANGUAGE_CODE)


def drawn_in(language: str, draw: Callable[Given, Answer], *given: Given.args, **more: Given.kwargs) -> Answer:
    """What ``draw`` returns, with its texts in this language."""
    with translation.override(known(language)):
        return draw(*given, **more)
