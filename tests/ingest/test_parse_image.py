from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from PIL import Image

from core.errors import DocumentRejected
from ingest.normalize import NormalizedDocument, build
from ingest.parse import ocr, parse_bytes, recognise
from ingest.parse.model import BlockKind, OcrMode, ParseOptions
from ingest.parse.progress import PagesRead, listen
from tests.ingest.parsing import read
from tests.ingest.pictures import A4, drawn, encoded, scan_pdf, written

pytestmark = pytest.mark.skipif(not ocr.available(), reason="the extra `ocr` is not installed")

ENGLISH = (
    "The reservoir at Greyfell was completed in 1962.\n"
    "Its dam is 48 metres high and 310 metres long.\n"
    "Two turbines supply 14 megawatts to the valley."
)
CHINESE = "青石水库建成于一九七三年。\n大坝高四十二米,长三百一十米。\n每年四月开闸放水一次。"


def plain(text: str) -> str:
    return re.sub(r"\s+", "", text).replace("，", ",")


def of(image: Image.Image, name: str = "scan.png") -> NormalizedDocument:
    return read(encoded(image), name)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_a_drawn_page_is_read_word_for_word(text: str) -> None:
    document = of(written(text))
    assert plain(document.text) == plain(text)
    assert document.pages == 1
    assert [(w["code"], w["pages"]) for w in document.warnings] == [("ocr_used", [1])]


@pytest.mark.parametrize("quarter", [1, 2, 3])
@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_a_page_that_lies_on_its_side_or_head_is_read(text: str, quarter: int) -> None:
    page = written(text)
    turned = page.transpose(
        {1: Image.Transpose.ROTATE_90, 2: Image.Transpose.ROTATE_180, 3: Image.Transpose.ROTATE_270}[quarter]
    )
    document = of(turned)
    assert plain(document.text) == plain(text)
    # The boxes lie on the page as it is shown: over ink, not over paper.
    for at in (0, len(document.text) - 1):
        box = document.offset_map.segments_of(span(at))[0].box
        assert box is not None
        assert ink(turned, box) > 0.02


def span(at: int):
    from core.types import Span

    return Span(at, at + 1)


def ink(image: Image.Image, box) -> float:
    area = image.convert("L").crop((int(box.x0), int(box.top), int(box.x1), int(box.bottom)))
    return sum(1 for v in area.tobytes() if v < 128) / max(1, area.width * area.height)


@pytest.mark.parametrize("degrees", [2.0, -3.0])
def test_a_page_that_hangs_askew_is_read_line_by_line(degrees: float) -> None:
    text = "\n".join(f"Line {n} of the log: pump {n} ran for {n * 3} hours." for n in range(11, 18))
    document = of(
        written(text, leading=1.5).rotate(degrees, fillcolor="white", resample=Image.Resampling.BICUBIC)
    )
    assert plain(document.text) == plain(text)


def test_small_letters_are_read_from_an_enlarged_picture() -> None:
    small = written(ENGLISH, size=11, paper=(520, 300))
    assert plain(of(small).text) == plain(ENGLISH)


def test_a_long_screenshot_is_read_to_its_end() -> None:
    lines = [f"第{n}条消息: 今天的气温是{n}度。" for n in range(10, 52)]
    page = written("\n".join(lines), size=26, paper=(500, 2100), leading=1.75)
    found = plain(of(page).text)
    assert [n for n, line in enumerate(lines) if plain(line) not in found.replace("：", ":")] == []


def test_columns_and_headings_of_a_scan_are_found_as_in_a_text_layer() -> None:
    left = [f"The left column tells of pumps, part {n}." for n in range(8)]
    right = [f"The right column tells of valves, part {n}." for n in range(8)]
    page = drawn(
        [(90.0, 260 + 46 * n, t) for n, t in enumerate(left)]
        + [(660.0, 260 + 46 * n, t) for n, t in enumerate(right)],
        size=24,
    )
    page.paste(drawn([(0, 0, "Spare parts manual")], size=56, paper=(700, 90)), (90, 110))
    document = of(page)
    assert document.outline[0]["text"] == "Spare parts manual"
    body = plain(document.text)
    assert body.index(plain(left[7])) < body.index(plain(right[0]))


