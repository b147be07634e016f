from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from retrieval.analyzer import tokens, word_token


def test_chinese_gives_words_and_bigrams() -> None:
    found = tokens("磁盘余量不足")
    assert {"磁盘", "盘余", "余量"} <= set(found)


def test_codes_are_whole_and_in_parts_with_or_without_a_final_stop() -> None:
    assert set(tokens("nightly-sync.sh.")) == set(tokens("nightly-sync.sh"))
    assert "nightly-sync.sh" in tokens("run nightly-sync.sh.")
    assert {"xy-2080", "xy", "2080"} <= set(tokens("ＸＹ－２０８０"))


def test_width_case_script_and_plural_do_not_matter() -> None:
    assert tokens("20Ａ") == tokens("20a")
    assert tokens("Qwen.") == tokens("qwen")
    assert tokens("後臺") == tokens("后台")
    assert tokens("Turbines") == tokens("turbine")
    assert tokens("reducing, reduced") == 2 * tokens("reduces")
    assert tokens("café") == tokens("CAFE")


def test_text_without_letters_has_no_tokens() -> None:
    assert tokens("🙂🙂 ？！。 \u200b") == []


@given(st.text(max_size=300))
def test_tokens_hold_no_white_space_and_are_stable(text: str) -> None:
    found = tokens(text)
    assert all(token and not any(c.isspace() for c in token) and len(token) <= 80 for token in found)
    assert found == tokens(text)


def test_parts_of_a_code_are_the_words_that_they_are_elsewhere() -> None:
    assert {"nightly-syncs.sh", *tokens("nightly syncs sh")} == set(tokens("nightly-syncs.sh"))
    assert tokens("nightly") == [word_token("nightly")]


def test_words_with_digits_have_no_stem() -> None:
    assert tokens("x264s 1990s H1N1s") == ["x264s", "1990s", "h1n1s"]


def test_the_version_before_takes_plurals_alone() -> None:
    assert tokens("Turbines reducing nightly-syncs.sh", version=1) == [
        "turbine", "reducing", "nightly-syncs.sh", "nightly", "sync", "sh",
    ]  # fmt: skip
