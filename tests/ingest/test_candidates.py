from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.candidates import NameIndex, Spelling, strength
from ingest.name_forms import name_form, tokens_of

NAMES = [
    "United States of America", "American Civil Liberties Union",
    "Acme Holdings Ltd", "Wilhelm Röntgen", "student",
    "Spanish–American War", "Washington, D.C.", "George Washington", "海石科技有限公司",
    "国际商业机器公司", "President of the Senate",
    "Canada", "Jean-Luc O'Neill", "Netherlands Antilles",
]  # fmt: skip
INDEX = NameIndex(NAMES)


def found(surface: str) -> list[tuple[str, Spelling]]:
    return [(NAMES[m.name], m.spelling) for m in INDEX.find(surface)]


@pytest.mark.parametrize(
    ("surface", "name", "spelling"),
    [
        ("Canada", "Canada", Spelling.EXACT),
        ("ＣＡＮＡＤＡ", "Canada", Spelling.FOLDED),
        ("wilhelm rontgen", "Wilhelm Röntgen", Spelling.FOLDED),
        ("Spanish-American War", "Spanish–American War", Spelling.FOLDED),
        ("海石科技有限公司", "海石科技有限公司", Spelling.EXACT),
        ("海石科技", "海石科技有限公司", Spelling.CORE),
        ("Acme", "Acme Holdings Ltd", Spelling.CORE),
        ("Dr. Wilhelm Röntgen", "Wilhelm Röntgen", Spelling.CORE),
        ("ACLU", "American Civil Liberties Union", Spelling.ACRONYM),
        ("U.S.", "United States of America", Spelling.ACRONYM),
        ("Röntgen's", "Wilhelm Röntgen", Spelling.PARTIAL),
        ("students", "student", Spelling.FUZZY),
        ("Canadian", "Canada", Spelling.FUZZY),
        ("Wilhelm Rontgan", "Wilhelm Röntgen", Spelling.FUZZY),
    ],
)
def test_a_name_is_found_in_each_of_its_forms(surface: str, name: str, spelling: Spelling) -> None:
    assert found(surface)[0] == (name, spelling)


def test_letters_in_lower_case_are_no_acronym() -> None:
    assert all(spelling is not Spelling.ACRONYM for _, spelling in found("aclu"))


def test_a_title_is_set_apart_only_before_a_name() -> None:
    assert name_form("President Kim").core == "kim"
    assert "president" in name_form("President of the Senate").tokens


def test_the_head_of_a_name_names_most_of_it() -> None:
    assert [n for n, _ in found("Washington")][:2] == ["Washington, D.C.", "George Washington"]


def test_what_a_surface_lacks_is_told() -> None:
    (match, *_) = INDEX.find("Antilles")
    assert (NAMES[match.name], match.missing) == ("Netherlands Antilles", ("netherlands",))


def test_unrelated_words_find_nothing() -> None:
    assert found("zeppelin") == []
    assert found("…") == []


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(alphabet="abcdeABC 李伟海石公司'.-", min_size=1, max_size=14), min_size=1, max_size=8)
)
def test_every_name_finds_itself_first_with_full_strength(names: list[str]) -> None:
    index = NameIndex(names)
    for name in names:
        if not tokens_of(name):
            assert index.find(name) == []
            continue
        best = index.find(name)[0]
        assert names[best.name] == name
        assert strength(best) == 1.0
        assert all(0 < strength(m) <= 1 for m in index.find(name))
