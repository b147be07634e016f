"""Sampled questions, their recall on a real index, and what a low one leads to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from prometheus_client import REGISTRY
from sqlalchemy import func, select

from core.db import Database, utcnow
from core.ids import new_id
from core.jobs import run_job
from core.models import AuditRow, BuildRow, QueryRow, QuestionVectorRow, RecallSampleRow, TierRow
from core.settings import RecallSettings, get_settings
from core.types import Role, Scope
from retrieval import builds, recall_round, recall_store
from retrieval.build_task import run_build
from retrieval.manifest import IndexFolder
from retrieval.recall_monitor import Action, Judgement, ServedTier, among_best, judge, recall_at
from retrieval.recall_round import recall_round as run_round
from retrieval.recall_store import Window, is_sampled, recall_report
from retrieval.tier_repository import ram_untold
from retrieval.tiers import IndexReader
from tests.retrieval.indexing import SPACE, Corpus

OPERATOR = Scope("t1", None, "key_op", Role.OPERATOR)


@dataclass
class Sloppy:
    """A tier that misses every third hit unless it is searched with twice the effort."""

    tier: Any
    effort: float

    @property
    def live_count(self) -> int:
        return self.tier.live_count

    refused = ""

    def search(
        self, vector: np.ndarray, k: int, scope: Scope, *, passage_ids=None
    ) -> list[tuple[int, float]]:
        hits = self.tier.search_exact(vector, 2 * k, scope, passage_ids=passage_ids)
        return hits[:k] if self.effort >= 2 else [h for n, h in enumerate(hits) if n % 3][:k]

    def stats(self) -> Any:
        return self.tier.stats()

    def search_exact_many(self, *args: Any) -> Any:
        return self.tier.search_exact_many(*args)

    def search_exact(self, *args: Any, **options: Any) -> list[tuple[int, float]]:
        return self.tier.search_exact(*args, **options)


@pytest.fixture
def corpus(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    monkeypatch.setenv("GEO_RECALL__SAMPLE_SHARE", "1")
    monkeypatch.setenv("GEO_RECALL__MIN_SAMPLES", "5")
    monkeypatch.setattr(recall_round, "_ENOUGH", 1)
    get_settings.cache_clear()
    folder = IndexFolder(get_settings().index_dir)
    folder.create()
    made = Corpus(sqlite_database, folder)
    for _ in range(4):
        made.index(made.document(20))
    return made


@pytest.fixture
def sloppy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = recall_round.served_tiers

    def served(*args: Any) -> list[ServedTier]:
        return [ServedTier(t.name, t.effort, Sloppy(t.snapshot, t.effort)) for t in real(*args)]

    monkeypatch.setattr(recall_round, "served_tiers", served)


def ask(corpus: Corpus, count: int = 1, **fields: Any) -> None:
    """Finished queries whose vectors the rerank task kept."""
    with corpus.db.write() as session:
        for _ in range(count):
            query = new_id("qry")
            session.add(
                QueryRow(
                    id=query, tenant_id="t1", principal="k", question="q", status="answered",
                    finished_at=utcnow(), **{"collection_ids": ["c1"], **fields},
                )
            )  # fmt: skip
            session.flush()
            vector = corpus.query().astype(np.float16).tobytes()
            recall_store.keep_question(session, query, vector, SPACE.model)


def samples(corpus: Corpus) -> list[tuple[str, float, float]]:
    with corpus.db.read() as session:
        rows = session.execute(
            select(RecallSampleRow.tier, RecallSampleRow.effort, RecallSampleRow.recall).order_by(
                RecallSampleRow.id
            )
        ).all()
    return [(tier, effort, round(recall, 3)) for tier, effort, recall in rows]


def events(corpus: Corpus) -> list[tuple[str, str, dict[str, Any]]]:
    with corpus.db.read() as session:
        rows = session.scalars(select(AuditRow).order_by(AuditRow.id)).all()
    assert {r.principal for r in rows} <= {"recall-monitor"}
    return [(r.action, r.subject, r.details) for r in rows]


def test_an_exact_tier_is_measured_at_one_and_each_question_once(corpus: Corpus) -> None:
    ask(corpus, 3)
    assert run_round(corpus.db) == 3
    assert samples(corpus) == [("hot", 1.0, 1.0)] * 3
    assert run_round(corpus.db) == 0
    assert REGISTRY.get_sample_value("geo_recall_at_10", {"tier": "hot"}) == 1.0
    assert REGISTRY.get_sample_value("geo_recall_floor") == 0.95
    assert events(corpus) == []


def test_few_questions_wait_for_more_but_not_for_long(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_round, "_ENOUGH", 3)
    ask(corpus, 2)
    assert run_round(corpus.db) == 0
    ask(corpus)
    assert run_round(corpus.db) == 3
    ask(corpus)
    with corpus.db.write() as session:
        for waiting in session.scalars(select(QuestionVectorRow)):
            waiting.at -= timedelta(minutes=6)
    assert run_round(corpus.db) == 1


def test_questions_are_run_in_their_own_scope_and_filter(corpus: Corpus) -> None:
    corpus.index(corpus.document(5, tenant="t2", collection="c2"))
    ask(corpus, collection_ids=["c2"])  # of another tenant: finds nothing, says nothing
    ask(corpus, filters={"documents": ["doc0001"]})
    assert run_round(corpus.db) == 2
    assert samples(corpus) == [("hot", 1.0, 1.0)]


def test_questions_of_another_encoder_or_of_long_ago_say_nothing(corpus: Corpus) -> None:
    ask(corpus, 2)
    with corpus.db.write() as session:
        one, two = session.scalars(select(QuestionVectorRow)).all()
        one.model, two.at = "test/other", utcnow() - timedelta(hours=2)
    assert run_round(corpus.db) == 1
    assert samples(corpus) == []
    assert run_round(corpus.db) == 0


@pytest.mark.usefixtures("sloppy")
def test_a_tier_below_the_floor_is_searched_harder_until_it_is_good(corpus: Corpus) -> None:
    ask(corpus, 4)
    run_round(corpus.db)
    assert events(corpus) == [], "too few samples change nothing"
    before = IndexReader(corpus.folder).snapshot().generation
    ask(corpus, 2)
    run_round(corpus.db)
    raised = IndexReader(corpus.folder).snapshot()
    assert (raised.hot.ref.effort, raised.generation) == (1.5, before + 1)
    ((action, tier, details),) = events(corpus)
    assert (action, tier, details["from"], details["to"], details["samples"]) == (
        "tier.effort",
        "hot",
        1.0,
        1.5,
        6,
    )
    ask(corpus, 6)
    run_round(corpus.db)
    ask(corpus, 6)
    run_round(corpus.db)
    assert [(e, r) for _, e, r in samples(corpus)[-6:]] == [(2.25, 1.0)] * 6
    with corpus.db.read() as session:
        assert (session.get_one(TierRow, "hot").ram_bytes or 0) > 80 * 2 * 16, (
            "vectors of 16 numbers and more"
        )
        report = recall_report(session, OPERATOR, hours=1)
    hot = report.tiers[0]
    assert (hot.mean, hot.samples, hot.effort) == (1.0, 6, 2.25)
    assert hot.points[-1].lowest < 1
    assert len(events(corpus)) == 2
    corpus.index(corpus.document(2))
    assert IndexReader(corpus.folder).snapshot().hot.ref.effort == 2.25, "later publishes keep it"


@pytest.mark.usefixtures("sloppy")
def test_a_tier_at_its_limit_is_rebuilt_once(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEO_RECALL__MAX_EFFORT", "1")
    get_settings.cache_clear()
    ask(corpus, 6)
    run_round(corpus.db)
    ((action, tier, details),) = events(corpus)
    with corpus.db.read() as session:
        build = session.scalars(select(BuildRow)).one()
    assert (action, tier, details["build"], build.created_by) == (
        "tier.rebuild",
        "hot",
        build.id,
        "recall-monitor",
    )
    with corpus.db.write() as session:
        row = session.get_one(BuildRow, build.id)
        row.status, row.open_key = "failed", None
    ask(corpus)
    run_round(corpus.db)
    with corpus.db.read() as session:
        assert session.scalar(select(func.count()).select_from(BuildRow)) == 1


def test_samples_from_before_a_rebuild_are_not_held_against_the_tier(corpus: Corpus) -> None:
    with corpus.db.write() as session:
        recall_store.store_samples(session, [], [recall_store.Sample("hot", 3, 1.0, 0.1)] * 9)
        assert recall_store.window(session, "hot", 1.0) == Window(pytest.approx(0.1), 9)
        session.add(BuildRow(id="bld", tier="hot", status="published", to_generation=4, created_by="x"))
        session.flush()
        assert recall_store.window(session, "hot", 1.0) == Window(None, 0)
        recall_store.store_samples(session, [], [recall_store.Sample("hot", 4, 1.0, 1.0)])
        assert recall_store.window(session, "hot", 1.0) == Window(1.0, 1)


def test_a_tier_that_was_rebuilt_after_it_was_measured_keeps_its_effort(corpus: Corpus) -> None:
    measured = corpus.folder.read_manifest(corpus.folder.current_generation() or 0)
    with corpus.db.write() as session:
        build = builds.request_rebuild(session, OPERATOR, tier="hot")
    with corpus.db.read() as session:
        job = builds.job_of(session, build.id)
    assert job is not None
    run_job(job.id, run_build, db=corpus.db)
    assert not recall_round.set_effort(corpus.db, measured, "hot", 1.5, Window(0.5, 9))
    rebuilt = corpus.folder.read_manifest(corpus.folder.current_generation() or 0)
    assert rebuilt.tier("hot").effort == 1.0
    assert events(corpus) == []
    assert recall_round.set_effort(corpus.db, rebuilt, "hot", 1.5, Window(0.5, 9))


def test_old_samples_and_all_but_the_newest_questions_are_forgotten(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_store, "_KEPT_QUESTIONS", 3)
    ask(corpus, 5)
    run_round(corpus.db)
    with corpus.db.write() as session:
        assert session.scalar(select(func.count()).select_from(QuestionVectorRow)) == 3
        recall_store.forget_old(session, utcnow() + timedelta(days=31))
        assert session.scalar(select(func.count()).select_from(RecallSampleRow)) == 0


def test_a_tier_is_asked_for_what_is_among_the_best_of_all() -> None:
    own, other, third = [(1, 0.9), (2, 0.7), (3, 0.5)], [(4, 0.8), (5, 0.6), (6, 0.1)], [(7, 0.65)]
    assert among_best(own, [other, third], 4) == [(1, 0.9), (2, 0.7)]
    assert among_best(other, [own, third], 4) == [(4, 0.8)]
    assert among_best(third, [own, other], 4) == [(7, 0.65)]
    assert among_best(own, [], 2) == own[:2]
    assert among_best([], [own], 2) == []


@pytest.mark.parametrize(
    ("found", "exact", "expected"),
    [
        ([], [], None),
        ([], [(1, 0.9)], 0),
        ([(1, 0.9), (2, 0.8)], [(1, 0.9), (2, 0.8)], 1),
        ([(1, 0.9), (3, 0.7)], [(1, 0.9), (2, 0.8)], 0.5),
        ([(1, 0.9), (3, 0.8)], [(1, 0.9), (2, 0.8)], 1),  # equally good
        ([(4, 0.5)], [(1, 0.9), (2, 0.8)], 0),
    ],
)
def test_recall_counts_what_was_found_and_what_is_as_good(found, exact, expected) -> None:
    assert recall_at(found, exact) == expected


@pytest.mark.parametrize(
    ("mean", "count", "effort", "expected"),
    [
        (None, 0, 1.0, Judgement(Action.NONE, 1.0)),
        (0.5, 19, 1.0, Judgement(Action.NONE, 1.0)),
        (0.95, 100, 1.0, Judgement(Action.NONE, 1.0)),
        (0.949, 20, 1.0, Judgement(Action.RAISE, 1.5)),
        (0.9, 100, 6.0, Judgement(Action.RAISE, 8.0)),
        (0.9, 100, 8.0, Judgement(Action.REBUILD, 8.0)),
        (0.99, 100, 1.0, Judgement(Action.LOWER, 0.6667)),
        (0.99, 99, 1.0, Judgement(Action.NONE, 1.0)),
        (0.97, 100, 1.0, Judgement(Action.NONE, 1.0)),
        (1.0, 100, 0.3, Judgement(Action.NONE, 0.3)),
    ],
)
def test_what_a_mean_calls_for(mean, count, effort, expected) -> None:
    assert judge(Window(mean, count), effort, 0.95, RecallSettings()) == expected


@pytest.mark.parametrize(
    ("before", "action"), [(None, Action.LOWER), (0.96, Action.LOWER), (0.94, Action.NONE)]
)
def test_an_effort_that_was_too_little_is_not_tried_again(before: float | None, action: Action) -> None:
    less = Window(before, 20 if before else 0)
    assert judge(Window(0.99, 100), 1.5, 0.95, RecallSettings(), less).action is action


def test_lowering_and_raising_meet_the_same_efforts() -> None:
    settings = RecallSettings()
    lower = judge(Window(1.0, 100), 1.0, 0.95, settings).effort
    raised = judge(Window(0.5, 100), lower, 0.95, settings).effort
    assert (lower, raised) == (0.6667, pytest.approx(1.0, abs=1e-3))


def test_a_first_round_tells_what_tiers_take_although_nobody_asked(corpus: Corpus) -> None:
    assert run_round(corpus.db) == 0
    with corpus.db.read() as session:
        assert (session.get_one(TierRow, "hot").ram_bytes or 0) > 80 * 2 * 16
        assert not ram_untold(session)


def test_a_tier_that_finds_more_than_it_has_to_is_searched_less(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEO_RECALL__WINDOW", "6")
    get_settings.cache_clear()
    ask(corpus, 6)
    run_round(corpus.db)
    assert IndexReader(corpus.folder).snapshot().hot.ref.effort == 0.6667
    ((action, tier, details),) = events(corpus)
    assert (action, tier, details["from"], details["to"]) == ("tier.effort", "hot", 1.0, 0.6667)


def test_the_sample_has_its_share_and_is_decided_by_the_id() -> None:
    ids = [new_id("qry") for _ in range(20_000)]
    share = sum(is_sampled(i, 0.05) for i in ids) / len(ids)
    assert 0.04 < share < 0.06
    assert not any(is_sampled(i, 0) for i in ids)
    assert all(is_sampled(i, 1) for i in ids)
    assert [is_sampled(i, 0.05) for i in ids] == [is_sampled(i, 0.05) for i in ids]
