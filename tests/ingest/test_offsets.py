"""Every format of text: any span of any passage leads to the place it came from."""

import gc
import json
import time
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core.errors import DocumentRejected
from core.types import Span
from ingest.clean import clean
from ingest.normalize import NormalizedDocument
from ingest.offset_map import OffsetMap
from tests.ingest.parsing import cut, read

# Units that people type: a letter comes with its mark, a joiner with the emoji that it joins.
UNITS = [*"ab Zé中文水泵，。.1２Ａ\u3000\u200b\u00a0\ufb01😀\x07&<*_`#|\\[]()'\"-", "e\u0301", "👨\u200d👩"]
WORDS = st.lists(st.sampled_from(UNITS), min_size=1, max_size=40).map(lambda units: f"x{''.join(units)}y")
LINE_END = st.sampled_from(["\n", "\r\n", "\r"])


def solid(text: str) -> str:
    """Letters and digits of the cleaned text: what is left when markup and white space are put aside."""
    return "".join(c for c in clean(text) if c.isalnum())


def is_subsequence(short: str, long: str) -> bool:
    rest = iter(long)
    return all(c in rest for c in short)


def check(document: NormalizedDocument, source: str, *, exact: bool) -> None:
    """Spans lead to slices that read the same; lines are right; places ascend; storage keeps all."""
    line_ends = source.replace("\r\n", " \n").replace("\r", "\n")
    for draft in cut(document, 24, 64):
        for low in range(draft.span.start, draft.span.end, 11):
            span = Span(low, min(draft.span.end, low + 17))
            shown = document.text[span.start : span.end]
            place = document.offset_map.place(span)
            if place.start is None or place.end is None:
                continue
            there = source[place.start : place.end]
            # A character that stands for several is mapped as a whole, so a cut inside it may show more.
            if exact:
                assert solid(shown) in solid(there)
                assert len(solid(there)) <= len(solid(shown)) + 8
            elif "\\" not in there:
                assert is_subsequence(solid(shown), solid(there))
            if solid(shown)[:1] == shown[:1]:
                assert place.line == 1 + line_ends.count("\n", 0, place.start)
    starts = [document.offset_map.place(block.span).start for block in document.blocks]
    known = [start for start in starts if start is not None]
    assert all(a <= b for a, b in pairwise(known))
    assert OffsetMap.from_bytes(document.offset_map.to_bytes()) == document.offset_map


def read_or_none(source: str, name: str, encoding: str = "utf-8") -> NormalizedDocument | None:
    try:
        return read(source.encode(encoding), name)
    except DocumentRejected:
        return None


@settings(max_examples=50, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=8), LINE_END, st.sampled_from(["utf-8", "gb18030", "utf-16"]))
def test_spans_of_plain_text(lines, end, encoding):
    source = end.join(lines) + end + end + "结束语在这里。" + end
    document = read_or_none(source, "a.txt", encoding)
    if document and document.encoding and document.encoding.startswith(encoding[:5]):
        check(document, source, exact=True)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["", "# ", "- ", "3. ", "> ", "    ", "| a | b |\n|---|---|\n| "]), WORDS),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_spans_of_markdown(pieces, end):
    source = (end + end).join(prefix.replace("\n", end) + text for prefix, text in pieces) + end
    if document := read_or_none(source, "a.md"):
        check(document, source, exact=False)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(WORDS, min_size=2, max_size=4), min_size=1, max_size=8), st.sampled_from("\n\r"))
def test_spans_of_delimited_values(rows, end):
    quoted = [[f'"{cell.replace(chr(34), "")}"' for cell in row] for row in rows]
    source = "".join(",".join(row) + end for row in quoted)
    if document := read_or_none(source, "a.csv"):
        check(document, source, exact=False)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from("abcd"), WORDS, min_size=1), min_size=1, max_size=6),
    st.booleans(),
)
def test_spans_of_json(records, lines):
    written = [json.dumps(record, ensure_ascii=False) for record in records]
    source = "\n".join(written) if lines else json.dumps(records, ensure_ascii=False, indent=1)
    assume("\\u0007" not in source)  # a control that parts a letter from its mark is an escape of its own
    document = read(source.encode(), "a.jsonl" if lines else "a.json")
    assert OffsetMap.from_bytes(document.offset_map.to_bytes()) == document.offset_map
    at = 0
    for record in records:
        for value in record.values():
            found = document.text.find(clean(value), at)
            assert found >= 0, (value, document.text)
            place = document.offset_map.place(Span(found, found + len(clean(value))))
            assert place.start is not None
            assert clean(json.loads(f'"{source[place.start : place.end]}"')) == clean(value)
            assert place.line == 1 + source.count("\n", 0, place.start)


@pytest.mark.parametrize(
    ("name", "source", "shown", "written"),
    [
        ("a.md", "A &amp; B, a \\* c and [the pump](http://x.y/pump 'pump') runs.", "& B", "&amp; B"),
        ("a.md", "A [the pump](http://x.y/runs 'runs') runs.", "runs", "runs"),
        ("a.md", "Say `two  words` **now**.", "now", "now"),
        ("a.md", "| a | b |\n|---|---|\n| x\\|y **z** | w |\n", "z", "z"),
        ("a.md", "<p>Cost &lt; 5 <b>mm</b></p>\n", "< 5 mm", "&lt; 5 <b>mm"),
        ("a.json", '{"a": "tab\\there \\u5ba2户"}', "客户", "\\u5ba2户"),
        ("a.csv", 'a,b\n"x, y",12\n', "x, y | 12", 'x, y",12'),
        ("a.txt", "压力\u3000\u3000为e\u0301 ３\u200bＭＰａ。\n", "为é ３ＭＰａ", "为e\u0301 ３\u200bＭＰａ"),
    ],
)
def test_what_is_shown_leads_to_what_is_written(name, source, shown, written):
    document = read(source.encode(), name)
    at = document.text.rindex(shown)
    place = document.offset_map.place(Span(at, at + len(shown)))
    assert source[place.start : place.end] == written


@pytest.mark.parametrize(
    "unit", ["锅炉给水泵轴承温度异常处理办法", "word ", "😀", "第一句。第二句！", "a,b\n"]
)
def test_reading_and_cutting_take_time_in_proportion_to_the_text(unit):
    def seconds(chars: int) -> float:
        """The faster of two: the collector walks what other tests left behind."""
        content = (unit * (chars // len(unit))).encode()
        laps: list[float] = []
        for _ in range(2):
            gc.collect()
            begun = time.process_time()
            cut(read(content, "a.txt"))
            laps.append(time.process_time() - begun)
        return min(laps)

    seconds(20_000)
    gc.freeze()
    try:
        small, large = seconds(50_000), seconds(200_000)
    finally:
        gc.unfreeze()
    assert large < 8 * small + 0.5
