"""Index, unindex and rebuild as jobs, with the real encoder."""

from __future__ import annotations

import numpy as np
import pytest

from core.db import Database
from core.jobs import add_job, run_job
from core.models import (
    BuildRow,
    CollectionRow,
    DocumentRow,
    DocumentVersionRow,
    EvidenceRow,
    IndexLogRow,
    JobRow,
    NearDuplicateRow,
    PassageRow,
    PassageVectorRow,
    QueryRow,
    TenantRow,
)
from core.settings import Settings
from core.types import Role, Scope
from core.worker import Task
from ingest.encode import encode_query
from retrieval import builds
from retrieval.build_task import run_build
from retrieval.manifest import IndexFolder
from retrieval.tasks import index_jobs, unindex_document
from retrieval.tiers import IndexReader

pytestmark = pytest.mark.usefixtures("encoder_pack")

ALL = Scope("t1", None, "test")
LIGHTHOUSE = ["The blue lighthouse of Skerry stands on a rock.", "Its lamp turns every nine seconds."]


@pytest.fixture
def db(database: Database) -> Database:
    with database.write() as session:
        session.add(TenantRow(id="t1", name="t1"))
        session.flush()
        session.add(CollectionRow(id="c1", tenant_id="t1", name="c1"))
    return database


@pytest.fixture
def reader(settings: Settings) -> IndexReader:
    return IndexReader(IndexFolder(settings.index_dir))


def put(db: Database, document: str, texts: list[str], *, version: int = 1) -> None:
    """Rows as the ingest stages leave them."""
    with db.write() as session:
        if version == 1:
            session.add(
                DocumentRow(
                    id=document, tenant_id="t1", collection_id="c1", name=f"{document}.txt",
                    content_hash=document, status="processing",
                )
            )  # fmt: skip
            session.flush()
        session.get_one(DocumentRow, document).latest_version = version
        session.add(
            DocumentVersionRow(
                document_id=document, version=version, blob_hash="0", size_bytes=1, file_name="a.txt"
            )
        )
        session.flush()
        for ordinal, text in enumerate(texts):
            session.add(
                PassageRow(
                    tenant_id="t1", collection_id="c1", document_id=document, version=version,
                    ordinal=ordinal, start=0, end=len(text), lang="en", text=text,
                )
            )  # fmt: skip


def do(db: Database, task: Task, work, subject: str, *, version: int = 1, key: str = "") -> JobRow:
    with db.write() as session:
        job = add_job(
            session, task, tenant_id="t1", subject_kind="document", subject_id=subject,
            subject_version=version, attempt_key=key,
        )  # fmt: skip
    run_job(job, work, db=db)
    with db.read() as session:
        return session.get_one(JobRow, job)


def waiting(db: Database, subject: str, *, version: int = 1, key: str = "") -> str:
    with db.write() as session:
        return add_job(
            session, Task.INDEX, tenant_id="t1", subject_kind="document", subject_id=subject,
            subject_version=version, attempt_key=key,
        )  # fmt: skip


def index(db: Database, subject: str, *, version: int = 1, key: str = "") -> JobRow:
    job = waiting(db, subject, version=version, key=key)
    index_jobs(db, job)
    with db.read() as session:
        return session.get_one(JobRow, job)


def status(db: Database, document: str) -> tuple[str, int | None]:
    with db.read() as session:
        row = session.get_one(DocumentRow, document)
        return row.status, row.live_version


def found(reader: IndexReader, question: str) -> tuple[list[int], list[int]]:
    index = reader.snapshot()
    dense = index.hot.search(encode_query(question), 5, ALL)
    lexical = index.lexical.search(question, 5, ALL)
    return [i for i, _ in dense], [i for i, _ in lexical]


def test_an_indexed_document_is_ready_and_found_by_both_routes(db: Database, reader: IndexReader) -> None:
    put(db, "d1", LIGHTHOUSE)
    put(db, "d2", ["Bread is baked with yeast."])
    assert index(db, "d1").status == "done"
    assert index(db, "d2").status == "done"
    assert status(db, "d1") == ("ready", 1)
    dense, lexical = found(reader, "How often does the lighthouse lamp turn?")
    with db.read() as session:
        lamp = session.query(PassageRow.id).filter_by(document_id="d1", ordinal=1).scalar()
    assert dense[0] == lamp
    assert lamp in lexical


def test_an_index_job_run_again_changes_nothing(db: Database, reader: IndexReader) -> None:
    put(db, "d1", LIGHTHOUSE)
    for attempt in range(3):
        assert index(db, "d1", key=str(attempt)).status == "done"
    assert reader.snapshot().hot.live_count == 2
    with db.read() as session:
        assert session.query(PassageVectorRow).count() == 2


def test_a_document_without_passages_fails_with_a_reason(db: Database) -> None:
    put(db, "d1", [])
    job = index(db, "d1")
    assert (job.status, job.error_code) == ("failed", "empty")
    assert status(db, "d1") == ("failed", None)


