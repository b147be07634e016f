import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import DocumentRejected
from core.types import Box, Span
from ingest.clean import clean, clean_with_runs
from ingest.normalize import build
from ingest.offset_map import OffsetMap, Segment
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument

MESSY = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "ab é 中文，。\t\n\r\x00\x07\u200b\u200d\u3000\u00a0\ufb01\u0301e\u0308\ufeff\u202e😀👨"
        ),
        st.characters(),
    ),
    max_size=60,
)


@given(MESSY)
def test_cleaned_text_is_nfc_on_one_line_without_controls(text):
    cleaned = clean(text)
    assert unicodedata.is_normalized("NFC", cleaned)
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in cleaned)
    assert cleaned == cleaned.strip()
    assert "  " not in cleaned
    cleaned.encode()


@given(MESSY)
def test_runs_cover_the_cleaned_text_and_ascend_in_the_source(text):
    cleaned, runs = clean_with_runs(text)
    assert sum(r.length for r in runs) == len(cleaned)
    at = 0
    last_end = 0
    for run in runs:
        assert run.source_start >= last_end
        last_end = run.source_start + run.source_length
        if run.length == run.source_length and run.length > 1:
            assert cleaned[at : at + run.length] == text[run.source_start : last_end]
        at += run.length
    assert last_end <= len(text)


@given(st.lists(st.tuples(MESSY, st.integers(0, 3)), min_size=1, max_size=8))
def test_any_span_of_the_normalized_text_leads_into_its_own_source(pieces):
    source = "\n".join(text for text, _ in pieces)
    blocks = []
    at = 0
    for number, (text, _) in enumerate(pieces):
        fragment = Fragment(text, "", start=at, line=number + 1, page=number + 1)
        blocks.append(Block(BlockKind.PARAGRAPH, (fragment,), paragraph=number))
        at += len(text) + 1
    try:
        document = build(ParsedDocument("text/plain", tuple(blocks)))
    except DocumentRejected:
        return
    for block in document.blocks:
        shown = document.text[block.span.start : block.span.end]
        assert "\n" not in shown
        for start in range(0, len(shown), 7):
            end = min(len(shown), start + 5)
            span = Span(block.span.start + start, block.span.start + end)
            place = document.offset_map.place(span)
            assert place.start is not None
            assert place.end is not None
            assert (
                clean(shown[start:end]) in clean(source[place.start : place.end])
                or len(clean(shown[start:end])) < 5
            )
            assert place.page == place.line
    stored = OffsetMap.from_bytes(document.offset_map.to_bytes())
    assert stored == document.offset_map


def test_headings_form_the_outline_and_the_paths():
    blocks = [
        Block(BlockKind.HEADING, (Fragment("A"),), level=1),
        Block(BlockKind.HEADING, (Fragment("A.1"),), level=2),
        Block(BlockKind.PARAGRAPH, (Fragment("x"),)),
        Block(BlockKind.HEADING, (Fragment("B"),), level=1),
        Block(BlockKind.PARAGRAPH, (Fragment("y"),)),
    ]
    document = build(ParsedDocument("text/plain", tuple(blocks)))
    assert [b.heading_path for b in document.blocks] == [(), ("A",), ("A", "A.1"), (), ("B",)]
    assert [document.text[h["start"] : h["end"]] for h in document.outline] == ["A", "A.1", "B"]


def test_width_and_case_are_shown_as_written():
    block = Block(BlockKind.PARAGRAPH, (Fragment("型号ＸＹ－２０８０　额定１６Ａ"),))
    assert build(ParsedDocument("text/plain", (block,))).text == "型号ＸＹ－２０８０ 额定１６Ａ"


def test_emoji_joiners_stay_and_hidden_joiners_go():
    assert clean("👨‍👩‍👧 a\u200db") == "👨‍👩‍👧 ab"


def test_a_document_of_marks_alone_is_empty():
    with pytest.raises(DocumentRejected) as error:
        build(ParsedDocument("text/plain", (Block(BlockKind.PARAGRAPH, (Fragment("---- …"),)),)))
    assert error.value.code == "empty"


def test_an_offset_map_survives_storage_with_boxes_and_members():
    segments = [
        Segment(0, 5, 10, 5, line=2),
        Segment(7, 3, page=1, box=Box(1.5, 2, 3, 4)),
        Segment(10, 4, page=2, box=Box(5, 6, 7, 8), member="chapter"),
    ]
    stored = OffsetMap.from_bytes(OffsetMap(segments).to_bytes())
    assert stored == OffsetMap(segments)
    assert [p.page for p in stored.places(Span(8, 12))] == [1, 2]
    assert stored.place(Span(1, 3)).start == 11
    assert stored.place(Span(5, 6)).line == 2  # glue belongs to what stands before it


@pytest.mark.parametrize("stored", [b"", b"x", b"GOM1"])
def test_bytes_that_are_no_offset_map_are_refused(stored):
    with pytest.raises(ValueError, match="offset map"):
        OffsetMap.from_bytes(stored)


def test_overlapping_segments_are_refused():
    with pytest.raises(ValueError, match="overlap"):
        OffsetMap([Segment(0, 5), Segment(4, 2)])


def test_what_is_told_without_a_search_is_what_the_search_finds():
    from ingest import clean

    for number in range(0x110000):
        character = chr(number)
        found = clean._HAS_ODD.search(character) is not None
        assert clean.has_odd(character) == found, hex(number)
    for text in ("a  b", "a b", "", " ", "x\u3000y", "ﬁ", "中文。", "it’s", "e\u0301"):
        assert clean.has_odd(text) == (clean._HAS_ODD.search(text) is not None)
