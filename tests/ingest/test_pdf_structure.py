import pytest

from tests.ingest.pdfs import (
    HEIGHT,
    chinese,
    column,
    headings,
    kinds,
    made,
    prose,
    put,
    read,
    rows,
    text_of,
)  # fmt: skip


def bold(canvas, texts, size=11):
    put(canvas, texts, "Helvetica-Bold", size)


def test_headings_are_found_by_size_weight_and_numbering():
    def page(canvas):
        put(canvas, [(60, 60, "Handbook of the station")], "Helvetica-Bold", 20)
        bold(canvas, [(60, 100, "1 Pumps")], 14)
        put(canvas, column(60, prose("a", 4, 9), 125))
        bold(canvas, [(60, 200, "1.1 Seals")], 14)
        put(canvas, column(60, prose("b", 4, 9), 225))
        bold(canvas, [(60, 300, "Storage of seals")])
        put(canvas, column(60, prose("c", 4, 9), 320))
        bold(canvas, [(60, 400, "Warning: "), (115, 400, "")])
        put(canvas, [(115, 400, "never open the valve under pressure, not even at night.")])

    assert headings(read(made(page))) == [
        (1, "Handbook of the station"), (2, "1 Pumps"), (3, "1.1 Seals"), (3, "Storage of seals"),
    ]  # fmt: skip


def test_bookmarks_name_headings_that_look_like_text():
    def page(canvas):
        for y, title, level in ((80, "Opening hours", 0), (140, "At night", 1)):
            canvas.bookmarkHorizontal(title, 0, HEIGHT - y)
            canvas.addOutlineEntry(title, title, level)
            put(canvas, [(60, y, title)])
            put(canvas, column(60, prose("a", 2, 9), y + 24))

    assert headings(read(made(page))) == [(1, "Opening hours"), (2, "At night")]


def test_bold_labels_of_a_form_are_no_headings():
    def page(canvas):
        bold(canvas, column(60, ["Name", "Street", "Town", "Country", "Phone"], 80, 30))
        put(canvas, column(60, prose("a", 4, 9), 300))

    assert headings(read(made(page))) == []


def test_list_items_stay_apart_and_keep_their_second_lines():
    lines = [
        "The crew checks three things every morning:",
        "• the seals of the pump and the gauges that stand beside it, which are",
        "   read from left to right;",
        "• the oil;",
        "1. the journal, and",
        "2) the key.",
    ]
    found = kinds(read(made(column(60, lines))))
    assert [kind for kind, _ in found] == ["paragraph", "list_item", "list_item", "list_item", "list_item"]
    assert found[1][1].endswith("which are read from left to right;")


def test_chinese_headings_and_lists():
    def page(canvas):
        chinese(canvas, 16)
        canvas.drawString(60, HEIGHT - 80, "第二章 设备维护")
        chinese(canvas)
        for i, line in enumerate(
            [
                "每班开机前必须检查油位和密封，并把读数写入当班记录。",
                "一、检查油位",
                "二、检查密封",
                "（1）更换滤芯",
            ]
        ):
            canvas.drawString(60, HEIGHT - 110 - 16 * i, line)

    document = read(made(page))
    assert headings(document) == [(1, "第二章 设备维护")]
    assert [kind for kind, _ in kinds(document)] == [
        "heading",
        "paragraph",
        "list_item",
        "list_item",
        "list_item",
    ]


def test_code_keeps_its_lines():
    def page(canvas):
        put(canvas, column(60, prose("a", 6, 9)))
        put(
            canvas,
            column(60, ["def close(valve):", "    valve.turn(90)", "    return valve"], 180),
            "Courier",
            10,
        )
        put(canvas, column(60, prose("b", 6, 9), 240))

    found = [text for kind, text in kinds(read(made(page))) if kind == "code"]
    assert found == ["def close(valve):", "valve.turn(90)", "return valve"]


def test_a_word_in_code_letters_does_not_part_a_paragraph():
    def page(canvas):
        put(canvas, [(60, 80, "Every operator who is on duty during the night must call the function")])
        put(canvas, [(60, 94, "close_valve()")], "Courier", 11)
        put(canvas, [(160, 94, "before the gauges show less pressure than the orders allow.")])
        put(canvas, column(60, prose("a", 6, 9), 108))

    assert "call the function close_valve() before the gauges" in text_of(read(made(page)))


def test_entries_of_a_table_of_contents_are_items():
    dots = " " + ". " * 30
    lines = [f"{n} Chapter number {n}{dots}{n * 7}" for n in range(1, 5)]
    assert [kind for kind, _ in kinds(read(made(column(60, lines))))] == ["list_item"] * 4


def test_raised_marks_are_written_as_marks():
    def page(canvas):
        put(canvas, [(60, 80, "The policy"), (260, 80, "weighs 4 m")])
        put(canvas, [(112.5, 76, "12"), (312.5, 76, "2")], size=6.5)
        put(canvas, [(122, 80, "holds for every crew, and"), (320, 80, "of it.")])
        put(canvas, [(60, 700, "12")], size=5)
        put(canvas, [(66.5, 703, "See the journal.")], size=8)

    text = text_of(read(made(page)))
    assert "policy ¹² holds" in text
    assert "4 m² of it" in text
    assert "¹² See the journal." in text


