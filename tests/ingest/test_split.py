import time
from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from core.types import Lang, Passage
from ingest.normalize import build
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument
from ingest.split import RESERVED_TOKENS, encoder_text, split
from ingest.tokens import rough_counter
from tests.ingest.parsing import cut, pdf, read


def paragraphs(*texts: str):
    blocks = tuple(Block(BlockKind.PARAGRAPH, (Fragment(t),)) for t in texts)
    return build(ParsedDocument("text/plain", blocks))


@given(
    st.lists(
        st.text(alphabet="ab 中文。.，!？\n😀👨‍👩‍👧1", min_size=1, max_size=300).map(lambda t: "x" + t),
        min_size=1,
        max_size=6,
    ),
    st.integers(16, 60),
)
def test_passages_are_slices_under_the_cap_that_cover_the_text(texts, target):
    document = paragraphs(*texts)
    cap = target * 3
    drafts = split(document, rough_counter, target, cap)
    assert [d.ordinal for d in drafts] == list(range(len(drafts)))
    clusters = {m.start() for m in regex.finditer(r"\X", document.text)} | {len(document.text)}
    for draft in drafts:
        assert draft.text == document.text[draft.span.start : draft.span.end]
        assert draft.text == draft.text.strip()
        assert any(c.isalnum() or ord(c) > 0x1F000 for c in draft.text)
        assert rough_counter([encoder_text(draft.heading_path, draft.text)])[0] + RESERVED_TOKENS <= cap
        assert {draft.span.start, draft.span.end} <= clusters
        draft.text.encode()
    assert all(a.span.end <= b.span.start for a, b in pairwise(drafts))
    covered = "".join(d.text for d in drafts)
    assert "".join(c for c in covered if c.isalnum()) == "".join(c for c in document.text if c.isalnum())


def test_no_passage_begins_with_a_closing_mark():
    text = (
        "值班员立即关闭闸门；随后通知下游！是否需要撤离？由调度中心决定。“先撤离，再上报。”这是规定……请遵守。"
        * 20
    )
    for draft in cut(paragraphs(text), 32, 96):
        assert draft.text[0] not in "。！？；”…"
        assert draft.text.count("“") == draft.text.count("”")


@pytest.mark.parametrize(
    "text", ["锅炉给水泵轴承温度异常处理办法" * 400, "x " + "9i16a4hbfd15h27d8hag3if2" * 210]
)
def test_text_without_breaks_is_cut_hard_and_fast(text):
    started = time.monotonic()
    drafts = cut(paragraphs(text), 160, 480)
    assert time.monotonic() - started < 2
    assert len(drafts) > 3
    assert "".join(d.text.replace(" ", "") for d in drafts) == text.replace(" ", "")


def test_emoji_runs_are_never_cut_inside_a_cluster():
    drafts = cut(paragraphs("反馈" + "😀👨‍👩‍👧‍👦🇨🇳" * 120), 32, 64)
    assert len(drafts) > 5
    assert all(not d.text.startswith("\u200d") and not d.text.endswith("\u200d") for d in drafts)
    assert all(d.text.count("🇨🇳") * 2 == sum(0x1F1E6 <= ord(c) <= 0x1F1FF for c in d.text) for d in drafts)


def test_every_table_passage_has_its_header_and_whole_rows():
    rows = "".join(f"| M-{n} | {n * 3} | {n * 7} |\n" for n in range(100, 200))
    document = read(f"# 读数\n\n| 编号 | 一月读数 | 二月读数 |\n|---|---|---|\n{rows}".encode(), "a.md")
    drafts = cut(document)
    assert len(drafts) > 3
    assert drafts[0].text.startswith("编号 | 一月读数 | 二月读数\nM-100 | 300 | 700")
    for draft in drafts[1:]:
        assert draft.heading_path == ("读数", "编号 | 一月读数 | 二月读数")
        assert all(line.count("|") == 2 for line in draft.text.splitlines())


def test_a_passage_never_crosses_a_heading():
    drafts = cut(
        read(b"# A\n\nOne.\n\n## Notes\n\nTwo.\n\n# B\n\n## Notes\n\nThree.\n\n## Notes\n\nFour.\n", "a.md")
    )
    assert [(d.heading_path, d.text) for d in drafts] == [
        (("A",), "One."),
        (("A", "Notes"), "Two."),
        (("B", "Notes"), "Three."),
        (("B", "Notes"), "Four."),
    ]


def test_a_heading_without_a_body_is_a_passage_and_not_lost():
    assert [d.text for d in cut(read(b"# A\n\n# B\n\nText.\n\n# C\n", "a.md"))] == ["A", "Text.", "C"]


def test_headings_that_would_crowd_out_the_text_are_shortened():
    long = "a very long heading " * 60
    drafts = cut(read(f"# {long}\n\n## Short\n\nText.\n".encode(), "a.md"), 32, 64)
    assert drafts[-1].heading_path == ("Short",)


def test_small_rests_join_the_passage_before():
    sentence = "The pump doses four litres per hour into the tank. "
    drafts = cut(paragraphs(sentence * 13 + "It stops."), 100, 480)
    assert drafts[-1].text.endswith("It stops.")
    assert len(drafts[-1].text) > len(sentence)


def test_each_passage_has_its_own_language():
    drafts = cut(read("# 一\n\n温度为四十度。\n\n# Two\n\nThe pump is in the hall.\n".encode(), "a.md"))
    assert [d.lang for d in drafts] == ["zh", "en"]


@pytest.mark.parametrize(("target", "cap"), [(8, 100), (100, 50)])
def test_sizes_without_room_are_refused(target, cap):
    with pytest.raises(ValueError, match="target"):
        split(paragraphs("x"), rough_counter, target, cap)


def test_a_passage_over_a_page_break_knows_where_the_next_page_begins() -> None:
    lines = [f"Sentence {n} of the manual is short." for n in range(6)]
    document = read(pdf([(60, 700, " ".join(lines[:3]))], [(60, 100, " ".join(lines[3:]))]), "manual.pdf")
    (draft,) = cut(document)
    assert draft.page == 1
    ((start, page),) = draft.page_breaks
    assert page == 2
    assert document.text[start:].startswith("Sentence 3")
    passage = Passage(
        1, "d", 1, 0, draft.span, draft.page, (), Lang.EN, draft.text, page_breaks=draft.page_breaks
    )
    assert [passage.page_at(at) for at in (None, draft.span.start, start - 1, start)] == [1, 1, 1, 2]
