from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from core.db import Database
from core.ids import new_id
from core.models import CursorRow, DocumentPlacementRow, EvidenceRow, QueryRow
from retrieval import access
from tests.retrieval.rows import add_document, add_tenant

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Use:
    """A tenant with three documents of two passages each, and queries that show them."""

    def __init__(self, db: Database) -> None:
        self.db = db
        with db.write() as session:
            self.tenant, self.collection = add_tenant(session, "t")
            self.documents, self.passages = zip(
                *(add_document(session, self.tenant, self.collection, ["a", "b"]) for _ in range(3)),
                strict=True,
            )

    def _query(self, session, task: str, at: datetime, status: str, trace: dict) -> str:
        query = new_id("qry")
        session.add(
            QueryRow(
                id=query, tenant_id=self.tenant, principal="k", collection_ids=[self.collection],
                question="q", task=task, status=status, trace=trace, finished_at=at,
            )
        )  # fmt: skip
        session.flush()
        return query

    def answer(self, *documents: int, at: datetime = NOW, status: str = "answered") -> None:
        with self.db.write() as session:
            query = self._query(session, "answer", at, status, {})
            pairs = [(d, p) for d in documents for p in self.passages[d]]
            for marker, (document, passage) in enumerate(pairs, 1):
                session.add(
                    EvidenceRow(
                        query_id=query, marker=marker, passage_id=passage, version=1, score=0.5,
                        document_id=self.documents[document],
                    )
                )  # fmt: skip

    def search(self, *passages: int, at: datetime = NOW, first_rank: int = 1) -> None:
        hits = [{"passage_id": p, "rank": n} for n, p in enumerate(passages, first_rank)]
        with self.db.write() as session:
            self._query(session, "search", at, "answered", {"hits": hits})

    def scores(self) -> list[float]:
        with self.db.read() as session:
            found = dict(
                session.execute(select(DocumentPlacementRow.document_id, DocumentPlacementRow.score)).all()
            )
        return [round(found.get(d, 0.0), 6) for d in self.documents]


@pytest.fixture
def use(database: Database) -> Use:
    return Use(database)


def count(use: Use, later: timedelta = timedelta(minutes=1)) -> int:
    return access.count_uses(use.db, NOW + later)


def near(*values: float) -> object:
    return pytest.approx(list(values), abs=1e-3)


def test_each_query_that_showed_a_document_counts_once(use: Use) -> None:
    use.answer(0, 1)
    use.answer(0)
    use.search(*use.passages[0], use.passages[1][0])
    assert count(use) == 3
    assert use.scores() == near(3, 2, 0)
    assert count(use) == 0
    assert use.scores() == near(3, 2, 0)


def test_refusals_failures_and_what_stands_far_down_are_no_uses(use: Use) -> None:
    use.answer(0, status="refused")
    use.answer(1, status="failed")
    use.search(use.passages[2][0], first_rank=11)
    use.search(999_999)  # its passage is gone
    assert count(use) == 4
    assert use.scores() == [0, 0, 0]


def test_older_uses_count_less_however_they_are_batched(use: Use) -> None:
    day = timedelta(days=1)
    use.answer(0, at=NOW - 28 * day)
    use.answer(0, at=NOW - 14 * day)
    use.answer(0, at=NOW)
    access.count_uses(use.db, NOW - 28 * day + timedelta(minutes=1))
    access.count_uses(use.db, NOW - 14 * day + timedelta(minutes=1))
    count(use)
    stepwise = use.scores()
    with use.db.write() as session:
        for table in (DocumentPlacementRow, CursorRow):
            for row in session.scalars(select(table)):
                session.delete(row)
    count(use)
    assert stepwise == near(1.75, 0, 0)
    assert use.scores() == near(*stepwise)


def test_the_newest_queries_wait_for_those_that_commit_late(use: Use) -> None:
    use.answer(0, at=NOW)
    assert count(use, timedelta(seconds=5)) == 0
    use.answer(1, at=NOW - timedelta(seconds=3))
    assert count(use) == 2
    assert use.scores() == near(1, 1, 0)


def test_many_queries_are_counted_in_batches_and_none_is_skipped_or_repeated(
    use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_BATCH", 3)
    for n in range(10):
        use.answer(n % 3, at=NOW + timedelta(microseconds=n // 4))  # several end in the same microsecond
    assert count(use) == 10
    assert use.scores() == near(4, 3, 3)


def test_a_kill_between_batches_loses_and_repeats_nothing(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_BATCH", 2)
    for n in range(6):
        use.answer(0, at=NOW + timedelta(microseconds=n))
    add, calls = access._add, []

    def killed(*args: object) -> None:
        add(*args)
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("killed")

    monkeypatch.setattr(access, "_add", killed)
    with pytest.raises(RuntimeError):
        count(use)
    assert use.scores() == near(2, 0, 0)
    count(use)
    assert use.scores() == near(6, 0, 0)