def test_a_scanned_pdf_is_read_with_boxes_in_points() -> None:
    document = read(scan_pdf(written(ENGLISH)), "scan.pdf")
    assert plain(document.text) == plain(ENGLISH)
    place = document.offset_map.place(span(0))
    assert place.page == 1
    assert place.boxes[0].x0 == pytest.approx(100 * 72 / 150, abs=3)
    assert place.boxes[0].top == pytest.approx(128 * 72 / 150, abs=6)


def test_only_the_pages_without_text_of_a_mixed_pdf_are_recognised() -> None:
    document = read(scan_pdf("The typed page speaks of anchors.", written(ENGLISH)), "mixed.pdf")
    assert "anchors" in document.text
    assert plain(ENGLISH) in plain(document.text)
    assert [(w["code"], w["pages"]) for w in document.warnings] == [("ocr_used", [2])]
    assert document.pages == 2


def stamped(picture: Image.Image, stamp: str) -> bytes:
    """A full-page picture with a line of typed text over it."""
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(595, 842), invariant=1)
    canvas.drawImage(ImageReader(picture), 0, 0, 595, 842)
    canvas.drawString(440, 20, stamp)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def test_a_scan_that_only_a_stamp_of_text_stands_on_is_recognised() -> None:
    document = read(stamped(written(ENGLISH), "Scanned by PocketScan"), "stamped.pdf")
    assert plain(ENGLISH) in plain(document.text)
    assert "ocr_used" in [w["code"] for w in document.warnings]


def test_a_typed_title_over_a_photograph_is_taken_as_typed() -> None:
    photograph = Image.linear_gradient("L").resize((600, 850)).convert("RGB")
    document = read(stamped(photograph, "Annual report"), "cover.pdf")
    assert document.text == "Annual report"
    assert document.warnings == []


def test_pages_past_the_cap_are_left_out_and_named() -> None:
    pages = [written(f"Page {n} of the ledger is about barley.", paper=(900, 300)) for n in (1, 2, 3)]
    content = scan_pdf(*pages)
    document = build(parse_bytes(content, "a.pdf", options=ParseOptions(ocr_max_pages=2)))
    assert document.partial
    assert "Page 2" in document.text
    assert "Page 3" not in document.text
    assert ("ocr_page_limit", [3]) in [(w["code"], w["pages"]) for w in document.warnings]


def test_every_frame_of_a_tiff_is_a_page() -> None:
    frames = [written(f"Sheet {n}: the tide turns at {n} o'clock.", paper=(1000, 300)) for n in (4, 5)]
    content = encoded(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    document = read(content, "fax.tiff")
    assert document.pages == 2
    assert document.offset_map.page_at(document.text.index("Sheet 5")) == 2


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "BMP", "GIF", "TIFF"])
def test_every_kind_of_picture_is_read(kind: str) -> None:
    document = read(encoded(written(ENGLISH, paper=(1000, 330)), kind), f"scan.{kind.lower()}")
    assert plain(document.text) == plain(ENGLISH)


def test_the_orientation_that_a_camera_noted_is_kept() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees with the clock to show it
    page = written(ENGLISH).transpose(Image.Transpose.ROTATE_90)
    document = read(encoded(page, "JPEG", exif=exif), "photo.jpg")
    assert plain(document.text) == plain(ENGLISH)
    assert document.offset_map.place(span(0)).boxes[0].x0 == pytest.approx(100, abs=6)


def test_letters_on_a_clear_or_dark_ground_are_read() -> None:
    page = written(ENGLISH, paper=(1000, 330))
    clear = page.convert("RGBA")
    clear.putalpha(page.convert("L").point(lambda v: 255 - v))
    assert plain(of(clear).text) == plain(ENGLISH)
    dark = Image.eval(page, lambda v: 255 - v)
    assert plain(of(dark).text) == plain(ENGLISH)


