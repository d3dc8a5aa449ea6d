"""The catalogs of texts: ``make words`` finds what is marked, and writes ``locale`` and the scripts' files from it.

Marked are ``translate``, ``blocktranslate`` and ``_("")`` in templates, ``gettext`` and its kin in Python, and
``tr("")`` in scripts. Labels and codes that Python holds as values, and pages translate when they show them, are listed
by ``values``. What is no longer marked leaves the catalog; what is new has an empty translation until somebody writes
one.
"""

import ast
import json
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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

    @property
    def key(self) -> str:
        """Under which a compiled catalog holds it."""
        before = f"{self.context}\x04" if self.context else ""
        return before + self.english + (f"\x00{self.plural}" if self.plural else "")


@dataclass
class Catalog:
    """``head`` is the text of the file up to its first entry, comments included."""

    head: str
    texts: dict[Text, str] = field(default_factory=dict)


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
    from dialogs.extras.time_travel.drawing import THRESHOLDS
    from dialogs.models import Dialog, Generation, PersonSettings, Question, RecallChoice, Turn
    from dialogs.pages.meter import FREE, NUMBERS, PROMPT, RESERVE
    from dialogs.permissions import ALL
    from dialogs.templatetags.stored_sentences import FAILURES, FORMS
    from dialogs.views.questions import TABS
    from dominds.llm.provider import ProviderError
    from health.levels import Level, UnknownReason
    from remediation.context import UnitKind, UnitRole
    from remediation.policies import registry
    from remediation.strategies import reasons
    from remediation.tokens.calibration import COUNTED

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
    texts += [*reasons.NAMES.values(), *reasons.NOTES, *COUNTED.values(), "estimated"]
    kinds = {"context_full", "crashed", "given_up", *(error.kind for error in errors_of(ProviderError))}
    texts += [name.replace("_", " ") for name in sorted(kinds)]
    texts += [path.stem.replace("_", " ") for path in sorted((ROOT / "remediation" / "prompts").glob("*.md"))]
    texts += [*NUMBERS, RESERVE, FREE, PROMPT, *THRESHOLDS, *KEYS, *(label for _, label in AGES)]
    texts += ["Instructions", "Tools", "Reminders", "Guidance", "Image", "rewrite", "undo", "round", "crash", "failure"]
    texts += ["question", "seconds", "minutes", "days", "turns", "from cache", "completion", *ALL.values()]
    texts += [*FORMS, *FAILURES.values()]
    yield from ((Text(text), "values of Python") for text in texts if text)
    yield from ((Text(label, context="tab"), "values of Python") for _, label in TABS)


def errors_of(family: Any) -> Iterator[Any]:
    for error in family.__subclasses__():
        yield error
        yield from errors_of(error)


# -- Files -------------------------------------------------------------------------------------------------------------


def read(path: Path) -> Catalog:
    """A catalog as this module writes it; of others' habits only what Poedit and its kin keep."""
    head, *entries = re.split(r"\n\n+(?=(?:#[^\n]*\n)*msg)", path.read_text().strip())
    catalog = Catalog(head)
    for entry in entries:
        answer: dict[str, str] = {}
        name = ""
        for line in entry.splitlines():
            if line.startswith("#"):
                continue
            keyword, _, literal = ("", "", line) if line.startswith('"') else line.partition(" ")
            name = keyword or name
            answer[name] = answer.get(name, "") + str(json.loads(literal))
        text = Text(answer["msgid"], answer.get("msgid_plural", ""), answer.get("msgctxt", ""))
        catalog.texts[text] = answer.get("msgstr", answer.get("msgstr[0]", ""))
    return catalog


def written(catalog: Catalog, places: dict[Text, list[str]]) -> str:
    """The file with the texts in the order in which they stand in the product."""
    lines = [catalog.head, ""]
    for text, where in places.items():
        lines.append(f"#: {' '.join(place.replace(' ', '_') for place in where)}")
        if text.context:
            lines.append(f"msgctxt {_quoted(text.context)}")
        lines.append(f"msgid {_quoted(text.english)}")
        if text.plural:
            lines.append(f"msgid_plural {_quoted(text.plural)}")
        lines += [f"msgstr{'[0]' if text.plural else ''} {_quoted(catalog.texts.get(text, ''))}", ""]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def compiled(catalog: Catalog) -> bytes:
    """As ``msgfmt`` makes it: tables of lengths and offsets, then the texts, each with a zero behind it."""
    header = "".join(json.loads(line) for line in catalog.head.splitlines() if line.startswith('"'))
    pairs = sorted(
        {"": header, **{text.key: translation for text, translation in catalog.texts.items() if translation}}.items()
    )
    coded = [
        (key.encode(), translation.encode()) for key, translation in sorted(pairs, key=lambda pair: pair[0].encode())
    ]
    start, tables, body = 28 + 16 * len(coded), (list[int](), list[int]()), b""
    for column, table in enumerate(tables):
        for pair in coded:
            table += [len(pair[column]), start + len(body)]
            body += pair[column] + b"\0"
    numbers = [0x950412DE, 0, len(coded), 28, 28 + 8 * len(coded), 0, 28 + 16 * len(coded), *tables[0], *tables[1]]
    return struct.pack(f"<{len(numbers)}I", *numbers) + body


def phrases(catalog: Catalog) -> str:
    """The texts of the scripts, as a script that stands before them."""
    answer = {text.english: catalog.texts[text] for text in of_scripts() if catalog.texts.get(text)}
    return f"globalThis.phrases = {json.dumps(answer, ensure_ascii=False, indent=1, sort_keys=True)};\n"


def catalog_path(language: str) -> Path:
    return ROOT / "locale" / LANGUAGES[language] / "LC_MESSAGES" / "django.po"


def phrases_path(language: str) -> Path:
    return ROOT / "static" / "js" / f"phrases.{language}.js"


def differing(catalog: Catalog) -> list[str]:
    """Texts whose translation is missing, or has other placeholders or tags."""
    return [
        text.english
        for text, translation in catalog.texts.items()
        if not translation or _holes(text.english) != _holes(translation)
    ]


def _holes(text: str) -> list[str]:
    return sorted(PLACEHOLDER.findall(text))


def main(languages: Iterable[str] = LANGUAGES) -> None:
    places = marked()
    for language in languages:
        path = catalog_path(language)
        catalog = read(path)
        catalog.texts = {text: catalog.texts.get(text, "") for text in places}
        path.write_text(written(catalog, places))
        path.with_suffix(".mo").write_bytes(compiled(catalog))
        phrases_path(language).write_text(phrases(catalog))
        for english in differing(catalog):
            print(f"{language}: look at {english!r}")
        print(f"{language}: {len(catalog.texts)} texts")


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    django.setup()
    main()
