import pytest

from core.errors import DocumentRejected
from core.types import Span
from tests.ingest.parsing import SAMPLES, cut, pdf, read


def column(x: float, lines: list[str], top: float = 80) -> list[tuple[float, float, str]]:
    return [(x, top + 14 * i, line) for i, line in enumerate(lines)]


def interleaved(*columns: list[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Row by row, as many programs write columns."""
    return sorted((p for c in columns for p in c), key=lambda p: (p[1], p[0]))


LEFT = [
    "The review board accepted the",
    "yearly budget after a long",
    "discussion about pumps.",
    "Spare pumps are stored in",
]
RIGHT = [
    "warehouse nine, row four.",
    "Only the duty officer may",
    "open that row at night.",
    "Requests go by form 12.",
]


def test_columns_are_read_one_after_the_other():
    document = read(pdf(interleaved(column(60, LEFT), column(330, RIGHT))), "a.pdf")
    assert "discussion about pumps. Spare pumps are stored in warehouse nine, row four." in document.text


def test_a_title_over_two_columns_comes_first():
    page = [
        (60, 60, "A title that runs over both of the columns of this page"),
        *interleaved(column(60, LEFT), column(330, RIGHT)),
    ]
    text = read(pdf(page), "a.pdf").text
    assert text.index("A title") < text.index("The review board") < text.index("warehouse nine")


def test_page_furniture_goes_and_sentences_run_over_pages():
    pages = [
        [(60, 30, "Quarterly Safety Bulletin"), *column(60, body), (290, 810, f"- {n} -")]
        for n, body in enumerate(
            [
                [
                    "All operators must complete the list before start. The limit for",
                    "continuous running is eleven",
                ],
                ["hours, after which a one hour pause is mandatory for every crew.", "Records are kept."],
                ["Contact the shift lead for a form.", "The form is blue."],
            ],
            start=1,
        )
    ]
    document = read(pdf(*pages), "a.pdf")
    assert "Bulletin" not in document.text
    assert "- 2 -" not in document.text
    sentence = "The limit for continuous running is eleven hours, after which a one hour pause is mandatory"
    assert sentence in document.text
    at = document.text.index(sentence)
    assert [p.page for p in document.offset_map.places(Span(at, at + len(sentence)))] == [1, 2]


def test_line_end_hyphens_join_words_and_compounds_keep_theirs():
    lines = [
        "All operators must complete the confi-",
        "guration list. A well-known case is the self-",
        "locking nut of model F-",
        "16, which is well-",
        "known to everybody.",
    ]
    text = read(pdf(column(60, lines)), "a.pdf").text
    assert "configuration list" in text
    assert "self-locking nut" in text
    assert "F-16" in text
    assert "well-known to everybody" in text


def test_every_span_has_its_page_and_boxes():
    document = read(pdf(column(60, LEFT), column(60, RIGHT, top=200)), "a.pdf")
    at = document.text.index("Only the duty officer")
    place = document.offset_map.place(Span(at, at + 10))
    assert place.page == 2
    assert len(place.boxes) == 1
    box = place.boxes[0]
    assert box.x0 == pytest.approx(60, abs=1)
    assert box.top < 214 < box.bottom


def test_table_rows_keep_their_cells_apart():
    page = [
        (x, 100 + 16 * r, cell)
        for r, row in enumerate([("Part", "Stock"), ("Seal", "45"), ("Nut", "120")])
        for x, cell in zip((60, 240), row, strict=True)
    ]
    document = read(pdf(page), "a.pdf")
    assert document.text == "Part | Stock\nSeal | 45\nNut | 120"
    assert document.blocks[1].table_header == "Part | Stock"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (pdf([]), "no_text"),
        (pdf([(60, 80, "secret text")], password="pw"), "encrypted"),
        (pdf([(60, 80, "some text here")])[:400], "corrupt"),
        (b"%PDF-1.7\nnothing more", "corrupt"),
    ],
)
def test_a_pdf_that_gives_no_text_says_why(content, reason):
    with pytest.raises(DocumentRejected) as error:
        read(content, "a.pdf")
    assert error.value.code == reason


def test_a_page_without_text_and_picture_is_said_to_have_none():
    with pytest.raises(DocumentRejected, match="no text layer") as error:
        read(pdf([]), "scan.pdf")
    assert error.value.code == "no_text"


def test_pages_without_text_are_named():
    document = read(pdf([(60, 80, "Only the first page holds text.")], []), "a.pdf")
    assert [(w["code"], w["pages"]) for w in document.warnings] == [("pages_without_text", [2])]


def test_the_samples_have_headings_tables_and_pages():
    manual = read((SAMPLES / "kestrel-k7-manual.pdf").read_bytes(), "kestrel-k7-manual.pdf")
    assert [h["text"] for h in manual.outline][1:] == [
        "1 Installation", "2 First start", "3 Maintenance", "4 Fault codes", "5 Storage",
    ]  # fmt: skip
    assert manual.pages == 2
    assert cut(manual)[-1].page == 2
    assert "Diaphragm kit | DK-7 | 2,000 hours" in manual.text
    observatory = read((SAMPLES / "xinglan-observatory.pdf").read_bytes(), "xinglan-observatory.pdf")
    assert "到目前为止，听雪一共发现了四十七颗近地小行星。" in observatory.text
    assert observatory.lang == "zh"
