"""Every kind of damage that `geo doctor` can find in an index, made on purpose."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from sqlalchemy import select, text

from core.db import Database, utcnow
from core.models import BuildRow, DocumentRow, MentionRow, MoveRow, PassageRow, PassageVectorRow, TierRow
from core.settings import get_settings
from retrieval.check import IndexCheck, check_index
from retrieval.check_files import remove_strays
from retrieval.fault import Fault
from retrieval.manifest import IndexFolder, Manifest
from retrieval.rebuild import Builder, BuildPlan
from retrieval.rebuild import run as build_and_swap
from retrieval.segments import Segment
from tests.retrieval.indexing import SPACE, Corpus


@pytest.fixture
def corpus(database: Database) -> Corpus:
    made = Corpus(database, IndexFolder(get_settings().index_dir))
    for number in range(3):
        made.index(made.document(4, collection=f"c{number % 2}"))
    assert check_index(database, made.folder) == IndexCheck()
    return made


def faults(corpus: Corpus) -> dict[str, Fault]:
    return {fault.check: fault for fault in check_index(corpus.db, corpus.folder).faults}


def segment_of(corpus: Corpus) -> Path:
    return sorted(corpus.folder.tier("hot").segments.iterdir())[0]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def age(path: Path, hours: float = 2) -> None:
    past = time.time() - hours * 3600
    os.utime(path, (past, past), follow_symlinks=False)


@pytest.mark.parametrize("name", ["segment.json", "ids.npy", "vectors.f16"])
@pytest.mark.parametrize("change", [flip, Path.unlink])
def test_a_changed_or_missing_file_damages_its_tier_and_no_other_part(corpus: Corpus, name, change) -> None:
    change(segment_of(corpus) / name)
    found = faults(corpus)
    assert set(found) == {"index_damaged"}
    assert "the hot tier" in found["index_damaged"].detail
    assert found["index_damaged"].mend == "geo tiers rebuild hot"


def test_a_changed_lexical_file_damages_the_lexical_index(corpus: Corpus) -> None:
    manifest = corpus.folder.read_manifest(corpus.folder.current_generation() or 0)
    flip(max((corpus.folder.lexical / manifest.lexical).iterdir(), key=lambda p: p.stat().st_size))
    (found,) = check_index(corpus.db, corpus.folder).faults
    assert (found.check, found.mend) == ("index_damaged", "geo tiers rebuild lexical")


def rebuilt(corpus: Corpus, tier: str) -> int:
    """Rebuild a tier, so that the generation served until now is kept; its number."""
    kept = corpus.folder.current_generation() or 0
    plan = BuildPlan(f"bld_{tier}{kept}", (tier,), "full", SPACE)
    build_and_swap(Builder(corpus.db, corpus.folder, plan, never))
    return kept


def never(texts: Sequence[str]) -> NoReturn:
    raise AssertionError(f"every vector is stored: {texts}")


@pytest.mark.parametrize("damage", ["cut", "flip", "lost", "manifest"])
def test_a_kept_generation_that_cannot_be_restored_is_told_before_a_rollback_fails(
    corpus: Corpus, damage: str
) -> None:
    kept = rebuilt(corpus, "hot")
    assert check_index(corpus.db, corpus.folder) == IndexCheck()
    now = {s.name for s in served(corpus).tier("hot").segments}
    (only_kept, *_) = [p for p in corpus.folder.tier("hot").segments.iterdir() if p.name not in now]
    page = only_kept / "vectors.f16"
    if damage == "cut":
        page.write_bytes(page.read_bytes()[:-2])
    elif damage == "flip":
        flip(page)
    elif damage == "lost":
        shutil.rmtree(only_kept)
    else:
        flip(corpus.folder.manifest_path(kept))
    found = faults(corpus)
    assert set(found) == {"kept_damaged"}
    assert f"generation {kept}," in found["kept_damaged"].detail
    assert found["kept_damaged"].mend == f"geo tiers rebuild {'all' if damage == 'manifest' else 'hot'}"
    rebuilt(corpus, "hot")
    assert check_index(corpus.db, corpus.folder) == IndexCheck(), "another one is kept now"


def test_a_file_that_served_and_kept_generations_share_is_told_for_both_and_read_once(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuilt(corpus, "cold")
    reads: list[str] = []
    verify = Segment.verify

    def counted(segment: Segment) -> None:
        reads.append(segment.ref.name)
        verify(segment)

    monkeypatch.setattr(Segment, "verify", counted)
    assert faults(corpus) == {}
    assert len(reads) == len(set(reads)) == len(served(corpus).tier("hot").segments)
    flip(segment_of(corpus) / "vectors.f16")
    assert set(faults(corpus)) == {"index_damaged", "kept_damaged"}


def served(corpus: Corpus) -> Manifest:
    return corpus.folder.read_manifest(corpus.folder.current_generation() or 0)


def test_a_manifest_that_cannot_be_read_is_told(corpus: Corpus) -> None:
    flip(corpus.folder.manifest_path(corpus.folder.current_generation() or 0))
    assert faults(corpus)["index_damaged"].mend == "geo tiers rebuild all"


def test_passages_that_the_index_lacks_or_has_too_many_of_are_told(corpus: Corpus) -> None:
    with corpus.db.write() as session:
        row = session.get_one(DocumentRow, "doc0001")
        row.live_version = None  # gone from the rows alone
        for passage in session.scalars(select(PassageRow).where(PassageRow.document_id == "doc0002")):
            vector = session.scalars(select(PassageVectorRow).limit(1)).one().vector
            new = PassageRow(
                tenant_id=passage.tenant_id, collection_id=passage.collection_id, document_id="doc0002",
                version=1, ordinal=passage.ordinal + 9, start=0, end=1, lang="en", text="new",
            )  # fmt: skip
            session.add(new)
            session.flush()
            session.add(PassageVectorRow(passage_id=new.id, model="test/encoder", vector=vector))
    found = faults(corpus)
    assert {check: f.count for check, f in found.items()} == {
        "vectors_left_over": 4, "vectors_not_indexed": 4, "words_left_over": 4, "words_not_indexed": 4,
    }  # fmt: skip
    assert found["words_left_over"].mend == "geo tiers rebuild lexical"


def test_passages_in_another_tier_than_their_document_are_told(corpus: Corpus) -> None:
    with corpus.db.write() as session:
        session.get_one(DocumentRow, "doc0003").tier = "cold"
    found = faults(corpus)
    assert {check: (f.count, f.mend) for check, f in found.items()} == {
        "vectors_misplaced": (4, "geo tiers rebuild all")
    }


def test_passages_that_the_index_gives_to_others_are_told(corpus: Corpus) -> None:
    with corpus.db.write() as session:
        session.execute(text("UPDATE passages SET collection_id = 'c1' WHERE document_id = 'doc0001'"))
    assert faults(corpus)["vectors_of_others"].count == 4


def test_vectors_under_the_wrong_id_are_told(corpus: Corpus) -> None:
    with corpus.db.write() as session:
        for vector in session.scalars(
            select(PassageVectorRow).order_by(PassageVectorRow.passage_id).limit(2)
        ):
            turned = -np.frombuffer(vector.vector, np.float16)
            vector.vector = turned.tobytes()
    assert faults(corpus)["vectors_differ"].count == 2


def test_vectors_of_a_wrong_width_are_told(corpus: Corpus) -> None:
    with corpus.db.write() as session:
        row = session.scalars(select(PassageVectorRow).limit(1)).one()
        row.vector = row.vector[:-2]
    found = faults(corpus)
    assert found["stored_vectors_wrong_width"].mend == "POST /v1/documents/doc0001/reprocess (for each)"
    with corpus.db.write() as session:
        session.get_one(TierRow, "hot").dimension = 8
    assert "index_encoder" in faults(corpus)


def test_mentions_that_disagree_with_their_passage_or_name_nobody_are_told(corpus: Corpus) -> None:
    with corpus.db.write() as session:
        passage = session.scalars(select(PassageRow).limit(1)).one()
        for document, entity in (("doc0003", None), (passage.document_id, "ent_gone")):
            session.add(
                MentionRow(
                    tenant_id=passage.tenant_id, passage_id=passage.id, document_id=document, version=1,
                    start=0, end=1, surface="x", entity_id=entity,
                )
            )  # fmt: skip
    assert set(faults(corpus)) == {"mentions_astray", "mentions_of_unknown"}


def test_moves_that_nobody_makes_are_told(corpus: Corpus) -> None:
    with corpus.db.write() as session:
        for hours, document in ((0, "doc0001"), (2, "doc0002")):
            move = MoveRow(
                tenant_id="t1", collection_id="c1", document_id=document, open_key=document,
                from_tier="hot", to_tier="cold", reason="idle", moved_by="policy",
            )  # fmt: skip
            session.add(move)
            session.flush()
            move.created_at = utcnow().replace(year=2020) if hours else utcnow()
    found = faults(corpus)["moves_late"]
    assert (found.count, "doc0002" in found.detail) == (1, True)


def test_files_that_nothing_names_are_told_and_removed_once_they_are_old(corpus: Corpus) -> None:
    stray = corpus.folder.tier("cold").segments / "seg_stray"
    shutil.copytree(segment_of(corpus), stray)
    (corpus.folder.lexical / "lex_stray").mkdir()
    kept, left = corpus.folder.building / "bld_open", corpus.folder.building / "bld_left"
    for folder in (kept, left):
        folder.mkdir()
    with corpus.db.write() as session:
        session.add(BuildRow(id="bld_open", tier="hot", open_key="hot", created_by="x"))
    assert faults(corpus) == {}, "a writer or a build may be making them"
    for path in (stray, corpus.folder.lexical / "lex_stray", kept, left):
        age(path)
    found = faults(corpus)["index_strays"]
    assert (found.count, found.mend) == (3, "geo doctor --fix")
    assert remove_strays(corpus.db, corpus.folder) == 3
    assert check_index(corpus.db, corpus.folder) == IndexCheck()
    assert kept.is_dir()
    assert remove_strays(corpus.db, corpus.folder) == 0


def test_nothing_is_a_stray_while_a_kept_manifest_cannot_be_read(corpus: Corpus) -> None:
    for path in corpus.folder.tier("hot").segments.iterdir():
        age(path)
    kept = sorted(corpus.folder.manifests.glob("*.json"))
    body = json.loads(kept[0].read_bytes())
    kept[0].write_bytes(json.dumps({**body, "checksum": "no"}).encode())
    assert "index_strays" not in faults(corpus)


def test_ids_are_not_compared_while_the_files_are_behind_the_log(corpus: Corpus) -> None:
    with corpus.db.write() as session:
        session.execute(
            text(
                "INSERT INTO index_log (op, document_id, version, passage_ids, at)"
                " VALUES ('delete', 'doc0001', 1, '[1]', CURRENT_TIMESTAMP)"
            )
        )
    assert check_index(corpus.db, corpus.folder) == IndexCheck((), 1)


def test_a_folder_without_an_index_is_whole(sqlite_database: Database) -> None:
    assert check_index(sqlite_database, IndexFolder(get_settings().index_dir)) == IndexCheck()
