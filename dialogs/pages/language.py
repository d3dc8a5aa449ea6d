"""The language of a page and of its live updates: English, unless the reader chose another one.

Code that renders for people activates that language. Stored texts, and texts for models and programs, are English.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.utils import translation

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def known_language(name: str) -> str:
    """Return ``name`` if there is a translation, or else English."""
    return name if name in dict(settings.LANGUAGES) else str(settings.LANGUAGE_CODE)


def in_language(
    language: str, render: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    with translation.override(known_language(language)):
        return render(*args, **kwargs)
