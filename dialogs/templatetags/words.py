"""Tags and filters for texts in the reader's language, beside Django's own. They are builtins of all templates."""

import re

from django import template
from django.template.base import Parser, Token
from django.templatetags.i18n import do_translate
from django.utils import translation
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from dialogs.templatetags.stored_sentences import FAILURES, in_page_language
from remediation.strategies import reasons

register = template.Library()

_NUMBER = re.compile(r"\b\d[\d,]*")
_ONE = re.compile(r"\b1 units\b")


class FixedText(template.Node):
    """A literal text that is looked up once for each language."""

    def __init__(self, english: str) -> None:
        self._msgid = english.replace("%", "%%")  # the form in which Django's own node and its extraction keep it
        self._texts: dict[str | None, str] = {}

    def render(self, context: template.Context) -> str:
        language = translation.get_language()
        if (text := self._texts.get(language)) is None:
            text = self._texts[language] = translation.gettext(self._msgid).replace("%%", "%")
        return text


@register.tag
def translate(parser: Parser, token: Token) -> template.Node:
    """Compile Django's tag. A plain literal becomes a ``FixedText``, since hundreds of Django's own nodes took a tenth
    of a long page's time.
    """
    words = token.split_contents()
    if len(words) == 2 and words[1][0] in "\"'":
        return FixedText(words[1][1:-1])
    return do_translate(parser, token)


@register.filter
def translated(text: object) -> str:
    """Translate a label or code that Python holds in English. A text that the catalog lacks stays as it is."""
    return translation.gettext(str(text)) if text else ""


@register.filter
def spaced(code: object) -> str:
    """Write a code of rows and rules, such as ``rate_limited``, as words."""
    return translated(str(code or "").replace("_", " "))


@register.filter
def prompt_name(prompt: str) -> str:
    """Write the name of a prompt, which its version follows, as words."""
    return spaced(prompt.partition(" ")[0])


@register.filter
def stored(text: str) -> str:
    """Translate a question or failure that the runtime wrote in English. Its quotations stay as they are."""
    return in_page_language(text)


@register.filter
def failure_by_kind(kind: str) -> str:
    """Return why a call failed, by the kind of its error, or an empty text for a kind that tells people nothing."""
    return translated(FAILURES.get(kind, ""))


@register.filter
def strategy_name(strategy: str) -> str:
    return translated(reasons.name_of(strategy))


@register.filter
def step_note(note: str) -> str:
    """Translate the note of a step, clause by clause and without numbers, since it is stored in English."""
    return "; ".join(_clause(clause) for clause in note.split("; "))


def _clause(clause: str) -> str:
    by_rule, because, cause = clause.partition(f"{reasons.BY_RULE}, because ")
    if because and not by_rule:
        return gettext("chosen by rule, because {cause}").format(cause=_clause(cause))
    clause = clause.replace("summarised", "summarized")  # rows of older versions, as with _ONE
    form = _NUMBER.sub("{}", clause).replace("{} unit ", "{} units ")
    form = form + "s" if form.endswith("{} unit") else form
    if form not in reasons.NOTES:
        return clause
    if translation.get_language() == "en":
        return _ONE.sub("1 unit", clause)
    return translated(form).format(*_NUMBER.findall(clause))


@register.simple_tag
def html_language() -> SafeString:
    """Return the attributes of a page's root."""
    return format_html('lang="{}" dir="{}"', _tag(), "rtl" if translation.get_language_bidi() else "ltr")


@register.simple_tag
def phrases_file() -> str:
    """Return the static file with the texts of the scripts; empty in English, which they hold themselves."""
    language = translation.get_language() or "en"
    return "" if language == "en" else f"js/phrases.{language}.js"


def _tag() -> str:
    """Return the language as BCP 47 writes it: ``zh-Hans``."""
    return "-".join(
        part.title() if len(part) == 4 else part for part in (translation.get_language() or "en").split("-")
    )
