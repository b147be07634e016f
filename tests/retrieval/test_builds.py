"""The doors to builds, and builds as jobs: pause, resume, cancel, kill, retry."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.db import Database, get_database, utcnow
from core.errors import Conflict, InvalidInput, NotFound
from core.jobs import run_job
from core.models import BuildRow, JobRow, PassageRow, QueryRow, QuestionVectorRow, TenantRow
from core.settings import Settings, get_settings
from core.types import BuildStatus, JobStatus, Role, Scope, Tier
from retrieval import build_control, build_task, builds, lease
from retrieval.build_task import run_build
from retrieval.manifest import PARTS, IndexFolder, Manifest
from retrieval.placing_job import BATCH_PASSAGES
from retrieval.tier_snapshot import SegmentedSnapshot
from retrieval.tier_status import tier_status
from tests.retrieval.indexing import DIMENSION, SPACE, Corpus
from tests.retrieval.killed_writer import FINISHED, run_until_killed

OPERATOR = Scope("t1", None, "key_1", Role.OPERATOR)
ALL = Scope("t1", None, "test")


@pytest.fixture
def corpus(sqlite_database: Database, settings: Settings) -> Corpus:
    return Corpus(sqlite_database, IndexFolder(settings.index_dir))


def opened(db: Database, tier: str = "hot", **options) -> builds.Build:
    with db.write() as session:
        return builds.request_rebuild(session, OPERATOR, tier=tier, **options)


def work(db: Database, build_id: str) -> builds.Build:
    """Run the newest job of a build, as a worker would."""
    with db.read() as session:
        job = builds.job_of(session, build_id)
        assert job is not None
    run_job(job.id, run_build, db=db)
    return look(db, build_id)


def look(db: Database, build_id: str) -> builds.Build:
    with db.read() as session:
        return builds.get_build(session, OPERATOR, build_id=build_id)


def served(corpus: Corpus) -> Manifest:
    return corpus.folder.read_manifest(corpus.folder.current_generation() or 0)


# -- doors -------------------------------------------------------------------------------------


def test_one_build_per_tier_is_open_and_all_concerns_each(database: Database) -> None:
    first = opened(database, "hot")
    with database.read() as session:
        job = builds.job_of(session, first.id)
        assert job is not None
        assert job.queue == "rebuild"
    for tier in ("hot", "all"):
        with pytest.raises(Conflict) as error:
            opened(database, tier)
        assert error.value.ids == {"build_id": first.id}
    other = opened(database, "cold")
    with database.write() as session:
        for build in (first, other):
            build_control.end_build(session, build.id, BuildStatus.PUBLISHED, to_generation=1, stats={})
    everything = opened(database, "all")
    for tier in (*PARTS, "all"):
        with pytest.raises(Conflict):
            opened(database, tier)
    with database.read() as session:
        assert [t.open_build for t in tier_status(session)] == [everything.id] * 4
        assert next(b.id for b in builds.list_builds(session, OPERATOR)) == everything.id


def test_unknown_parts_modes_models_and_builds_are_named(database: Database) -> None:
    with pytest.raises(NotFound):
        opened(database, "tepid")
    with pytest.raises(InvalidInput):
        opened(database, "hot", mode="quick")
    with pytest.raises(InvalidInput, match="in full"):
        opened(database, "lexical", mode="compact")
    with pytest.raises(InvalidInput, match="full rebuild of all"):
        opened(database, "hot", model="another/encoder")
    with pytest.raises(InvalidInput, match="geo models fetch another/encoder"):
        opened(database, "all", model="another/encoder")
    with database.write() as session:
        with pytest.raises(NotFound):
            builds.get_build(session, OPERATOR, build_id="bld_none")
        with pytest.raises(Conflict, match="No earlier generation"):
            builds.request_rollback(session, OPERATOR, tier="hot")
        assert session.query(BuildRow).count() == 0


def test_a_pack_that_writes_is_no_encoder(sqlite_database: Database, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pack.json").write_text('{"kind": "generator"}')
    with pytest.raises(InvalidInput, match="is a generator"):
        opened(sqlite_database, "all", model=str(tmp_path))


def test_the_configured_encoder_is_no_change(database: Database) -> None:
    assert opened(database, "hot", model=get_settings().packs.encoder).model == ""


def test_a_build_that_has_not_begun_is_cancelled_at_once(database: Database) -> None:
    build = opened(database)
    with database.write() as session:
        assert build_control.cancel_build(session, OPERATOR, build_id=build.id).status == "cancelled"
    for door in (build_control.cancel_build, build_control.pause_build, build_control.resume_build):
        with pytest.raises(Conflict, match="ended as cancelled"), database.write() as session:
            door(session, OPERATOR, build_id=build.id)
    with database.read() as session:
        assert session.get_one(BuildRow, build.id).open_key is None
        assert [job.status for job in session.query(JobRow)] == ["cancelled"]


def test_a_build_that_has_not_begun_is_paused_and_resumed_by_a_new_job(database: Database) -> None:
    build = opened(database)
    for _ in range(2):
        with database.write() as session:
            assert build_control.pause_build(session, OPERATOR, build_id=build.id).status == "paused"
    with pytest.raises(Conflict):
        opened(database)
    for _ in range(2):
        with database.write() as session:
            assert build_control.resume_build(session, OPERATOR, build_id=build.id).status == "queued"
    with database.read() as session:
        assert sorted(job.status for job in session.query(JobRow)) == ["cancelled", "waiting"]


def test_tiers_tell_what_they_serve(corpus: Corpus) -> None:
    with corpus.db.read() as session:
        assert [(t.tier, t.status) for t in tier_status(session)] == [
            ("hot", "empty"), ("warm", "empty"), ("cold", "empty"), ("lexical", "empty"),
        ]  # fmt: skip
    document = corpus.document(3)
    corpus.index(document)
    corpus.index(corpus.document(2))
    corpus.place(document, "cold")
    with corpus.db.read() as session:
        hot, warm, cold, lexical = tier_status(session)
    assert [t.status for t in (hot, warm, cold, lexical)] == ["ready", "empty", "ready", "ready"]
    assert (hot.vectors, hot.dead, cold.vectors, hot.pending) == (2, 3, 3, 0)
    assert (hot.generation, cold.generation) == (3, 3)
    assert min(hot.bytes, cold.bytes, lexical.bytes) > 100
    assert (hot.model, hot.dimension) == (SPACE.model, DIMENSION)


@pytest.mark.parametrize("part", PARTS)
def test_reported_damage_opens_one_rebuild_of_that_part_which_mends_it(corpus: Corpus, part: str) -> None:
    for tier in Tier:
        document = corpus.document(2)
        corpus.index(document)
        corpus.place(document, tier.value)
    for _ in range(2):
        builds.report_damage(corpus.db, part, "a file is cut")
    with corpus.db.read() as session:
        states = {t.tier: t for t in tier_status(session)}
        assert {t.tier for t in states.values() if t.status == "refused"} == {part}
        build = states[part].open_build
        assert build is not None
    assert work(corpus.db, build).status == "published"
    with corpus.db.read() as session:
        assert {t.status for t in tier_status(session)} == {"ready"}


# -- jobs --------------------------------------------------------------------------------------


class Asks:
    """Asks something of a build when it has done some passages, from inside its own steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int, what) -> None:
        step = build_task._Steps.__call__

        def asking(steps, state, done, total) -> None:
            if done >= after and not self.done:
                self.done = True
                what(steps)
            step(steps, state, done, total)

        self.done = False
        monkeypatch.setattr(build_task._Steps, "__call__", asking)


