"""Misspelt words find what was meant; words that are known are never touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval.lexical import LexicalReader
from retrieval.lexical_store import change_lexical, open_lexical
from retrieval.lexical_writer import LexicalDocument
from retrieval.spelling import WEIGHT, spellings, with_spellings

WORDS = {
    "receipt": 9, "recipe": 40, "calibration": 7, "pressure": 12, "pressures": 1, "valve": 30, "value": 90,
    "maintenance": 5, "xy": 3, "restart": 4, "retard": 2,
}  # fmt: skip

# As people write them; none of the words is one that a rule was chosen by.
MISSPELT = [
    ("maintainance schedule", 1), ("calibraton of the sensor", 2), ("emergancy shutdwon", 3),
    ("temprature limit", 4), ("warehosue inventory", 5), ("recieve goods", 6), ("lubricent change", 7),
    ("the firmware udpate", 8), ("accomodation costs", 9), ("inspecton interval", 10),
]  # fmt: skip
TEXTS = {
    1: "The maintenance schedule of hall two.",
    2: "Calibration of every sensor takes an hour.",
    3: "An emergency shutdown is done by the red switch.",
    4: "The temperature limit of the oven is 250 degrees.",
    5: "The warehouse keeps an inventory of spare parts.",
    6: "Goods that we receive are counted at the gate.",
    7: "Change the lubricant after 500 hours.",
    8: "The firmware update needs a restart.",
    9: "Costs of accommodation are refunded.",
    10: "The inspection interval is four weeks.",
    11: "值班人员每天检查磁盘余量。",
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> LexicalReader:
    root = tmp_path_factory.mktemp("lexical")
    own = [LexicalDocument(i, "t1", "c1", f"d{i}", text) for i, text in TEXTS.items()]
    other = LexicalDocument(99, "t2", "c2", "d99", "The lubrikt of another tenant.")
    return open_lexical(root, change_lexical(root, "", [*own, other]))


def vocabulary(prefix: str) -> list[tuple[str, int]]:
    return [(word, count) for word, count in WORDS.items() if word.startswith(prefix)]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("reciept", ["receipt"]),
        ("calibratoin", ["calibration"]),
        ("maintainance", ["maintenance"]),
        ("pressurs", ["pressure", "pressures"]),
        ("valva", ["valve"]),
        ("zzzz", []),
        ("resart", ["restart"]),
        ("vale", ["value", "valve"]),
    ],
)
def test_the_nearest_words_come_first_then_the_frequent(word: str, expected: list[str]) -> None:
    assert spellings(word, vocabulary) == expected


@pytest.mark.parametrize("term", ["xy-2080", "v0123", "备份", "2026", "cat", "naïve"])
def test_codes_numbers_short_words_and_chinese_mean_what_they_say(term: str) -> None:
    assert with_spellings({term: 1.0}, lambda _: False, vocabulary) == {term: 1.0}


def test_known_words_are_never_touched_and_others_weigh_less() -> None:
    terms = {"valve": 1.0, "presure": 2.0}
    assert with_spellings(terms, WORDS.__contains__, vocabulary) == {**terms, "pressure": 2 * WEIGHT}
    assert with_spellings({"valve": 1.0}, WORDS.__contains__, vocabulary) == {"valve": 1.0}


@pytest.mark.parametrize(("question", "expected"), MISSPELT)
def test_a_misspelt_question_finds_its_passage(reader: LexicalReader, question: str, expected: int) -> None:
    assert reader.search(question, 3, tenant_id="t1", collection_ids=None)[0][0] == expected


def test_a_word_as_written_outweighs_a_corrected_one(tmp_path: Path) -> None:
    documents = [
        LexicalDocument(1, "t1", "c1", "d1", "pump pressure pressure"),
        LexicalDocument(2, "t1", "c1", "d2", "pump presure"),
    ]
    reader = open_lexical(tmp_path, change_lexical(tmp_path, "", documents))
    assert [i for i, _ in reader.search("presure", 5, tenant_id="t1", collection_ids=None)] == [2]


def test_another_tenants_words_are_no_spelling(reader: LexicalReader) -> None:
    found = reader.search("lubrikent", 3, tenant_id="t1", collection_ids=None)
    assert [i for i, _ in found] == [7]
