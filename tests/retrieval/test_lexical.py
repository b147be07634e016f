from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import TransientError
from ingest.normalize import build
from ingest.parse import parse_bytes
from ingest.split import split
from ingest.tokens import rough_counter
from retrieval.lexical import LexicalReader
from retrieval.lexical_writer import LexicalDocument, LexicalWriter

DOCUMENTS = [
    LexicalDocument(1, "t1", "c1", "d1", "The nightly-sync.sh job runs from cron.", ("Backup",)),
    LexicalDocument(2, "t1", "c1", "d1", "每晚备份前检查磁盘余量。"),
    LexicalDocument(3, "t1", "c2", "d2", "The backup of part ＸＹ－２０８０ is kept in hall nine."),
    LexicalDocument(4, "t2", "c3", "d3", "QUARTZ-LANTERN backup budget"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    LexicalWriter(tmp_path / "lexical").apply(DOCUMENTS)
    return tmp_path / "lexical"


def ids(
    reader: LexicalReader, question: str, tenant: str = "t1", collections: list[str] | None = None
) -> list[int]:
    return [i for i, _ in reader.search(question, 10, tenant_id=tenant, collection_ids=collections)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [("nightly-sync.sh.", 1), ("cron", 1), ("备份", 2), ("磁盘余量", 2), ("xy-2080", 3), ("xy－2080", 3)],
)
def test_words_codes_and_chinese_are_found(folder: Path, question: str, expected: int) -> None:
    assert ids(LexicalReader(folder), question)[0] == expected


def test_scope_is_part_of_the_query(folder: Path) -> None:
    reader = LexicalReader(folder)
    assert ids(reader, "QUARTZ-LANTERN") == []
    assert ids(reader, "QUARTZ-LANTERN", tenant="t2") == [4]
    assert ids(reader, "backup", collections=["c2"]) == [3]
    assert ids(reader, "backup", collections=[]) == []
    assert ids(reader, "backup", tenant="") == []
    found = reader.search("backup", 10, tenant_id="t1", collection_ids=None, document_ids=["d2"])
    assert [i for i, _ in found] == [3]


def test_holding_needs_all_tokens_of_one_spelling_and_the_scope(folder: Path) -> None:
    reader = LexicalReader(folder)

    def holding(
        *spellings: tuple[str, ...], tenant: str = "t1", collections: list[str] | None = None
    ) -> list[int]:
        return reader.holding(spellings, 10, tenant_id=tenant, collection_ids=collections)

    assert holding(("xy-2080",)) == holding(("no-such",), ("xy", "2080")) == [3]
    assert holding(("backup", "cron")) == [1]  # a heading counts like the body
    assert holding(("xy", "cron")) == holding() == []
    assert holding(("backup",), collections=["c2"]) == [3]
    assert holding(("backup",), collections=[]) == holding(("backup",), tenant="") == []
    assert holding(("quartz-lantern",)) == []
    assert reader.holding([("backup",)], 1, tenant_id="t1", collection_ids=None) != []


def test_filters_do_not_change_scores(folder: Path) -> None:
    reader = LexicalReader(folder)
    all_ = dict(reader.search("backup", 10, tenant_id="t1", collection_ids=None))
    some = dict(reader.search("backup", 10, tenant_id="t1", collection_ids=["c2"]))
    assert some[3] == pytest.approx(all_[3])


@pytest.mark.parametrize(
    "question", ['"', "a AND (b", "body:x", "title:* OR [1 TO 2]", "\\", "+-!(){}^~*?:/"]
)
def test_nothing_in_a_question_is_syntax(folder: Path, question: str) -> None:
    ids(LexicalReader(folder), question)


def test_applying_again_changes_nothing(folder: Path) -> None:
    for _ in range(3):
        LexicalWriter(folder).apply(DOCUMENTS)
    assert LexicalReader(folder).count() == len(DOCUMENTS)


def test_deleted_passages_are_not_found(folder: Path) -> None:
    LexicalWriter(folder).apply([], [1, 99])
    reader = LexicalReader(folder)
    assert ids(reader, "cron") == []
    assert reader.count() == 3


def test_a_reader_keeps_what_it_opened(folder: Path) -> None:
    reader = LexicalReader(folder)
    LexicalWriter(folder).apply([LexicalDocument(9, "t1", "c1", "d1", "A lighthouse.")], [1])
    assert ids(reader, "lighthouse") == []
    assert ids(reader, "cron") == [1]
    assert ids(LexicalReader(folder), "lighthouse") == [9]


def test_second_writer_is_told_to_wait(folder: Path) -> None:
    writer = LexicalWriter(folder)
    with pytest.raises(TransientError):
        LexicalWriter(folder)
    writer.close()
    LexicalWriter(folder).apply([DOCUMENTS[1]])


def test_empty_index_is_legal(tmp_path: Path) -> None:
    LexicalWriter(tmp_path / "new").apply([])
    reader = LexicalReader(tmp_path / "new")
    assert (reader.count(), ids(reader, "anything")) == (0, [])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("XY-2080", "wide.txt"),
        ("ＸＹ－２０８０", "wide.txt"),
        ("xy－2090", "narrow.txt"),
        ("20Ａ", "narrow.txt"),
        ("16A", "wide.txt"),
        ("备份", "bm25_"),
        ("備份任務", "bm25_zh.txt"),
        ("磁盘余量", "bm25_zh.txt"),
        ("nightly-sync.sh", "bm25_mix.txt"),
        ("nightly-sync.sh.", "bm25_mix.txt"),
        ("cron", "bm25_mix.txt"),
    ],
)
def test_files_are_found_whatever_the_width_case_or_script(
    tmp_path: Path, shared_data: Path, question: str, expected: str
) -> None:
    """Files go through the parser, the splitter and the index; the question through the same folding."""
    paths = [p for case in ("D05", "D07") for p in sorted((shared_data / "cases" / case).iterdir())]
    documents: list[LexicalDocument] = []
    for path in paths:
        drafts = split(build(parse_bytes(path.read_bytes(), path.name)), rough_counter, 160, 480)
        documents += [
            LexicalDocument(len(documents) + n, "t1", "c1", path.name, d.text, d.heading_path)
            for n, d in enumerate(drafts, 1)
        ]
    LexicalWriter(tmp_path / "lexical").apply(documents)
    best = ids(LexicalReader(tmp_path / "lexical"), question)[0]
    assert {d.passage_id: d.document_id for d in documents}[best].startswith(expected)
