"""Build of the files that are made from the translation catalogs: ``django.mo``, and the phrases of the scripts.

A checkout builds them when a process starts and a catalog has changed. A wheel contains them. This module does not
import Django, since the build of the wheel runs it alone.
"""

import json
import os
from pathlib import Path

import polib

SCRIPTS = "static/js"  # the location of scripts' texts, as the catalogs name it


def build(root: Path) -> None:
    """Write each file below ``root`` that is missing or older than its catalog. Each is replaced atomically."""
    for source in sorted((root / "locale").glob("*/LC_MESSAGES/django.po")):
        language = source.parents[1].name.lower().replace("_", "-")
        compiled, phrases = source.with_suffix(".mo"), root / SCRIPTS / f"phrases.{language}.js"
        if all(path.exists() and path.stat().st_mtime_ns >= source.stat().st_mtime_ns for path in (compiled, phrases)):
            continue
        catalog = polib.pofile(source)
        _write(phrases, phrases_of(catalog).encode())
        _write(compiled, catalog.to_binary())


def phrases_of(catalog: polib.POFile) -> str:
    """Return the translated texts of the scripts, as a script that pages load before the others."""
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
