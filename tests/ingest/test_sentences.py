from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.sentences import sentences


def cut(text: str) -> list[str]:
    return [text[s.start : s.end] for s in sentences(text)]


def test_chinese_marks_and_closing_quotes_stay_with_their_sentence():
    text = (
        "值班员立即关闭闸门；随后通知下游！是否需要撤离？由调度中心决定。“先撤离，再上报。”这是规定……请遵守。"
    )
    assert cut(text) == [
        "值班员立即关闭闸门；",
        "随后通知下游！",
        "是否需要撤离？",
        "由调度中心决定。",
        "“先撤离，再上报。”",
        "这是规定……",
        "请遵守。",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "The bore is 3.14 mm wide.",
        "Dr. J. Smith met Mr. Lee at 5 p.m. on the pier.",
        "Run nightly-sync.sh before 6.30 a.m. each day.",
        "See Fig. 3 and Eq. 4, e.g. the inlet valve.",
        "See https://example.com/a.b?c=d for details.",
        "It costs approx. 5 dollars, i.e. very little.",
        "“Why? ” is not asked, but why!? is.",
        "压力为 3.5 兆帕，温度为 20.5 度。",
        "J. R. Clarke wrote it.",
    ],
)
def test_numbers_abbreviations_and_names_do_not_split(sentence):
    assert len(cut(sentence)) <= (2 if "Why" in sentence else 1)


def test_english_ends():
    assert cut('He said "Stop." Then he left. Was it late? Yes! It was.') == [
        'He said "Stop."',
        "Then he left.",
        "Was it late?",
        "Yes!",
        "It was.",
    ]
    assert cut("We sell to Acme Inc. The price is fixed.") == ["We sell to Acme Inc.", "The price is fixed."]


def test_line_end_closes_a_sentence_and_list_labels_do_not():
    assert cut("Setup\n1. Unpack the pump.\n2. Fill it.") == ["Setup", "1. Unpack the pump.", "2. Fill it."]


def test_blank_text_has_no_sentence():
    assert cut(" \n\u3000\t") == []


def test_mixed_languages():
    assert cut("泵的型号是 XP-2.该泵重 5.5 kg。It is blue. 颜色为蓝。") == [
        "泵的型号是 XP-2.",
        "该泵重 5.5 kg。",
        "It is blue.",
        "颜色为蓝。",
    ]


@given(st.text(alphabet=st.sampled_from("ab A1.!?。！？；…”\"' \n\u3000中文"), max_size=80))
def test_every_visible_character_is_in_exactly_one_sentence(text):
    spans = sentences(text)
    assert "".join("".join(text[s.start : s.end].split()) for s in spans) == "".join(text.split())
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert all(text[s.start : s.end] == text[s.start : s.end].strip() and len(s) for s in spans)


def test_a_straight_quote_that_opens_goes_with_what_it_opens():
    assert cut('他走了。"再见。"门关上了。') == ["他走了。", '"再见。"', "门关上了。"]


@pytest.mark.parametrize(
    "sentence",
    [
        "他（她？）来了。",
        "真的（！）吗？",
        "《谁动了我的奶酪？》是一本书。",
        "本合同自2024.01.15起生效，版本为v2.0.1。",
        "压力为3．5兆帕，温度为２０．５度。",
        "See sec. 2.1, p. 5 and Fig. 2.",
        "J.R.R. Tolkien wrote it.",
    ],
)
def test_asides_titles_dates_and_initials_do_not_split(sentence):
    assert cut(sentence) == [sentence]


def test_numbered_steps_on_one_line_keep_their_numbers():
    assert cut("1. 打开阀门。2. 关闭水泵。") == ["1. 打开阀门。", "2. 关闭水泵。"]
    assert cut("（一）检查油位。（二）检查水位。") == ["（一）检查油位。", "（二）检查水位。"]
    assert cut("请注意：“禁止吸烟。”（见附件。）下一句。") == [
        "请注意：“禁止吸烟。”",
        "（见附件。）",
        "下一句。",
    ]


def test_marks_stay_with_their_sentences_in_the_case_file(shared_data):
    text = (shared_data / "cases" / "D06" / "punct.txt").read_text(encoding="utf-8")
    pieces = cut(text)
    assert len(pieces) > 50
    assert not [p for p in pieces if p[0] in "。！？；”…"]
    assert all(p.count("“") == p.count("”") for p in pieces)
