import io
import json

import pypdfium2
import pypdfium2.raw as pdfium
import pytest

from core.errors import DocumentRejected
from ingest.parse.pdf_document import iso_date, pages_as_text
from tests.ingest.pdfs import HEIGHT, codes, column, made, prose, put, read, text_of


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("D:20240131120530+08'00'", "2024-01-31T12:05:30+08:00"),
        ("D:20240131120530Z", "2024-01-31T12:05:30Z"),
        ("D:20240131120530-0500", "2024-01-31T12:05:30-05:00"),
        ("D:202401", "2024-01"),
        ("20240131", "2024-01-31"),
        ("D:20249931", "2024"),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_dates_are_as_exact_as_they_are_given(written, read_as):
    assert iso_date(written) == read_as


def test_the_document_information_becomes_properties():
    def page(canvas):
        canvas.setTitle("Pump handbook")
        canvas.setAuthor("Li Wei")
        canvas.setSubject("Care of pumps")
        put(canvas, column(60, prose("a", 3, 9)))

    document = read(made(page))
    assert document.title == "Pump handbook"
    assert document.properties["author"] == "Li Wei"
    assert document.properties["description"] == "Care of pumps"
    assert document.properties["created"].startswith("2000-01-01")


def with_attachment(content: bytes, name: str, attached: bytes) -> bytes:
    document = pypdfium2.PdfDocument(content)
    document.new_attachment(name).set_data(attached)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_attached_files_are_named_and_read_as_parts():
    content = with_attachment(made(column(60, prose("a", 3, 9))), "stock.csv", b"Part,Stock\nSeal,45\n")
    document = read(content)
    part = next(block for block in document.blocks if "Seal" in block.text)
    assert part.member == "stock.csv"
    assert [(w.code, w.detail) for w in document.warnings] == [
        ("has_attachments", "Files are attached: stock.csv.")
    ]
    assert document.blocks[0].member is None


def test_an_attachment_that_cannot_be_read_loses_nothing_else():
    content = with_attachment(made(column(60, prose("a", 3, 9))), "run.exe", b"MZ\x90\x00" + b"\x00" * 200)
    document = read(content)
    assert "a3 " in text_of(document)
    assert codes(document) == ["has_attachments", "attachment_unreadable"]


def test_values_of_form_fields_and_text_boxes_are_text():
    def page(canvas):
        put(canvas, [(60, 100, "Name of the operator:"), (60, 140, "Password:")])
        form = canvas.acroForm
        form.textfield(name="operator", value="Chen Mei", x=200, y=HEIGHT - 105, width=120, height=16)
        form.textfield(
            name="pw", value="hunter2", fieldFlags="password", x=200, y=HEIGHT - 145, width=120, height=16
        )
        form.textfield(name="empty", value="", x=200, y=HEIGHT - 185, width=120, height=16)
        canvas.freeTextAnnotation("checked by the night shift", None, (60, HEIGHT - 260, 260, HEIGHT - 240))

    text = text_of(read(made(page)))
    assert "Name of the operator: Chen Mei" in text.replace(" | ", " ")
    assert "checked by the night shift" in text
    assert "hunter2" not in text


def test_a_file_that_breaks_off_gives_what_is_left():
    content = made(*(column(60, prose(f"p{n}x", 30, 9)) for n in range(1, 7)), pageCompression=0)
    document = read(content[: int(len(content) * 0.8)])
    assert document.partial
    assert codes(document)[0] == "file_damaged"
    assert "p1x1 " in text_of(document)


def test_page_objects_that_a_newer_file_packs_are_found_when_it_breaks_off():
    content = packed()
    document = read(content[: content.rindex(b"startxref")][:-40])
    assert document.partial
    assert "Spare pumps are stored" in text_of(document)


def packed() -> bytes:
    """A file whose objects but the content are in a compressed object stream."""
    import zlib

    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 5 0 R"
        b"/Resources<</Font<</F1 4 0 R>>>>>>",
        4: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    }
    table, body = b"", b""
    for number, text in objects.items():
        table += b"%d %d " % (number, len(body))
        body += text + b" "
    stream = zlib.compress(table + body)
    drawn = b"BT /F1 12 Tf 60 700 Td (Spare pumps are stored in warehouse nine.) Tj ET"
    return (
        b"%PDF-1.5\n"
        + b"5 0 obj\n<</Length %d>>\nstream\n%s\nendstream\nendobj\n" % (len(drawn), drawn)
        + b"6 0 obj\n<</Type/ObjStm/N 4/First %d/Filter/FlateDecode/Length %d>>\n"
        b"stream\n%s\nendstream\nendobj\n"
        % (len(table), len(stream), stream)
        + b"7 0 obj\n<</Type/XRef/Size 8/Root 1 0 R/W[1 2 1]/Length 40>>\nstream\n"
        + b"\0" * 40
        + b"\nendstream\nendobj\nstartxref\n0\n%%EOF"
    )


