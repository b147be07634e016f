"""Folders of the lexical index: what was published stays, what is damaged is told, nothing is half."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import tantivy

from core.db import Database
from core.settings import Settings
from core.types import Scope
from retrieval.lexical import LexicalReader
from retrieval.lexical_store import (
    FILES,
    DamagedLexical,
    LexicalBuild,
    change_lexical,
    is_of_before,
    open_lexical,
)
from retrieval.lexical_writer import LexicalDocument
from retrieval.manifest import IndexFolder
from retrieval.tiers import IndexReader
from tests.retrieval.indexing import Corpus
from tests.retrieval.lexical_before import sealed_by_the_release_before


def documents(*ids: int) -> list[LexicalDocument]:
    return [LexicalDocument(i, "t1", "c1", f"d{i}", f"a turning lantern number{i}") for i in ids]


def found(reader: LexicalReader, question: str = "lantern") -> list[int]:
    return sorted(i for i, _ in reader.search(question, 100, tenant_id="t1", collection_ids=None))


def test_a_change_makes_a_new_index_and_leaves_the_old_one_as_it_was(tmp_path: Path) -> None:
    first = change_lexical(tmp_path, "", documents(1, 2, 3))
    opened = open_lexical(tmp_path, first)
    second = change_lexical(tmp_path, first, documents(3, 4), [1])
    assert found(opened) == [1, 2, 3]
    assert found(open_lexical(tmp_path, first, thorough=True)) == [1, 2, 3]
    assert found(open_lexical(tmp_path, second, thorough=True)) == [2, 3, 4]
    shared = {p.stat().st_ino for p in (tmp_path / first).iterdir()}
    assert shared & {p.stat().st_ino for p in (tmp_path / second).iterdir()}


def test_a_change_made_twice_gives_the_same_passages(tmp_path: Path) -> None:
    name = change_lexical(tmp_path, "", documents(1, 2))
    for _ in range(12):  # enough for tantivy to merge
        name = change_lexical(tmp_path, name, documents(2, 3), [1])
    reader = open_lexical(tmp_path, name)
    assert found(reader) == [2, 3]
    assert reader.ids() == {2, 3}


def test_generations_of_many_changes_stay_readable(tmp_path: Path) -> None:
    names, expected = [""], [set[int]()]
    for n in range(1, 25):
        names.append(change_lexical(tmp_path, names[-1], documents(n), [n - 4]))
        expected.append((expected[-1] | {n}) - {n - 4})
    for name, ids in list(zip(names, expected, strict=True))[1:]:
        assert open_lexical(tmp_path, name, thorough=True).ids() == ids


def test_an_unfinished_index_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), LexicalBuild(tmp_path) as build:
        build.change(documents(1))
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["meta.json", FILES, "*.term", "*.idx", "*.fast", "*.fieldnorm", "*.del"])
@pytest.mark.parametrize("how", ["cut", "changed", "missing"])
def test_damage_of_any_file_is_told(tmp_path: Path, kind: str, how: str) -> None:
    name = change_lexical(tmp_path, change_lexical(tmp_path, "", documents(*range(1, 50))), [], [7])
    (path,) = list((tmp_path / name).glob(kind))
    content = path.read_bytes()
    path.unlink()  # the file may be a link
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "changed":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    with pytest.raises(DamagedLexical):
        open_lexical(tmp_path, name)
    with pytest.raises(DamagedLexical):
        change_lexical(tmp_path, name, documents(60))


def test_a_flipped_bit_that_left_no_trace_is_found_by_a_thorough_look(tmp_path: Path) -> None:
    name = change_lexical(tmp_path, "", documents(*range(1, 50)))
    (path,) = (tmp_path / name).glob("*.idx")
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DamagedLexical, match="checksum"):
        open_lexical(tmp_path, name, thorough=True)


def test_files_are_copied_where_links_are_impossible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = change_lexical(tmp_path, "", documents(1))

    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refused)
    second = change_lexical(tmp_path, first, documents(2))
    assert found(open_lexical(tmp_path, second)) == [1, 2]
    shutil.rmtree(tmp_path / first)
    assert found(open_lexical(tmp_path, second, thorough=True)) == [1, 2]


def test_an_index_of_other_tokens_is_asked_in_them_and_not_added_to(tmp_path: Path) -> None:
    titled = [*documents(1, 2), LexicalDocument(3, "t1", "c1", "d3", "Oil.", ("Turning lanterns",), "Manual")]
    old = sealed_by_the_release_before(tmp_path, titled)
    new = change_lexical(tmp_path, "", titled)
    assert is_of_before(tmp_path, old)
    assert not is_of_before(tmp_path, new)
    for name in (old, new):
        reader = open_lexical(tmp_path, name, thorough=True)
        assert found(reader, "Which lanterns?") == found(reader, "lantern") == [1, 2, 3]
        assert found(reader, "turning") == [1, 2, 3]
        assert reader.holding([("manual", "oil")], 9, tenant_id="t1", collection_ids=None) == [3]
    assert found(open_lexical(tmp_path, old), "turned") == []
    assert found(open_lexical(tmp_path, new), "turned") == [1, 2, 3]
    with pytest.raises(DamagedLexical, match="rebuild lexical"):
        change_lexical(tmp_path, old, documents(4))


def test_a_reader_of_a_generation_sees_no_word_of_the_next(
    sqlite_database: Database, settings: Settings
) -> None:
    corpus, scope = Corpus(sqlite_database, IndexFolder(settings.index_dir)), Scope("t1", None, "test")
    corpus.index(corpus.document(2, document="first"))
    generation = corpus.folder.current_generation()
    pointer = corpus.folder.current.read_bytes()
    corpus.index(corpus.document(2, document="second"))
    corpus.folder.current.write_bytes(pointer)  # as a process sees it that has not looked since
    index = IndexReader(corpus.folder).snapshot()
    assert index.generation == generation
    assert len(index.lexical.search("first", 9, scope)) == 2
    assert index.lexical.search("second", 9, scope) == []


def _written_in_place(folder: Path, ids: Sequence[int]) -> None:
    """An index as the release before laid it out: ids stored with documents, commits in place."""
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("passage_id", stored=True)
    for name in ("key", "tenant_id", "collection_id", "document_id"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("body", "heading"):
        builder.add_text_field(name, tokenizer_name="geo_tokens", index_option="freq")
    folder.mkdir(parents=True)
    index = tantivy.Index(builder.build(), path=str(folder))
    analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    index.register_tokenizer("geo_tokens", analyzer)
    writer = index.writer(num_threads=1)
    for i in ids:
        fields = {
            "passage_id": i, "key": str(i), "tenant_id": "t1", "collection_id": f"c{i % 2}",
            "document_id": f"d{i}", "body": f"lantern number{i}", "heading": "",
        }  # fmt: skip
        writer.add_document(tantivy.Document.from_dict(fields, index.schema))
    writer.commit()
    writer.wait_merging_threads()


def test_an_index_of_the_release_before_is_read_and_not_written(tmp_path: Path) -> None:
    _written_in_place(tmp_path / "lex_old", [1, 2, 3, 4])
    reader = open_lexical(tmp_path, "lex_old")
    assert found(reader) == [1, 2, 3, 4]
    assert reader.ids() == {1, 2, 3, 4}
    assert [i for i, _ in reader.search("number3", 5, tenant_id="t1", collection_ids=["c1"])] == [3]
    with pytest.raises(DamagedLexical):
        change_lexical(tmp_path, "lex_old", documents(5))
