from tests.ingest.pdfs import HEIGHT, column, kinds, made, order, prose, put, read, row_by_row, text_of


def test_three_columns_are_read_in_turn():
    page = row_by_row(
        column(50, prose("a", 8, 3)), column(225, prose("b", 8, 3)), column(400, prose("c", 8, 3))
    )
    document = read(made(page))
    assert order(document, "a1", "a8", "b1", "b8", "c1", "c8") == ["a1", "a8", "b1", "b8", "c1", "c8"]


def test_a_title_between_two_bands_of_columns_parts_them():
    wide = "A heading that runs over both of the columns in the middle of this very page"
    page = [
        *row_by_row(column(60, prose("a", 6)), column(320, prose("b", 6))),
        (60, 200, wide),
        *row_by_row(column(60, prose("c", 6), 240), column(320, prose("d", 6), 240)),
    ]
    found = order(read(made(page)), "a6", "b6", "A heading", "c1", "d1")
    assert found == ["a6", "b6", "A heading", "c1", "d1"]


def test_text_over_the_full_width_above_columns_stays_whole():
    wide = [
        f"w{i} " + "a summary that fills the whole width of the page from edge to edge, as here"
        for i in range(6)
    ]
    page = [
        *column(60, wide, 80),
        *row_by_row(column(60, prose("a", 9), 200), column(320, prose("b", 9), 200)),
    ]
    found = order(read(made(page)), "w0", "w5", "a1", "a9", "b1", "b9")
    assert found == ["w0", "w5", "a1", "a9", "b1", "b9"]


def test_columns_of_different_leading_are_not_mixed():
    page = row_by_row(column(60, prose("a", 20), 80, 14), column(320, prose("b", 15), 87, 18.5))
    document = read(made(page))
    assert order(document, "a1", "a20", "b1", "b15") == ["a1", "a20", "b1", "b15"]


def test_a_sidebar_does_not_cut_into_the_text():
    main = prose("m", 24, 8)
    side = ["s1 Please note that", "the valve must be", "closed by hand at", "noon every day s4"]
    document = read(made(row_by_row(column(60, main), column(440, side, 122))))
    text = text_of(document)
    assert order(document, "m1", "m24", "s1") == ["m1", "m24", "s1"]
    assert "s1 Please note that the valve must be closed by hand at noon every day s4" in text


def test_labels_of_a_figure_in_one_column_leave_the_other_alone():
    def page(canvas):
        put(canvas, row_by_row(column(60, prose("a", 24)), column(320, prose("b", 14), 220)))
        put(canvas, [(330, 100, "hit"), (420, 100, "was"), (340, 120, "coast"), (430, 150, "end")], size=8)

    text = text_of(read(made(page)))
    for number in range(1, 24):
        assert text.index(f"a{number} ") < text.index(f"a{number + 1} ") < text.index("b1 ")
    assert all(f"b{n} " in text for n in range(1, 15))


def test_a_sentence_goes_on_in_the_next_column_past_the_footnote():
    left = [*prose("a", 8), "a9 the inspectors found that the"]
    right = ["valve had been closed for a week.", *prose("b", 8)]

    def page(canvas):
        put(canvas, row_by_row(column(60, left), column(320, right)))
        put(canvas, [(60, 230, "1 See the journal of the board, page nine.")], size=8)

    document = read(made(page))
    assert "found that the valve had been closed for a week." in text_of(document)
    note = next(text for kind, text in kinds(document) if "journal of the board" in text)
    assert "valve" not in note


def test_a_table_or_caption_between_two_pages_does_not_part_a_sentence():
    first = column(
        60, [*prose("a", 10, 9), "a11 and the operators of the second shift are told to wait for the"], 640
    )
    table = [
        (60, 80, "Part"),
        (260, 80, "Stock"),
        (60, 96, "Seal"),
        (260, 96, "45"),
        (60, 112, "Nut"),
        (260, 112, "7"),
    ]
    caption = [(60, 140, "Table 3: Parts that are kept in the store of the station")]
    rest = column(60, ["signal before they open any valve.", *prose("b", 6, 9)], 180)
    document = read(made(first, [*table, *caption, *rest]))
    assert "told to wait for the signal before they open any valve." in text_of(document)
    joined = next(block for block in document.blocks if "told to wait" in block.text)
    assert {f.page for f in joined.fragments} == {1, 2}
    assert "Seal | 45" in text_of(document)


def test_an_initial_over_two_lines_joins_its_word():
    def page(canvas):
        put(canvas, [(60, 104, "T")], size=34)
        put(
            canvas,
            [
                (82, 88, "he board met in spring and agreed on the"),
                (82, 102, "budget for the station near the bend."),
            ],
        )
        put(canvas, column(60, prose("a", 6, 7), 116))

    assert "The board met in spring and agreed on the budget for the station" in text_of(read(made(page)))


def test_single_lines_of_one_column_stay_in_order():
    lines = [f"Entry {n} of the list" for n in range(1, 30)]
    document = read(made(column(60, lines)))
    assert order(document, *(f"Entry {n} of" for n in range(1, 30))) == [
        f"Entry {n} of" for n in range(1, 30)
    ]


def test_every_line_has_its_box():
    document = read(made(column(60, prose("a", 3, 6))))
    boxes = [f.box for block in document.blocks for f in block.fragments]
    assert len(boxes) == 3
    assert all(box is not None and 59 <= box.x0 <= 61 and 0 < box.top < box.bottom < HEIGHT for box in boxes)
    assert [box.top for box in boxes if box] == sorted(box.top for box in boxes if box)


def test_numbers_that_count_the_lines_of_a_page_go():
    for step in (1, 5):
        numbers = [(40, 80 + 14 * (n - 1), str(n)) for n in range(step, 31, step)]
        text = text_of(read(made([*numbers, *column(72, prose("a", 30, 9))])))
        assert "a4 spring and agreed on the budget for the new a5 and" in text
        assert "|" not in text
        assert not any(word.isdecimal() for word in text.split())


def test_numbers_of_a_short_list_stay():
    numbers = [(40, 80 + 14 * n, str(n + 1)) for n in range(6)]
    text = text_of(read(made([*numbers, *column(72, prose("a", 6, 9))])))
    assert {"1", "2", "3", "4", "5", "6"} <= set(text.split())
