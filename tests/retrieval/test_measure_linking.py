from __future__ import annotations

import json
from pathlib import Path

from ingest.lang import language_of
from retrieval.measure_linking import documents_of, measure_linking, named_passages


def test_made_passages_name_people_firms_and_towns_in_both_languages() -> None:
    passages = named_passages(40, seed=1)
    assert passages == named_passages(40, seed=1)
    assert len(set(passages)) == 40
    assert sum("Corporation" in p or "University" in p for p in passages[::2]) > 10
    assert sum("有限公司" in p or "大学" in p for p in passages[1::2]) > 10


def test_documents_are_of_one_language_or_of_both_in_turn() -> None:
    texts = [
        text for n in range(20) for text in (f"The {n}th town council met again.", f"第{n}次会议讨论了道路。")
    ]
    en, zh, both = (list(documents_of(texts, group)) for group in ("en", "zh", "both"))
    assert [len(group) for group in (en, zh, both)] == [2, 2, 4]
    assert language_of(en[0].text) != language_of(zh[0].text)
    assert [text.count("town") for text in (en[0].text, zh[0].text)] == [10, 0]
    assert [document.text.count("town") for document in both] == [10, 0, 10, 0]


def test_each_group_gets_a_ratio_per_round(tmp_path: Path) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text("\n".join(json.dumps(p) for p in named_passages(100, seed=2)), encoding="utf-8")
    ratios = measure_linking(str(texts), "1", "2")
    assert {group: len(values) for group, values in ratios.items()} == {"en": 2, "zh": 2, "both": 2}
    assert all(0 < ratio < 2 for values in ratios.values() for ratio in values)
