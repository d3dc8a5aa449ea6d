"""Text of documents, by page: made by the libraries that read them, and a PDF by hand."""

import io

import pytest
from docx import Document
from docx.oxml import OxmlElement
from openpyxl import Workbook
from pptx import Presentation

from dominds.documents import UnreadableDocument, kind_of, read, text_of

pytestmark = pytest.mark.server


def pdf(*pages: str) -> bytes:
    """Write a PDF with a line on each page."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for at, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * at} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body, places = "%PDF-1.4\n", list[int]()
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF"
    return f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{end}".encode()


def saved(document: object) -> bytes:
    file = io.BytesIO()
    document.save(file)  # type: ignore[attr-defined]
    return file.getvalue()


def word() -> bytes:
    document = Document()
    document.add_paragraph("Fees of the port")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Petrel", "412"
    run = document.add_paragraph("").add_run("On the second page")
    run._r.insert(0, OxmlElement("w:lastRenderedPageBreak"))
    return saved(document)


def sheet() -> bytes:
    book = Workbook()
    book.active.title = "Costs"
    book.active.append(["Port", "Fee"])
    book.active.append(["Alma", 412.5])
    return saved(book)


def slides() -> bytes:
    show = Presentation()
    for title in ("Plan", "Costs"):
        show.slides.add_slide(show.slide_layouts[5]).shapes.title.text = title
    return saved(show)


@pytest.mark.parametrize(
    ("content", "kind", "text"),
    [
        (pdf("Berth 9 is free", "", "The fee is 412"), "pdf", "[Page 1]\nBerth 9 is free\n\n[Page 3]\nThe fee is 412"),
        (word(), "docx", "[Page 1]\nFees of the port\nPetrel | 412\n\n[Page 2]\nOn the second page"),
        (sheet(), "xlsx", "[Sheet Costs]\nPort | Fee\nAlma | 412.5"),
        (slides(), "pptx", "[Slide 1]\nPlan\n\n[Slide 2]\nCosts"),
    ],
)
def test_a_document_is_read_by_its_pages(content: bytes, kind: str, text: str) -> None:
    assert kind_of(content) == kind
    assert read(content, kind) == text


def test_it_is_read_in_a_process_of_its_own() -> None:
    assert text_of(pdf("Berth 9 is free"), "pdf") == "[Page 1]\nBerth 9 is free"
    with pytest.raises(UnreadableDocument, match=r"^holds no text; its pages may be pictures"):
        text_of(pdf(""), "pdf")
    with pytest.raises(UnreadableDocument, match=r"^is damaged"):
        text_of(b"%PDF-1.7\n\x00\xff", "pdf")


def test_what_is_no_document_is_told_apart() -> None:
    assert [
        kind_of(content) for content in (b"", b"PK\x03\x04 no archive", b"A text about %PDF- files", b"\x89PNG")
    ] == [""] * 4