def test_a_page_of_signs_is_noise_and_not_text():
    noise = ["\"#$!%&'%$()!&*!)#$!+&,-!(,&%$..&,!(,$-/)$.!0&-$,'!%&" for _ in range(12)]
    with pytest.raises(DocumentRejected) as error:
        read(made(column(60, noise)))
    assert error.value.code == "no_text"
    document = read(made(column(60, prose("a", 9, 9)), column(60, noise)))
    assert codes(document) == ["text_damaged"]
    assert "#$" not in text_of(document)


def test_links_and_scripts_leave_no_trace():
    def page(canvas):
        put(canvas, [(60, 100, "See the manual.")])
        canvas.linkURL("https://example.org/track?id=1", (60, HEIGHT - 105, 200, HEIGHT - 90))

    assert text_of(read(made(page))) == "See the manual."


def test_text_alone_is_what_pdfium_gives():
    content = made([(60, 80, "First line"), (60, 100, "second line")], [(60, 80, "Next page")])
    assert [page.split() for page in pages_as_text(content)] == [
        ["First", "line", "second", "line"], ["Next", "page"],
    ]  # fmt: skip


def test_memory_stays_flat_over_many_documents():
    import psutil

    content = made(*(column(60, prose(f"p{n}x", 40, 9)) for n in range(1, 11)))
    process = psutil.Process()
    for _ in range(5):
        read(content)
    before = process.memory_info().rss
    for _ in range(40):
        read(content)
    assert process.memory_info().rss < before * 1.1 + (4 << 20)


@pytest.mark.parametrize("case", ["D09/ligatures.pdf", "D11/two_columns.pdf", "D12/header_hyphen.pdf"])
def test_shared_cases_are_read_as_people_read_them(shared_data, case):
    path = shared_data / "cases" / case
    if not path.exists():
        pytest.skip("this case is not beside the checkout")
    document = read(path.read_bytes())
    text = text_of(document)
    if case.startswith("D09"):
        assert "classifies each workflow and profile" in text.replace("\ufb01", "fi").replace(
            "\ufb02", "fl"
        ).replace("\ufb00", "ff")
        assert [(w.code, w.pages) for w in document.warnings] == [("text_damaged", (2,))]
    elif case.startswith("D11"):
        assert "discussion about pumps. Spare pumps are stored in warehouse nine" in text
    else:
        assert "eleven hours" in text
        assert all(word in text for word in ("configuration", "replacement", "well-known"))
        assert "cool-down" in text or "cooldown" in text
        sentence = next(block for block in document.blocks if "eleven hours" in block.text)
        assert {f.page for f in sentence.fragments} == {1, 2}


def test_what_is_expected_of_shared_documents_is_in_their_text(shared_data):
    import unicodedata

    folder = shared_data / "data" / "docs"
    if not (folder / "expected.jsonl").exists():
        pytest.skip("these documents are not beside the checkout")

    def folded(text: str) -> str:
        return "".join(unicodedata.normalize("NFKC", text).split())

    for line in (folder / "expected.jsonl").read_text().splitlines():
        case = json.loads(line)
        if (
            not case["file"].endswith(".pdf")
            or case["outcome"] != "ok"
            or case["file"] == "pdf_image_only.pdf"
        ):
            continue
        text = folded(text_of(read((folder / case["file"]).read_bytes())))
        assert [phrase for phrase in case["contains"] if folded(phrase) not in text] == [], case["file"]


def test_pages_that_cannot_be_loaded_are_named(monkeypatch):
    content = made(column(60, prose("a", 3, 9)), column(60, prose("b", 3, 9)))
    load = pdfium.FPDF_LoadPage
    monkeypatch.setattr(
        pdfium, "FPDF_LoadPage", lambda document, index: None if index == 1 else load(document, index)
    )
    document = read(content)
    assert document.partial
    assert [(w.code, w.pages) for w in document.warnings] == [("pages_unreadable", (2,))]