def grid(canvas, xs, ys):
    for x in xs:
        canvas.line(x, HEIGHT - ys[0], x, HEIGHT - ys[-1])
    for y in ys:
        canvas.line(xs[0], HEIGHT - y, xs[-1], HEIGHT - y)


def test_a_table_with_borders_keeps_cells_of_several_lines():
    def page(canvas):
        grid(canvas, [60, 160, 400, 480], [80, 100, 140, 160])
        bold(canvas, [(64, 94, "Part"), (164, 94, "What it is for"), (404, 94, "Stock")])
        put(
            canvas,
            [
                (64, 114, "Seal"),
                (164, 114, "Keeps the water in the"),
                (164, 130, "pump at night"),
                (404, 114, "45"),
            ],
        )
        put(canvas, [(64, 154, "Nut"), (164, 154, "Holds the seal"), (404, 154, "")])
        put(canvas, column(60, prose("a", 4, 9), 190))

    found = rows(read(made(page)))
    assert [row.text for row in found] == [
        "Part | What it is for | Stock",
        "Seal | Keeps the water in the pump at night | 45",
        "Nut | Holds the seal | ",
    ]
    assert [row.is_table_header for row in found] == [True, False, False]


def test_cells_close_to_a_border_are_not_joined_over_it():
    def page(canvas):
        grid(canvas, [60, 110, 160], [80, 100, 120])
        put(canvas, [(64, 94, "Quantity"), (111.5, 94, "Unit"), (64, 114, "1234567"), (111.5, 114, "litres")])

    assert [row.text for row in rows(read(made(page)))] == ["Quantity | Unit", "1234567 | litres"]


def test_a_bar_in_the_margin_is_no_table():
    def page(canvas):
        canvas.line(40, HEIGHT - 80, 40, HEIGHT - 200)
        for y in (300, 320, 340, 360):
            canvas.line(60, HEIGHT - y, 300, HEIGHT - y)
        put(canvas, column(60, prose("a", 12, 9)))

    document = read(made(page))
    assert rows(document) == []
    assert "a12 " in text_of(document)


def test_merged_cells_repeat_down_and_stay_empty_across():
    def page(canvas):
        for y in (80, 100, 140):
            canvas.line(60, HEIGHT - y, 360, HEIGHT - y)
        canvas.line(160, HEIGHT - 120, 360, HEIGHT - 120)  # the first column is merged over two rows
        for x in (60, 360):
            canvas.line(x, HEIGHT - 80, x, HEIGHT - 140)
        canvas.line(160, HEIGHT - 80, 160, HEIGHT - 140)
        canvas.line(260, HEIGHT - 100, 260, HEIGHT - 140)  # the head is merged over two columns
        put(canvas, [(64, 94, "Pump"), (164, 94, "Readings of March")])
        put(canvas, [(64, 124, "M-187"), (164, 114, "morning"), (264, 114, "878")])
        put(canvas, [(164, 134, "evening"), (264, 134, "661")])

    assert [row.text for row in rows(read(made(page)))] == [
        "Pump | Readings of March | ",
        "M-187 | morning | 878",
        "M-187 | evening | 661",
    ]


def test_a_table_that_goes_on_over_the_page_keeps_one_header():
    def page(first, last):
        def draw(canvas):
            ys = [80 + 20 * i for i in range(last - first + 3)]
            grid(canvas, [60, 160, 260], ys)
            bold(canvas, [(64, 94, "Number"), (164, 94, "Reading")])
            put(
                canvas,
                [
                    t
                    for i in range(first, last + 1)
                    for t in (
                        (64, 114 + 20 * (i - first), f"M-{i}"),
                        (164, 114 + 20 * (i - first), f"{i * 3}"),
                    )
                ],
            )

        return draw

    found = rows(read(made(page(1, 8), page(9, 12))))
    assert len({row.table for row in found}) == 1
    assert [row.text for row in found].count("Number | Reading") == 1
    assert found[-1].text == "M-12 | 36"


def test_aligned_cells_share_columns_and_empty_ones_stay():
    cells = [("Part", "Stock", "Price"), ("Seal", "45", "1.20"), ("Nut", "", "0.05"), ("Valve", "3", "")]
    page = [
        (x, 100 + 16 * r, c)
        for r, row in enumerate(cells)
        for x, c in zip((60, 220, 380), row, strict=True)
        if c
    ]
    assert [row.text for row in rows(read(made(page)))] == [
        "Part | Stock | Price", "Seal | 45 | 1.20", "Nut |  | 0.05", "Valve | 3 | ",
    ]  # fmt: skip


@pytest.mark.parametrize("columns", [2, 3])
def test_cells_are_no_columns_of_text(columns):
    page = [(60 + 170 * c, 100 + 16 * r, f"cell {r} {c}") for r in range(12) for c in range(columns)]
    found = rows(read(made(page)))
    assert found[0].text == " | ".join(f"cell 0 {c}" for c in range(columns))
    assert len(found) == 12
