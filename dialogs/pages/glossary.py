"""The glossary of the documents as a page shows it: groups of terms, each with an anchor."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify

from dialogs.pages.markdown import render

_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")  # links to other documents, which are no pages
_ROW = re.compile(r"\| (.+?) \| (.+) \|")


@dataclass(frozen=True, slots=True)
class Term:
    anchor: str
    words: str
    meaning: SafeString


@functools.cache
def groups(language: str = "en") -> list[tuple[str, list[Term]]]:
    """Return the terms by the headings of the document, in this language if it is translated.

    A translated document has a column for its own words. The anchor of a term is the first of its English words.
    """
    document: Path = settings.RESOURCES / "docs" / "glossary.md"
    english = _groups_of(document)
    translated = document.with_suffix(f".{language}.md")
    if not translated.is_file():
        return english
    results = _groups_of(translated)
    known = {term.anchor for _, terms in results for term in terms}
    for (_, terms), (_, all_terms) in zip(results, english, strict=True):
        terms += [term for term in all_terms if term.anchor not in known]
    return results


def _groups_of(document: Path) -> list[tuple[str, list[Term]]]:
    results: list[tuple[str, list[Term]]] = []
    for line in document.read_text().splitlines():
        if line.startswith("## "):
            results.append((line[3:], []))
        elif (row := _ROW.fullmatch(line)) and row[1] != "word":
            words, _, text = row[2].rpartition(" | ")
            meaning = mark_safe(render(_LINK.sub(r"\1", text)))  # nosec B308 B703  render() cleans it
            results[-1][1].append(Term(slugify(row[1].split(",")[0]), words or row[1], meaning))
    return results
