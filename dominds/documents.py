"""Text of PDF and office documents, with page numbers, read in a separate process with limits on memory and time.

    python -m dominds.documents KIND < FILE

writes the text. If the document cannot be read, it writes the reason and exits with 1.
"""

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from threading import BoundedSemaphore
from typing import Any

from dominds import waits
from dominds.bounded_process import bound, environment

OFFICE = {"word/document.xml": "docx", "xl/workbook.xml": "xlsx", "ppt/presentation.xml": "pptx"}
MOST_CHARS = 400_000  # of a document's text: a message has at most a million bytes
MEMORY = 640_000_000  # bytes of address space; a PDF of 3.9 MB with 600 pages took 210 MB
CPU_SECONDS = 40
SECONDS = 60.0
AT_ONCE = BoundedSemaphore(2)  # for the documents that one web process reads at once
PATIENCE_SECONDS = 20.0  # the longest wait for the semaphore


class UnreadableDocument(ValueError):
    """Raised for a document without readable text. The message continues a sentence that begins with its name."""


def kind_of(content: bytes) -> str:
    """Return a document's kind by its content: pdf, docx, xlsx, pptx, or an empty text for any other file."""
    if content[:64].lstrip().startswith(b"%PDF-"):
        return "pdf"
    if not content.startswith(b"PK\x03\x04"):
        return ""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return next((OFFICE[name] for name in archive.namelist() if name in OFFICE), "")
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):  # the last for an unknown version of ZIP
        return ""


@lru_cache(maxsize=4)  # programs send their history, with its files, in each request
def text_of(content: bytes, kind: str) -> str:
    """Return the text of a document, which another process reads. Raises ``UnreadableDocument``."""
    waits.begin("the process that reads a document")
    if not AT_ONCE.acquire(timeout=PATIENCE_SECONDS):
        raise UnreadableDocument("was not read: other documents are being read now. Try again in a minute")
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__, kind],
            input=content,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnreadableDocument(f"was not read within {SECONDS:g} s. Split it") from None
    finally:
        AT_ONCE.release()
    said = done.stdout.decode("utf-8", "replace")
    if done.returncode == 0:
        return said
    raise UnreadableDocument(said or "takes too much memory or time to be read. Split it")


# -- In the process ----------------------------------------------------------------------------------------------------


def _pdf(file: io.BytesIO) -> Iterator[tuple[str, str]]:
    from pypdf import PdfReader

    reader = PdfReader(file)
    if reader.is_encrypted and not reader.decrypt(""):
        raise UnreadableDocument("is protected by a password. Save it without one")
    for number, page in enumerate(reader.pages, 1):
        yield f"Page {number}", page.extract_text()


def _docx(file: io.BytesIO) -> Iterator[tuple[str, str]]:
    """Yield the pages by the page breaks that were stored when the document was last saved; one page without any."""
    from docx import Document
    from docx.table import Table

    number, lines = 1, list[str]()
    for part in Document(file).iter_inner_content():
        if isinstance(part, Table):
            lines += [" | ".join(cell.text.replace("\n", " ") for cell in row.cells) for row in part.rows]
            continue
        if breaks := len(part.rendered_page_breaks):
            yield f"Page {number}", "\n".join(lines)
            number, lines = number + breaks, []
        lines.append(part.text)
    yield f"Page {number}", "\n".join(lines)


def _xlsx(file: io.BytesIO) -> Iterator[tuple[str, str]]:
    from openpyxl import load_workbook

    for sheet in load_workbook(file, read_only=True, data_only=True).worksheets:
        rows = (
            " | ".join("" if cell is None else str(cell) for cell in row) for row in sheet.iter_rows(values_only=True)
        )
        yield f"Sheet {sheet.title}", "\n".join(row for row in rows if row.strip(" |"))


def _pptx(file: io.BytesIO) -> Iterator[tuple[str, str]]:
    from pptx import Presentation

    for number, slide in enumerate(Presentation(file).slides, 1):
        yield f"Slide {number}", "\n".join(text for shape in slide.shapes for text in _texts_of(shape))


def _texts_of(shape: Any) -> Iterator[str]:
    if shape.has_text_frame:
        yield shape.text_frame.text
    elif getattr(shape, "has_table", False):
        yield from (" | ".join(cell.text for cell in row.cells) for row in shape.table.rows)


READERS: dict[str, Callable[[io.BytesIO], Iterator[tuple[str, str]]]] = {
    "pdf": _pdf,
    "docx": _docx,
    "xlsx": _xlsx,
    "pptx": _pptx,
}


def read(content: bytes, kind: str) -> str:
    """Return the text of a document, with a heading before each page. Raises ``UnreadableDocument``."""
    parts, size = list[str](), 0
    for name, text in READERS[kind](io.BytesIO(content)):
        if not text.strip():
            continue
        parts.append(f"[{name}]\n{_clean(text)}")
        size += len(text)
        if size > MOST_CHARS:
            parts.append(f"[Cut here: the document goes on after {name.lower()}.]")
            break
    if not parts:
        raise UnreadableDocument("holds no text; its pages may be pictures. Attach them as images")
    return "\n\n".join(parts)


def _clean(text: str) -> str:
    """Return the text without control characters, except for tabs and line ends."""
    return "".join(letter for letter in text.strip() if letter in "\n\t" or (letter >= " " and letter != "\x7f"))


def main(kind: str) -> int:
    bound(MEMORY, CPU_SECONDS)
    with os.fdopen(0, "rb") as file:
        content = file.read()
    try:
        sys.stdout.write(read(content, kind))
    except UnreadableDocument as error:
        sys.stdout.write(str(error))
        return 1
    except MemoryError:
        sys.stdout.write("takes too much memory to be read. Split it")
        return 1
    except Exception:  # noqa: BLE001  the libraries may raise anything for a damaged file
        sys.stdout.write("is damaged, or of a kind that is not known. Save it again, and attach that")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
