from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.db import Database
from core.settings import Settings
from core.types import Scope
from retrieval.files import DamagedIndex, checksum
from retrieval.index_repository import lexical_documents
from retrieval.lexical_store import is_of_before
from retrieval.manifest import IndexFolder, Manifest
from retrieval.tiers import IndexReader
from retrieval.vector_tier import DeadRef, SegmentRef, TierRef
from tests.retrieval.indexing import Corpus
from tests.retrieval.lexical_before import sealed_by_the_release_before


def as_first_format(folder: IndexFolder) -> None:
    """Lay the served generation out as the release before this one did."""
    generation = folder.current_generation()
    assert generation is not None
    manifest = folder.read_manifest(generation)
    hot = manifest.tier("hot")
    body = json.dumps(
        {
            "format": 1,
            **{
                name: getattr(manifest, name)
                for name in (
                    "generation", "applied_seq", "model", "dimension", "lexical", "fence", "published_at",
                )
            },
            "segments": [{"name": s.name, "count": s.count, "checksum": s.checksum} for s in hot.segments],
            "dead": hot.dead and {n: getattr(hot.dead, n) for n in ("name", "count", "checksum")},
        }
    )  # fmt: skip
    earlier = folder.root / "hot"
    (earlier / "manifests").mkdir()
    (earlier / "manifests" / f"{generation:010d}.json").write_text(
        json.dumps({"checksum": checksum(body.encode()), "body": body})
    )
    folder.current.rename(earlier / "CURRENT")
    for path in folder.manifests.iterdir():
        path.unlink()
    folder.manifests.rmdir()


def test_an_index_of_the_release_before_is_served_and_goes_on(
    sqlite_database: Database, settings: Settings
) -> None:
    corpus, scope = Corpus(sqlite_database, IndexFolder(settings.index_dir)), Scope("t1", None, "test")
    kept, deleted = corpus.document(3), corpus.document(2)
    corpus.index(kept)
    corpus.index(deleted)
    corpus.unindex(deleted)
    as_first_format(corpus.folder)
    reader = IndexReader(IndexFolder(settings.index_dir))
    query = corpus.query()
    for _ in range(2):
        found = [i for i, _ in reader.snapshot().hot.search(query, 9, scope)]
        assert found == corpus.expected(query, 9, scope)
        corpus.index(corpus.document(2))
    assert corpus.folder.current.is_file()
    assert not (corpus.folder.root / "hot" / "CURRENT").exists()


def test_a_lexical_index_of_the_release_before_is_converted_by_the_first_publish(
    sqlite_database: Database, settings: Settings
) -> None:
    corpus, scope = Corpus(sqlite_database, IndexFolder(settings.index_dir)), Scope("t1", None, "test")
    kept, deleted = corpus.document(3), corpus.document(2)
    corpus.index(kept)
    corpus.index(deleted)
    folder = corpus.folder
    manifest = folder.read_manifest(folder.current_generation() or 0)
    with sqlite_database.read() as session:
        texts = list(lexical_documents(session, sorted(corpus.vectors)))
    before = sealed_by_the_release_before(folder.lexical, texts)
    (folder.lexical / before / "files.json").unlink()
    (folder.lexical / before).rename(folder.lexical / "lex_early")
    folder.write_manifest(replace(manifest, lexical="lex_early"))
    as_first_format(folder)
    reader = IndexReader(IndexFolder(settings.index_dir))
    assert len(reader.snapshot().lexical.search("lantern", 9, scope)) == 5
    corpus.unindex(deleted)
    new = corpus.document(2)
    corpus.index(new)
    index = reader.snapshot()
    assert not index.lexical.refused
    assert {i for i, _ in index.lexical.search("lantern", 9, scope)} == set(corpus.vectors)
    assert folder.read_manifest(index.generation).refused == {}


def test_a_lexical_index_of_other_tokens_is_written_anew_by_the_first_publish(
    sqlite_database: Database, settings: Settings
) -> None:
    corpus, scope = Corpus(sqlite_database, IndexFolder(settings.index_dir)), Scope("t1", None, "test")
    corpus.index(corpus.document(3))
    folder = corpus.folder
    manifest = folder.read_manifest(folder.current_generation() or 0)
    with sqlite_database.read() as session:
        texts = list(lexical_documents(session, sorted(corpus.vectors)))
    before = sealed_by_the_release_before(folder.lexical, texts)
    folder.write_manifest(replace(manifest, lexical=before))
    reader = IndexReader(folder)
    assert len(reader.snapshot().lexical.search("lantern", 9, scope)) == 3
    corpus.index(corpus.document(2))
    index = reader.snapshot()
    assert {i for i, _ in index.lexical.search("lanterns", 9, scope)} == set(corpus.vectors)
    served = folder.read_manifest(index.generation)
    assert served.refused == {}
    assert not is_of_before(folder.lexical, served.lexical)


def test_a_manifest_reads_as_it_was_written(tmp_path: Path) -> None:
    folder = IndexFolder(tmp_path)
    folder.create()
    manifest = Manifest(
        7, 12, "some/encoder", 16,
        {
            "hot": TierRef((SegmentRef("seg_a", 3, "aa"),)),
            "cold": TierRef((SegmentRef("seg_b", 5, "bb"),), DeadRef("dead_c", 2, "cc"), 1.5),
        },
        "lex_d", {"warm": "a page is cut"}, 4, "2026-01-02",
    )  # fmt: skip
    folder.write_manifest(manifest)
    assert folder.read_manifest(7) == manifest
    assert folder.generations() == [7]
    assert manifest.live_count == 6
    assert manifest.tier("warm").live_count == 0
    path = folder.manifest_path(7)
    path.write_bytes(path.read_bytes().replace(b"seg_a", b"seg_x"))
    with pytest.raises(DamagedIndex, match="checksum"):
        folder.read_manifest(7)