def test_a_document_deleted_meanwhile_is_not_indexed(db: Database, reader: IndexReader) -> None:
    put(db, "d1", LIGHTHOUSE)
    with db.write() as session:
        session.get_one(DocumentRow, "d1").status = "deleting"
    assert index(db, "d1").status == "done"
    assert status(db, "d1") == ("deleting", None)
    assert reader.snapshot().generation == 0


def test_encoding_goes_on_where_an_earlier_attempt_stopped(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval import embed

    monkeypatch.setattr("retrieval.index_jobs._SLICE_MIN", 2)
    monkeypatch.setattr("retrieval.index_jobs._SLICE_MAX", 2)
    put(db, "d1", [f"Gate number {n} opens at dawn." for n in range(6)])
    encode, seen = embed.encode_for_index, []

    def dies_in_the_second_batch(texts, model=""):
        seen.append(len(texts))
        if len(seen) == 2:
            raise ConnectionError("gone")
        return encode(texts)

    monkeypatch.setattr(embed, "encode_for_index", dies_in_the_second_batch)
    assert index(db, "d1").status == "waiting"
    with db.read() as session:
        assert session.query(PassageVectorRow).count() == 2
    assert index(db, "d1").status == "done"
    assert seen == [2, 2, 2, 2]
    assert status(db, "d1") == ("ready", 1)


def test_one_passage_without_a_vector_fails_alone(
    db: Database, reader: IndexReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval import embed

    encode = embed.encode_for_index

    def spoils_the_first(texts, model=""):
        encoded = encode(texts)
        encoded.vectors[0] = np.nan
        return encoded

    monkeypatch.setattr(embed, "encode_for_index", spoils_the_first)
    put(db, "d1", LIGHTHOUSE)
    assert index(db, "d1").status == "done"
    assert status(db, "d1") == ("ready", 1)
    dense, lexical = found(reader, "blue lighthouse Skerry lamp")
    assert len(dense) == 1
    assert len(lexical) == 2
    with db.read() as session:
        warnings = session.get_one(DocumentVersionRow, ("d1", 1)).warnings
    assert [w["code"] for w in warnings] == ["passages_without_vector"]


def test_a_new_version_replaces_the_old_and_marks_its_answers_stale(
    db: Database, reader: IndexReader
) -> None:
    put(db, "d1", LIGHTHOUSE)
    index(db, "d1")
    with db.write() as session:
        session.add(QueryRow(id="q1", tenant_id="t1", principal="k", collection_ids=["c1"], question="?"))
        session.flush()
        session.add(
            EvidenceRow(query_id="q1", marker=1, passage_id=1, document_id="d1", version=1, score=1.0)
        )
    put(db, "d1", ["The red lighthouse of Skerry stands on a pier."], version=2)
    assert status(db, "d1")[1] == 1
    index(db, "d1", version=2)
    assert status(db, "d1") == ("ready", 2)
    dense, lexical = found(reader, "red lighthouse pier")
    with db.read() as session:
        ids = [i for (i,) in session.query(PassageRow.id).filter_by(document_id="d1")]
        assert session.get_one(QueryRow, "q1").stale_since is not None
    assert dense == lexical == ids
    assert len(ids) == 1


def test_passages_that_a_new_version_keeps_are_not_encoded_again(
    db: Database, reader: IndexReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval import embed

    texts = [f"Gate number {n} opens at dawn." for n in range(5)]
    put(db, "d1", texts)
    index(db, "d1")
    with db.read() as session:
        before = [v.vector for v in session.query(PassageVectorRow).order_by(PassageVectorRow.passage_id)]
    encode, seen = embed.encode_for_index, []

    def counted(given, model=""):
        seen.extend(given)
        return encode(given)

    monkeypatch.setattr(embed, "encode_for_index", counted)
    put(db, "d1", [*texts[:3], "Gate number nine stays shut.", texts[4]], version=2)
    job = index(db, "d1", version=2)
    assert (job.status, job.progress_done, job.progress_total) == ("done", 5, 5)
    assert seen == ["Gate number nine stays shut."]
    with db.read() as session:
        after = [v.vector for v in session.query(PassageVectorRow).order_by(PassageVectorRow.passage_id)]
    assert [*after[:3], after[4]] == [*before[:3], before[4]]
    assert after[3] != before[3]
    put(db, "d1", [*texts[:3], "Gate number nine stays shut.", texts[4]], version=3)
    index(db, "d1", version=3)
    assert len(seen) == 1  # nothing changed, nothing was encoded
    dense, lexical = found(reader, "Gate number nine stays shut")
    assert dense[0] == lexical[0]
    assert len(dense) == 5


@pytest.mark.parametrize("cited", [True, False])
def test_the_text_of_an_earlier_version_stays_only_where_an_answer_quotes_it(
    db: Database, cited: bool
) -> None:
    put(db, "d1", LIGHTHOUSE)
    with db.write() as session:
        session.get_one(DocumentVersionRow, ("d1", 1)).text = LIGHTHOUSE[0]
        if cited:
            session.add(QueryRow(id="q1", tenant_id="t1", principal="k", collection_ids=["c1"], question="?"))
            session.flush()
            session.add(
                EvidenceRow(query_id="q1", marker=1, passage_id=1, document_id="d1", version=1, score=1.0)
            )
    index(db, "d1")
    put(db, "d1", ["The red lighthouse of Skerry stands on a pier."], version=2)
    index(db, "d1", version=2)
    with db.read() as session:
        old = session.get_one(DocumentVersionRow, ("d1", 1))
        assert (old.text is not None) == cited
        assert old.blob_hash == "0"


def test_unindex_takes_the_document_out_of_both_routes_and_adds_the_purge(
    db: Database, reader: IndexReader
) -> None:
    put(db, "d1", LIGHTHOUSE)
    put(db, "d2", ["Bread is baked with yeast."])
    index(db, "d1")
    index(db, "d2")
    with db.write() as session:
        row = session.get_one(DocumentRow, "d1")
        row.status, row.live_version = "deleting", None
    assert do(db, Task.UNINDEX, unindex_document, "d1", key="delete").status == "done"
    dense, lexical = found(reader, "blue lighthouse")
    assert len(dense) == 1
    assert lexical == []
    with db.read() as session:
        assert session.query(JobRow).filter_by(task="ingest.purge", subject_id="d1").count() == 1
        assert session.query(IndexLogRow).filter_by(document_id="d1", op="delete").count() == 1


def test_builds_and_rollbacks_run_as_jobs(db: Database, reader: IndexReader) -> None:
    operator = Scope("t1", None, "key_1", Role.OPERATOR)
    put(db, "d1", LIGHTHOUSE)
    index(db, "d1")
    generations = [reader.snapshot().generation]
    for request, outcome in (
        (builds.request_rebuild, "published"),
        (builds.request_rollback, "rolled_back"),
    ):
        with db.write() as session:
            build = request(session, operator, tier="hot")
            job = session.query(JobRow).filter_by(subject_id=build.id).one().id
        run_job(job, run_build, db=db)
        with db.read() as session:
            ended = builds.get_build(session, operator, build_id=build.id)
            assert session.get_one(BuildRow, build.id).open_key is None
        assert ended.status == outcome
        assert ended.to_generation == reader.snapshot().generation
        generations.append(reader.snapshot().generation)
        assert len(found(reader, "blue lighthouse")[0]) == 2
    assert generations == sorted(set(generations))


def test_an_index_job_that_meets_damaged_files_goes_on_and_has_them_rebuilt(
    db: Database, reader: IndexReader, settings: Settings
) -> None:
    put(db, "d1", LIGHTHOUSE)
    index(db, "d1")
    for file in (settings.index_dir / "hot" / "segments").rglob("ids.npy"):
        file.write_bytes(b"cut")
    import retrieval.tier_writer

    retrieval.tier_writer._headers.clear()  # as in a process that has just started
    put(db, "d2", ["Bread is baked with yeast."])
    assert index(db, "d2").status == "done"
    assert reader.snapshot().dense.refused.keys() == {"hot"}
    with db.read() as session:
        build = session.query(BuildRow).one()
        assert (build.tier, build.status) == ("hot", "queued")
        job = session.query(JobRow).filter_by(subject_id=build.id).one().id
    run_job(job, run_build, db=db)
    assert reader.snapshot().hot.live_count == 3
    assert len(found(reader, "blue lighthouse")[0]) == 3


def test_an_encoder_of_another_width_is_refused_at_start_with_both_numbers(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from celery.exceptions import WorkerShutdown

    from core.errors import ConfigError
    from retrieval import tasks
    from retrieval.tier_repository import TierState, set_tier_state

    tasks.check_encoder(db)  # an empty tier takes any encoder
    with db.write() as session:
        set_tier_state(session, "hot", TierState(1, 1, "someone/wide", 512))
    with pytest.raises(ConfigError, match="geo models fetch someone/wide"):
        tasks.check_encoder(db)
    with db.write() as session:
        set_tier_state(session, "hot", TierState(1, 1, "intfloat/multilingual-e5-small", 512))
    with pytest.raises(ConfigError, match=r"512-wide vectors of intfloat/multilingual-e5-small.*gives 384"):
        tasks.check_encoder(db)
    monkeypatch.setenv("GEO_WORKER_NAME", "index")
    with pytest.raises(WorkerShutdown):
        tasks._start()


def test_pairs_with_a_version_that_left_go_when_either_side_goes_live(db: Database) -> None:
    """The other document's version was replaced between the comparison and the storing of the pair."""
    put(db, "d1", LIGHTHOUSE)
    index(db, "d1")
    put(db, "d2", LIGHTHOUSE)
    put(db, "d1", LIGHTHOUSE, version=2)
    index(db, "d1", version=2)
    with db.write() as session:
        for version in (1, 2):
            session.add(
                NearDuplicateRow(
                    document_id="d1", version=version, other_id="d2", other_version=1, similarity=1.0
                )
            )  # fmt: skip
    index(db, "d2")
    with db.read() as session:
        assert [row.version for row in session.query(NearDuplicateRow)] == [2]
