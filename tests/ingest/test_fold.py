from hypothesis import given
from hypothesis import strategies as st

from ingest.fold import fold_with_offsets, search_fold


def test_width_case_and_dash_variants_fold_to_one_spelling():
    assert {search_fold(t) for t in ("XY-2080", "ＸＹ－２０８０", "xy－2080", "xy–2080")} == {"xy-2080"}
    assert search_fold("20Ａ") == "20a"


def test_traditional_folds_to_simplified():
    assert search_fold("後臺軟體") == search_fold("后台软体")


def test_ligatures_and_invisible_marks_fold_away():
    assert search_fold("classiﬁes") == "classifies"
    assert search_fold("ab\u200bc\u00ad") == "abc"


@given(st.text(max_size=60))
def test_folding_twice_changes_nothing_for_printable_text(text):
    once = search_fold(text)
    assert search_fold(once) == search_fold(search_fold(once))


@given(st.text(max_size=60))
def test_offsets_ascend_and_cover_the_text(text):
    folded, offsets = fold_with_offsets(text)
    assert len(offsets) == len(folded) + 1
    assert offsets == sorted(offsets)
    assert offsets[-1] == len(text)


def test_offsets_lead_back_to_the_original():
    text = "型号ＸＹ－２０８０的轉速"
    folded, offsets = fold_with_offsets(text)
    at = folded.index("xy-2080")
    assert text[offsets[at] : offsets[at + 7]] == "ＸＹ－２０８０"
    assert folded.endswith("转速")


def test_a_character_folds_alike_whatever_stands_beside_it():
    for text in ("乾坤", "乾燥機", "頭髮", "發展", "皇后與後面"):
        assert search_fold(text) == "".join(search_fold(c) for c in text)


def test_variation_selectors_do_not_hide_a_word():
    assert search_fold("葛\U000e0100城 ❤\ufe0f") == search_fold("葛城 ❤")