@pytest.fixture
def segments_of_32(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    """Ten segments' worth of passages in two tiers."""
    monkeypatch.setenv("GEO_RETRIEVAL__SEGMENT_ROWS", "32")
    get_settings.cache_clear()
    monkeypatch.setattr("retrieval.build_parts._SCAN", 8)
    for n in range(8):
        document = corpus.document(40)
        corpus.index(document)
        if n % 2:
            corpus.place(document, "warm")
    assert BATCH_PASSAGES > 40
    return corpus


def segment_names(corpus: Corpus, build_id: str) -> set[str]:
    place = corpus.folder.building / build_id
    return {p.name for tier in Tier for p in (place / tier / "segments").glob("seg_*")}


def test_a_paused_build_goes_on_where_it_stopped(
    segments_of_32: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = segments_of_32
    build = opened(corpus.db, "all")

    def pause(_steps) -> None:
        with corpus.db.write() as session:
            build_control.pause_build(session, OPERATOR, build_id=build.id)

    Asks(monkeypatch, 250, pause)
    before = served(corpus)
    paused = work(corpus.db, build.id)
    assert (paused.status, paused.finished_at) == ("paused", None)
    assert paused.progress_done >= 200
    assert paused.progress_total == 640
    kept = segment_names(corpus, build.id)
    assert len(kept) >= 6
    corpus.index(corpus.document(3))
    corpus.unindex("doc0001")
    with corpus.db.write() as session:
        build_control.resume_build(session, OPERATOR, build_id=build.id)
    done = work(corpus.db, build.id)
    assert done.status == "published"
    published = served(corpus)
    assert published.generation > before.generation
    assert kept <= {s.name for tier in Tier for s in published.tier(tier).segments}
    assert published.live_count == 8 * 40 + 3 - 40
    query = corpus.query()
    hits = corpus.reader().snapshot().dense.search(query, 9, ALL)
    assert [i for i, _ in hits] == corpus.expected(query, 9, ALL)


def test_a_build_is_told_of_and_stops_between_its_checks(
    segments_of_32: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = segments_of_32
    build = opened(corpus.db, "all")
    step = build_task._Steps.__call__
    seen: list[builds.Build] = []

    def pausing(steps, state, done, total) -> None:
        if state.stats.get("step") == "verify" and not seen:
            step(steps, state, done, total)
            seen.append(look(corpus.db, build.id))
            with corpus.db.write() as session:
                build_control.pause_build(session, OPERATOR, build_id=build.id)
        step(steps, state, done, total)

    monkeypatch.setattr(build_task._Steps, "__call__", pausing)
    assert work(corpus.db, build.id).status == "paused"
    assert (seen[0].stats["step"], seen[0].eta_s) == ("verify", None)
    with corpus.db.write() as session:
        build_control.resume_build(session, OPERATOR, build_id=build.id)
    done = work(corpus.db, build.id)
    assert (done.status, "step" in done.stats) == ("published", False)


def test_a_cancelled_build_changes_nothing_and_leaves_nothing(
    segments_of_32: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = segments_of_32
    build = opened(corpus.db, "all")

    def cancel(_steps) -> None:
        with corpus.db.write() as session:
            build_control.cancel_build(session, OPERATOR, build_id=build.id)

        for door in (build_control.pause_build, build_control.resume_build):
            with pytest.raises(Conflict, match="being cancelled"), corpus.db.write() as session:
                door(session, OPERATOR, build_id=build.id)

    Asks(monkeypatch, 100, cancel)
    before = served(corpus)
    assert work(corpus.db, build.id).status == "cancelled"
    assert served(corpus) == before
    assert not list(corpus.folder.building.iterdir())
    with corpus.db.read() as session:
        job = builds.job_of(session, build.id)
        assert job is not None
        assert job.status == JobStatus.CANCELLED.value
    opened(corpus.db, "all")


def test_an_outage_during_a_build_keeps_what_is_finished(
    segments_of_32: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = segments_of_32
    build = opened(corpus.db, "hot")

    def outage(_steps) -> None:
        raise ConnectionError("the database is away")

    Asks(monkeypatch, 100, outage)
    assert work(corpus.db, build.id).status == "running"
    kept = segment_names(corpus, build.id)
    assert kept
    assert work(corpus.db, build.id).status == "published"
    assert kept <= {s.name for s in served(corpus).tier("hot").segments}


def run_open_build() -> None:
    """What a maintenance worker does, in a process that will be killed."""
    db = get_database()
    with db.read() as session:
        build = session.query(BuildRow).filter(BuildRow.open_key.is_not(None)).one()
        job = builds.job_of(session, build.id)
        assert job is not None
    run_job(job.id, run_build, db=db)


@pytest.mark.parametrize("mode", [builds.FULL, builds.COMPACT])
def test_a_build_killed_at_any_step_goes_on_with_what_was_finished(
    segments_of_32: Corpus, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    corpus = segments_of_32
    monkeypatch.setenv("GEO_WORKER__LEASE_TTL_S", "1")
    monkeypatch.setattr(lease, "TTL_S", 0.3)
    get_settings.cache_clear()
    query = corpus.query()
    step, finished = 0, False
    while not finished:
        step += 37
        assert step < 400
        build = opened(corpus.db, "all", mode=mode)
        before = served(corpus)
        finished = run_until_killed(run_open_build, step) == FINISHED
        kept = segment_names(corpus, build.id)
        assert served(corpus) == before or served(corpus).generation == before.generation + 1
        hits = corpus.reader().snapshot().dense.search(query, 9, ALL)
        assert [i for i, _ in hits] == corpus.expected(query, 9, ALL)
        time.sleep(1.1)  # the dead worker's lease ends
        done = work(corpus.db, build.id)
        assert done.status == "published"
        assert kept <= {s.name for tier in Tier for s in served(corpus).tier(tier).segments}
        assert not list(corpus.folder.building.iterdir())
        hits = corpus.reader().snapshot().dense.search(query, 9, ALL)
        assert [i for i, _ in hits] == corpus.expected(query, 9, ALL)
    assert step > 37


def test_files_of_an_attempt_that_are_damaged_are_made_anew(
    segments_of_32: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = segments_of_32
    build = opened(corpus.db, "hot")

    def outage(_steps) -> None:
        raise ConnectionError("the machine went down")

    Asks(monkeypatch, 100, outage)
    work(corpus.db, build.id)
    for page in (corpus.folder.building / build.id).rglob("vectors.f16"):
        page.write_bytes(page.read_bytes()[:-2])
    assert work(corpus.db, build.id).status == "published"
    query = corpus.query()
    hits = corpus.reader().snapshot().dense.search(query, 9, ALL)
    assert [i for i, _ in hits] == corpus.expected(query, 9, ALL)


def test_a_failed_build_is_told_and_changes_nothing(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus.index(corpus.document(3))
    before = served(corpus)
    build = opened(corpus.db, "all", mode="compact")
    for page in corpus.folder.root.rglob("vectors.f16"):
        page.write_bytes(page.read_bytes()[:-1])
    failed = work(corpus.db, build.id)
    assert (failed.status, failed.error_code) == ("failed", "build_rejected")
    assert "Rebuild in full" in (failed.error_detail or "")
    assert served(corpus) == before
    assert not list(corpus.folder.building.iterdir())


def test_a_rollback_is_a_build_too(corpus: Corpus) -> None:
    corpus.index(corpus.document(3))
    old = served(corpus).generation
    assert work(corpus.db, opened(corpus.db, "all").id).status == "published"
    corpus.index(corpus.document(2))
    with pytest.raises(Conflict, match=f"can go to {old}"), corpus.db.write() as session:
        builds.request_rollback(session, OPERATOR, tier="all", generation=99)
    with corpus.db.write() as session:
        build = builds.request_rollback(session, OPERATOR, tier="all")
    assert work(corpus.db, build.id).status == "rolled_back"
    assert corpus.reader().snapshot().dense.live_count == 5


# -- gate --------------------------------------------------------------------------------------


def ask(corpus: Corpus, count: int, text: str = "lantern {}?") -> None:
    """Questions that were asked, with their vectors."""
    with corpus.db.write() as session:
        for n in range(count):
            query = QueryRow(
                id=f"qry_{n:03d}", tenant_id="t1", principal="k", collection_ids=["c1"],
                question=text.format(n),
            )  # fmt: skip
            session.add(query)
            session.flush()
            query.finished_at = utcnow()
            vector = corpus.query().astype("<f2").tobytes()
            session.add(QuestionVectorRow(query_id=query.id, model=SPACE.model, vector=vector))


def test_recall_and_saved_questions_are_in_the_outcome(corpus: Corpus) -> None:
    for tier in Tier:
        document = corpus.document(20)
        corpus.index(document)
        corpus.place(document, tier.value)
    ask(corpus, 12)
    done = work(corpus.db, opened(corpus.db, "all").id)
    assert done.status == "published"
    assert set(done.stats["recall"]) == {"hot", "warm", "cold"}
    assert min(done.stats["recall"].values()) >= 0.95
    assert (done.stats["compared"], done.stats["moved"]) == (12, 0), "words lead to many alike"


def test_a_tier_below_the_floor_is_not_published(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus.index(corpus.document(50))
    before = served(corpus)

    candidates = SegmentedSnapshot.candidates

    def misses(self, vectors, k, scope, **more):
        """What queries choose from, without the better half of it."""
        parts = candidates(self, vectors, k, scope, **more)
        assert parts
        assert all(part.exact is None for part in parts), "in order already"
        return [replace(one, scores=one.scores[:, k // 2 :], ids=one.ids[:, k // 2 :]) for one in parts]

    monkeypatch.setattr(SegmentedSnapshot, "candidates", misses)
    failed = work(corpus.db, opened(corpus.db, "hot").id)
    assert failed.error_code == "build_rejected"
    assert "floor is 0.95" in (failed.error_detail or "")
    assert served(corpus) == before


def test_answers_that_move_are_listed_and_refused_unless_accepted(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.models import PassageVectorRow

    corpus.index(corpus.document(60))
    ask(corpus, 20)
    with corpus.db.write() as session:  # what another encoder would do
        rows = session.query(PassageVectorRow).order_by(PassageVectorRow.passage_id).all()
        turned = [np.frombuffer(row.vector, "<f2")[::-1].tobytes() for row in rows]
        for row, vector in zip(rows, turned, strict=True):
            row.vector = vector
    failed = work(corpus.db, opened(corpus.db, "hot").id)
    assert failed.error_code == "build_rejected"
    assert "accept_moved" in (failed.error_detail or "")
    done = work(corpus.db, opened(corpus.db, "hot", accept_moved=True).id)
    assert done.status == "published"
    assert done.stats["moved"] >= 10
    first = done.stats["moved_answers"][0]
    assert first["before"] != first["after"]
    assert first["query_id"].startswith("qry_")
    assert {one["route"] for one in done.stats["moved_answers"]} == {"dense"}


def test_answers_that_only_words_move_refuse_a_build_of_all_parts_too(corpus: Corpus) -> None:
    corpus.index(corpus.document(60))
    ask(corpus, 12, "passage{}")
    with corpus.db.write() as session:  # what another way to make words would do
        rows = session.query(PassageRow).order_by(PassageRow.id).all()
        for row, words in zip(rows, [row.text for row in reversed(rows)], strict=True):
            row.text = words
    before = served(corpus)
    failed = work(corpus.db, opened(corpus.db, "all").id)
    assert failed.error_code == "build_rejected"
    assert "12 of 12 saved questions find something else first by the lexical route" in (
        failed.error_detail or ""
    )
    assert "dense" not in (failed.error_detail or "")
    assert served(corpus) == before
    done = work(corpus.db, opened(corpus.db, "all", accept_moved=True).id)
    assert (done.status, done.stats["compared"], done.stats["moved"]) == ("published", 24, 12)
    assert {one["route"] for one in done.stats["moved_answers"]} == {"lexical"}


def test_a_damaged_route_is_not_compared_and_the_other_one_is(corpus: Corpus) -> None:
    corpus.index(corpus.document(60))
    ask(corpus, 12, "passage{}")
    for path in (corpus.folder.lexical / served(corpus).lexical).iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    done = work(corpus.db, opened(corpus.db, "all").id)
    assert (done.status, done.stats["compared"], done.stats["moved"]) == ("published", 12, 0)


def test_a_build_needs_no_tenant_of_its_own(database: Database) -> None:
    with database.write() as session:
        session.add(TenantRow(id="t1", name="t1"))
    builds.report_damage(database, "hot", "cut")
    with database.read() as session:
        assert session.query(BuildRow).one().created_by == "reader"