@pytest.mark.parametrize(
    "wrap", [lambda page: (encoded(page), "a.png"), lambda page: (scan_pdf(page), "a.pdf")]
)
def test_a_picture_without_letters_is_refused_with_a_reason(wrap) -> None:
    content, name = wrap(Image.linear_gradient("L").resize((600, 600)).convert("RGB"))
    with pytest.raises(DocumentRejected, match="recognised") as error:
        read(content, name)
    assert error.value.code == "no_text"


@pytest.mark.parametrize("name", ["a.png", "a.pdf"])
def test_without_recognition_a_picture_is_refused_with_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = written(ENGLISH, paper=(1000, 330))
    content = encoded(page) if name == "a.png" else scan_pdf(page)
    with pytest.raises(DocumentRejected, match="GEO_INGEST__OCR") as error:
        parse_bytes(content, name, options=ParseOptions(ocr=OcrMode.OFF))
    assert error.value.code == "no_text"
    monkeypatch.setattr(recognise.ocr, "available", lambda: False)
    with pytest.raises(DocumentRejected, match=r"geo-engine\[ocr\]") as error:
        parse_bytes(content, name)
    assert error.value.code == "no_text"


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded() -> None:
    huge = Image.new("1", (40_000, 10_000), 1)
    with pytest.raises(DocumentRejected, match="pixels") as error:
        read(encoded(huge), "huge.png")
    assert error.value.code == "too_big"


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_of_a_picture_that_is_cut_off_the_rest_is_read(kind: str) -> None:
    content = encoded(written(ENGLISH, paper=(1000, 700)), kind)
    document = read(content[: int(0.9 * len(content))], f"cut.{kind.lower()}")
    assert "completed in 1962" in document.text
    assert document.partial
    assert ("pages_damaged", [1]) in [(w["code"], w["pages"]) for w in document.warnings]
    with pytest.raises(DocumentRejected) as error:
        read(content[:300], f"cut.{kind.lower()}")
    assert error.value.code == "corrupt"


def test_a_parser_tells_each_page_and_never_goes_back() -> None:
    seen: list[PagesRead] = []
    listen(seen.append)
    try:
        read(scan_pdf("typed", written(ENGLISH, paper=(1000, 330)), "typed again"), "a.pdf")
    finally:
        listen(None)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert {p.total for p in seen} == {3}
    assert seen[-1] == PagesRead(3, 3)
    assert [p.done for p in seen if p.recognising] == [1]


def test_recognised_lines_of_one_paragraph_stay_one_paragraph() -> None:
    text = (
        "Keepers of the light climb the tower every evening before sunset and\n"
        "trim the lamp, wind the clockwork and write the weather into the log,\n"
        "which is read by the harbour master on the first day of the month."
    )
    blocks = parse_bytes(encoded(written(text, size=28)), "a.png").blocks
    assert [b.kind for b in blocks] == [BlockKind.PARAGRAPH]


def test_huge_pictures_are_read_from_a_smaller_copy() -> None:
    big = written(ENGLISH, size=120, paper=(A4[0] * 4, A4[1] * 2))
    document = of(big)
    assert plain(document.text) == plain(ENGLISH)
    assert document.offset_map.place(span(0)).boxes[0].x1 > A4[0]


def test_the_image_only_pdf_gives_its_text_and_a_scan_with_a_text_layer_is_left_to_it(
    shared_data: Path,
) -> None:
    scan = read((shared_data / "data/docs/pdf_image_only.pdf").read_bytes(), "a.pdf")
    assert "Docling bundles PDF document conversion" in scan.text
    layered = read((shared_data / "data/docs/pdf_scanned_with_ocr_layer.pdf").read_bytes(), "a.pdf")
    assert "coming with fifty thousand men to raise the siege" in layered.text
    assert "ocr_used" not in [w["code"] for w in layered.warnings]


def test_a_scan_without_any_letter_is_not_taken_for_read(shared_data: Path) -> None:
    for name in ("cases/D10/no_text_layer.pdf", "data/docs/pdf_empty_page.pdf"):
        with pytest.raises(DocumentRejected) as error:
            read((shared_data / name).read_bytes(), "a.pdf")
        assert error.value.code == "no_text"
        assert error.value.detail
