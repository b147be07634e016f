from __future__ import annotations

import pytest

from core.types import Lang, Passage, Span
from ingest.mentions import recognise
from ingest.values import Mention


def passage(text: str, lang: Lang, *, start: int = 0, number: int = 1) -> Passage:
    return Passage(number, "doc_1", 1, 0, Span(start, start + len(text)), None, (), lang, text)


def names(text: str, lang: Lang) -> dict[str, str]:
    return {m.surface: m.type for m in recognise([passage(text, lang)])}


def test_english_names_come_with_their_types() -> None:
    found = names("Tim Cook met the European Commission in Brussels on Monday.", Lang.EN)
    assert found["Tim Cook"] == "PERSON"
    assert found["European Commission"] == "ORG"  # without the article
    assert found["Brussels"] == "GPE"
    assert "Monday" not in found


def test_chinese_names_come_with_their_types() -> None:
    found = names("李伟在北京会见了清华大学教授王小明。", Lang.ZH)
    assert found["北京"] == "GPE"
    assert found["清华大学"] == "ORG"
    assert found["王小明"] == "PERSON"


def test_spans_point_into_the_document_and_keep_the_order_of_mixed_languages() -> None:
    passages = [
        passage("He flew to Berlin.", Lang.EN, start=40, number=1),
        passage("他住在北京。", Lang.ZH, start=100, number=2),
        passage("She flew to Paris.", Lang.EN, start=200, number=3),
    ]
    assert recognise(passages) == [
        Mention(1, Span(51, 57), "Berlin", "GPE"),
        Mention(2, Span(103, 105), "北京", "GPE"),
        Mention(3, Span(212, 217), "Paris", "GPE"),
    ]


@pytest.mark.parametrize("lang", list(Lang))
def test_empty_odd_and_long_texts_are_no_trouble(lang: Lang) -> None:
    texts = ["。", "12345 67890", "👩‍👩‍👧‍👦" * 20, "x" * 20_000, "（《》）", "\u3000a"]
    found = recognise([passage(t, lang, number=n) for n, t in enumerate(texts)])
    assert all(len(m.surface) >= 2 for m in found)


def test_no_passages_give_no_mentions() -> None:
    assert recognise([]) == []
