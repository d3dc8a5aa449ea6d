"""The catalogs of texts: ``make words`` finds what is marked, writes it into ``locale``,
and lists what has no translation.

Marked are ``translate``, ``blocktranslate`` and ``_("")`` in templates, ``gettext`` and its kin in Python, and
``tr("")`` in scripts. Labels and codes that Python holds as values, and pages translate when they show them, are listed
by ``values``. What is no longer marked leaves the catalog; what is new has an empty translation until somebody writes
one.
"""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polib
import yaml

ROOT = Path(__file__).parent.parent
LANGUAGES = {"zh-hans": "zh_Hans"}  # beside English: the folder of each
CALLS = frozenset("_ gettext gettext_lazy gettext_noop noop ngettext pgettext".split())
LITERAL = r"""u?(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
TEMPLATE_CALL = re.compile(rf"\b(n?p?gettext|_)\(({LITERAL}(?:,\s*{LITERAL})*)[,)]")
SCRIPT_CALL = re.compile(r'\btr\(\s*("(?:\\.|[^"\\])*")')
DATE_FORM = re.compile(r'{% moment \S+ "([^"]*M[^"]*)"')
HIDDEN = re.compile(  # what is no text of a template, or is marked
    r"{% (blocktranslate|comment)\b.*?{% end\1 %}|<(code|kbd|script|style)\b[^>]*>.*?</\2>|{#.*?#}|{%.*?%}|{{.*?}}"
    r"|&\w+;",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r'\s(?:aria-label|title|placeholder|alt|hx-confirm|data-confirm|data-words)="([^"]*)"')
PLACEHOLDER = re.compile(r"%\(\w+\)s|{\w*(?::,)?}|<[^>]+>")
TEMPLATES = [
    path
    for folder in (ROOT / "templates", *sorted(ROOT.glob("dialogs/extras/*/templates")))
    for path in sorted(folder.rglob("*"))
    if path.suffix in (".html", ".txt") and "admin" not in path.parts
]
SCRIPTS = sorted(
    path
    for folder in (ROOT / "static", *ROOT.glob("dialogs/extras/*/static"))
    for path in (folder / "js").glob("*.js")
    if not path.name.startswith("phrases.")
)


@dataclass(frozen=True, slots=True)
class Text:
    """What is translated: alike in all three is the same text."""

    english: str
    plural: str = ""
    context: str = ""


# -- What is marked ----------------------------------------------------------------------------------------------------


def marked() -> dict[Text, list[str]]:
    """Every text with the files that hold it."""
    result: dict[Text, list[str]] = {}
    for text, place in (*_of_templates(), *_of_python(), *((text, "static/js") for text in of_scripts()), *values()):
        places = result.setdefault(text, [])
        if place not in places:
            places.append(place)
    return result


def _of_templates() -> Iterator[tuple[Text, str]]:
    from django.utils.translation.template import templatize

    for path in TEMPLATES:
        source, place = path.read_text(), str(path.relative_to(ROOT))
        for call in TEMPLATE_CALL.finditer(templatize(source)):
            texts = [ast.literal_eval(literal) for literal in re.findall(LITERAL, call[2])]
            yield _text(call[1], texts), place
        for form in DATE_FORM.finditer(source):
            yield Text(form[1]), place


def bare_words(source: str) -> list[str]:
    """Texts of a template, and of the attributes that people read or hear, that nobody marked."""
    left = HIDDEN.sub("", source)
    texts = re.sub(r"<[a-zA-Z/!][^<>]*>", "\n", left).splitlines() + ATTRIBUTE.findall(left)
    return [text.strip(" ·()") for text in texts if re.search("[A-Za-z]{2,}", text)]


def _of_python() -> Iterator[tuple[Text, str]]:
    for path in sorted((ROOT / "dialogs").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation":
                unknown = {alias.asname for alias in node.names} - CALLS - {None}
                assert not unknown, f"{path}: texts in {unknown} are not found. Import it under a name of {CALLS}."
            name = getattr(getattr(node, "func", None), "id", "")
            if isinstance(node, ast.Call) and name in CALLS:
                texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
                if len(texts) > (name == "pgettext"):
                    yield _text(name, texts), str(path.relative_to(ROOT))


def _text(call: str, texts: list[str]) -> Text:
    if call.startswith("n"):
        return Text(texts[0], plural=texts[1]) if call == "ngettext" else Text(texts[0])
    return Text(texts[1], context=texts[0]) if call == "pgettext" else Text(texts[0])


def of_scripts() -> list[Text]:
    return [Text(json.loads(call[1])) for path in SCRIPTS for call in SCRIPT_CALL.finditer(path.read_text())]


def values() -> Iterator[tuple[Text, str]]:
    """Labels of policies and exits, and codes of rows and rules, as pages show them."""
    from dialogs.actions.exits import EXITS
    from dialogs.actions.questions import AGES
    from dialogs.context.sent import Category
    from dialogs.extras.operations.costs import KEYS
    from dialogs.extras.teams import task_document
    from dialogs.extras.teams import tools as team_tools
    from dialogs.models import Agent, Dialog, Generation, PersonSettings, Question, RecallChoice, Turn
    from dialogs.pages.meter import FREE, PROMPT, RESERVE
    from dialogs.pages.story import KINDS as ACTS
    from dialogs.pages.time_drawing import THRESHOLDS
    from dialogs.permissions import ALL
    from dialogs.templatetags.stored_sentences import FAILURES, FORMS, REASONS
    from dialogs.views.questions import TABS
    from dominds.llm.provider import ProviderError
    from dominds.llm.providers.kinds import KINDS
    from health.levels import Level, UnknownReason
    from remediation.context import UnitKind, UnitRole
    from remediation.models import ContextEvent
    from remediation.policies import registry
    from remediation.strategies import reasons

    texts: list[str] = []
    for policy in registry.own():
        texts += [policy.label, policy.sentence, policy.automatic, policy.title]
        if hand := policy.by_hand:
            texts += [hand.label, hand.button, hand.entry, hand.hint, hand.question, hand.preview_note]
    for way in EXITS:
        texts += [way.label, way.help, *(part.label for part in way.fields)]
    for labels in (
        Dialog.Origin,
        Generation.Purpose,
        Generation.Outcome,
        PersonSettings.Theme,
        Question.Kind,
        Question.State,
    ):
        texts += [str(text) for choice in labels for text in (choice.label, choice.value)]
    texts += [
        text
        for role in (Turn.Role, RecallChoice.Choice)
        for choice in role
        for text in (str(choice.label), choice.value)
    ]
    for kind in (Category, Level, UnknownReason, UnitKind, UnitRole):
        texts += [member.value.replace("_", " ") if kind is UnknownReason else member.value for member in kind]
    texts += [level.value.capitalize() for level in Level]
    texts += [*reasons.REASONS.values(), reasons.BY_AGENT, reasons.HANDOVER, reasons.TRUNCATED, reasons.WRITTEN_ANEW]
    texts += [*reasons.NAMES.values(), *reasons.NOTES]
    kinds = {"context_full", "crashed", "given_up", *(error.kind for error in errors_of(ProviderError))}
    texts += [name.replace("_", " ") for name in sorted(kinds)]
    texts += [path.stem.replace("_", " ") for path in sorted((ROOT / "remediation" / "prompts").glob("*.md"))]
    texts += [RESERVE, FREE, PROMPT, *THRESHOLDS, *KEYS, *(label for _, label in AGES)]
    texts += ["Instructions", "Tools", "Reminders", "Guidance", "Image", *ACTS]
    texts += ["Tool result", "Recalled", "System message", "key facts", *ContextEvent.WORDS.values()]
    texts += [*task_document.SECTIONS.values(), "reported", "at work", "waits for a person's answer"]
    texts += ["suspended until a person decides", "did not report", "ended"]
    texts += [tool.spec.description for tool in team_tools.tools_for(Agent(extras={"colleagues": ["one"]}), None)]
    texts += ["seconds", "minutes", "days", "turns", "from cache", "completion", *ALL.values()]
    texts += [*FORMS, *REASONS, *FAILURES.values(), "Stands for what was removed"]
    catalog = yaml.safe_load((ROOT / "dominds" / "llm" / "catalog" / "defaults.yaml").read_text())
    texts += [model["name"] for model in catalog["providers"]["demo"]["models"].values()]
    texts += [text for kind in KINDS.values() for text in (kind.name, kind.label)]
    for member in yaml.safe_load((ROOT / "dialogs" / "agents" / "demo_team.yaml").read_text())["members"].values():
        texts += [member["description"], *member["suggestions"]]
    yield from ((Text(text), "values of Python") for text in texts if text)
    yield from ((Text(label, context="tab"), "values of Python") for _, label in TABS)


def errors_of(family: Any) -> Iterator[Any]:
    for error in family.__subclasses__():
        yield error
        yield from errors_of(error)


# -- The catalogs ------------------------------------------------------------------------------------------------------


def update(language: str) -> polib.POFile:
    """Return the catalog with the marked texts, in their order, each with the translation that it had."""
    before = polib.pofile(catalog_path(language), wrapwidth=0)
    known = {(entry.msgctxt or "", entry.msgid, entry.msgid_plural): entry for entry in before}
    result = polib.POFile(wrapwidth=0)
    result.header, result.metadata = before.header, before.metadata
    for text, places in marked().items():
        entry = known.get((text.context, text.english, text.plural)) or polib.POEntry(
            msgid=text.english,
            msgid_plural=text.plural,
            msgstr_plural={0: ""} if text.plural else {},
            msgctxt=text.context or None,
        )
        entry.occurrences = [(place.replace(" ", "_"), "") for place in places]
        result.append(entry)
    return result


def catalog_path(language: str) -> Path:
    return ROOT / "locale" / LANGUAGES[language] / "LC_MESSAGES" / "django.po"


def differing(catalog: polib.POFile) -> list[str]:
    """Return the texts whose translation has other placeholders or tags."""
    return [
        entry.msgid
        for entry in catalog.translated_entries()
        for translation in (entry.msgstr_plural.values() if entry.msgid_plural else [entry.msgstr])
        if _holes(entry.msgid) != _holes(translation)
    ]


def _holes(text: str) -> list[str]:
    return sorted(PLACEHOLDER.findall(text))


def main() -> None:
    for language in LANGUAGES:
        catalog = update(language)
        catalog.save(str(catalog_path(language)))
        for english in differing(catalog):
            print(f"{language}: other placeholders or tags than in {english!r}")
        for entry in catalog.untranslated_entries():
            print(f"{language}: no translation of {entry.msgid!r}")
        print(f"{language}: {len(catalog)} texts, {len(catalog.untranslated_entries())} without a translation")


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    django.setup()
    main()
