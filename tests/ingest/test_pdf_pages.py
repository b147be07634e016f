import io

import pypdfium2
import pytest

from tests.ingest.pdfs import (
    HEIGHT,
    WIDTH,
    chinese,
    codes,
    column,
    kinds,
    made,
    order,
    prose,
    put,
    read,
    row_by_row,
    text_of,
)


def rotated(content: bytes, degrees: int) -> bytes:
    document = pypdfium2.PdfDocument(content)
    for page in document:
        page.set_rotation(degrees)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_a_page_that_is_shown_turned_has_its_boxes_as_shown():
    document = read(rotated(made([(60, 80, "Spare pumps are stored in warehouse nine.")]), 90))
    box = document.blocks[0].fragments[0].box
    assert text_of(document) == "Spare pumps are stored in warehouse nine."
    assert box is not None
    assert box.bottom - box.top > 5 * (box.x1 - box.x0)  # the line runs down the shown page
    assert box.x0 == pytest.approx(HEIGHT - 80, abs=4)
    assert box.top == pytest.approx(60, abs=2)


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_text_written_turned_is_read_along_its_lines(degrees):
    def page(canvas):
        canvas.translate(WIDTH / 2, HEIGHT / 2)
        canvas.rotate(degrees)
        put(canvas, [(x - 200, HEIGHT - 100 + y, text) for x, y, text in column(0, prose("a", 8, 6), 0)])

    document = read(made(page))
    assert order(document, *(f"a{n} " for n in range(1, 9))) == [f"a{n} " for n in range(1, 9)]
    assert "a3 in spring and agreed on the a4" in text_of(document)
    for fragment in document.blocks[0].fragments:
        box = fragment.box
        assert box is not None
        assert (box.x1 - box.x0 > box.bottom - box.top) == (degrees == 180)
        assert 0 <= box.x0 < box.x1 <= WIDTH
        assert 0 <= box.top < box.bottom <= HEIGHT


def test_a_stamp_along_the_edge_does_not_cut_into_the_text():
    def page(canvas):
        put(canvas, column(80, prose("a", 20, 8)))
        canvas.saveState()
        canvas.translate(30, 300)
        canvas.rotate(90)
        canvas.setFont("Helvetica", 14)
        canvas.drawString(0, 0, "Archive copy of the fifth of May")
        canvas.restoreState()

    document = read(made(page))
    assert kinds(document)[-1][1] == "Archive copy of the fifth of May"
    assert len(document.blocks) == 2


def test_columns_of_vertical_chinese_are_read_from_right_to_left():
    columns = [
        "春眠不觉晓处处闻啼鸟夜来风雨声",
        "花落知多少白日依山尽黄河入海流",
        "欲穷千里目更上一层楼床前明月光",
    ]

    def page(canvas):
        chinese(canvas, 14)
        for i, line in enumerate(columns):
            for j, letter in enumerate(line):
                canvas.drawString(450 - 24 * i, HEIGHT - 100 - 16 * j, letter)

    document = read(made(page))
    assert text_of(document) == "".join(columns)
    box = document.blocks[0].fragments[0].box
    assert box is not None
    assert box.x0 > 440
    assert box.bottom - box.top > 10 * (box.x1 - box.x0)


def furnished(number: int, head: str, foot: str) -> list[tuple[float, float, str]]:
    return [(60, 40, head), *column(60, prose(f"p{number}x", 20, 9), 110), (280, 815, foot)]


def test_alternating_headers_and_page_numbers_go():
    pages = [
        furnished(n, f"{n}   Handbook of pumps" if n % 2 == 0 else f"Chapter {1 + n // 8}: Seals   {n}", "")
        for n in range(1, 13)
    ]
    text = text_of(read(made(*pages)))
    assert "Handbook" not in text
    assert "Chapter" not in text
    assert all(f"p{n}x1 " in text for n in range(1, 13))


@pytest.mark.parametrize(
    "foot", ["{n}", "- {n} -", "Page {n} of 6", "{n} / 6", "p. {n}", "~ {n} ~", "{roman}"], ids=str
)
def test_page_numbers_go(foot):
    romans = ["i", "ii", "iii", "iv", "v", "vi"]
    pages = [furnished(n, "", foot.format(n=n, roman=romans[n - 1])) for n in range(1, 7)]
    text = text_of(read(made(*pages)))
    assert all(line.startswith("p") for line in text.splitlines())


@pytest.mark.parametrize("foot", ["第 {n} 页", "第{n}页 共6页", "第 {n} 页，共 6 页", "— {n} —"])
def test_chinese_page_numbers_go_also_on_a_single_page(foot):
    def page(canvas):
        chinese(canvas)
        canvas.drawString(60, HEIGHT - 100, "设备每班开机前必须检查油位和密封。")
        canvas.drawString(280, 25, foot.format(n=1))

    assert text_of(read(made(page))) == "设备每班开机前必须检查油位和密封。"


def test_numbers_of_a_table_at_the_edge_of_the_page_stay():
    pages = [
        [(60 + 90 * c, 60 + 15 * r, f"{n * 100 + r * 7 + c * 31}") for r in range(50) for c in range(4)]
        for n in range(1, 5)
    ]
    text = text_of(read(made(*pages)))
    assert sum(line.count("|") == 3 for line in text.splitlines()) == 200


def test_a_year_or_a_part_number_at_the_edge_stays():
    pages = [[(60, 50, "2019"), *column(60, prose("a", 20, 9), 110)], column(60, prose("b", 20, 9), 110)]
    assert "2019" in text_of(read(made(*pages)))


def test_empty_pages_are_named_and_the_others_read():
    document = read(made([], column(60, prose("a", 3, 9)), []))
    assert "a3 " in text_of(document)
    assert [(w.code, w.pages) for w in document.warnings] == [("pages_without_text", (1, 3))]


def test_two_columns_go_on_over_the_page():
    first = row_by_row(
        column(60, prose("a", 48)), column(320, [*prose("b", 47), "b48 the crew must not"], 80)
    )
    second = row_by_row(
        column(60, ["open the valve at night.", *prose("c", 20)]), column(320, prose("d", 20))
    )
    document = read(made(first, second))
    assert "b48 the crew must not open the valve at night." in text_of(document)
    assert codes(document) == []
