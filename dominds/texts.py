"""Builds of the translation catalogs in ``locale``: ``django.mo``, and the phrases of the scripts.

A checkout builds them when it starts, and again when a catalog has changed. A wheel brings them. This module
knows no Django: the build of the wheel runs this file alone.
"""

import json
import os
from pathlib import Path

import polib

SCRIPTS = "static/js"  # the place that a catalog names for texts of scripts


def build(root: Path) -> None:
    """Write each file below ``root`` that is missing or older than its catalog, in one step."""
    for source in sorted((root / "locale").glob("*/LC_MESSAGES/django.po")):
        language = source.parents[1].name.lower().replace("_", "-")
        compiled, phrases = source.with_suffix(".mo"), root / SCRIPTS / f"phrases.{language}.js"
        if all(path.exists() and path.stat().st_mtime_ns >= source.stat().st_mtime_ns for path in (compiled, phrases)):
            continue
        catalog = polib.pofile(source)
        _write(phrases, phrases_of(catalog).encode())
        _write(compiled, catalog.to_binary())


def phrases_of(catalog: polib.POFile) -> str:
    """Return the translated texts of the scripts as a script that is loaded before them."""
    texts = {
        entry.msgid: entry.msgstr
        for entry in catalog.translated_entries()
        if any(place == SCRIPTS for place, _line in entry.occurrences)
    }
    return f"globalThis.phrases = {json.dumps(texts, ensure_ascii=False, indent=1, sort_keys=True)};\n"


def _write(path: Path, content: bytes) -> None:
    written = path.with_name(f".{path.name}.{os.getpid()}")
    written.write_bytes(content)
    written.replace(path)
