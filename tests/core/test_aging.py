from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, update

from core.db import Database, utcnow
from core.models import JobRow, QueryRow
from core.reaper import reap
from core.settings import get_settings
from core.types import JobStatus
from tests.generation.rows import Library


@pytest.fixture
def library(database: Database) -> Library:
    return Library(database)


def batch_question(library: Library, asked_s_ago: float) -> str:
    """A batch question whose rerank waits, asked so long ago; returns its job."""
    from generation import service

    with library.db.write() as session:
        query_id = service.submit(
            session,
            library.scope,
            question="How tall is the tower?",
            collection_ids=[library.collection],
            priority="batch",
        )
    asked = utcnow() - timedelta(seconds=asked_s_ago)
    with library.db.write() as session:
        session.execute(update(JobRow).where(JobRow.subject_id == query_id).values(created_at=asked))
        return session.scalars(select(JobRow.id).where(JobRow.subject_id == query_id)).one()


def forward(library: Library) -> set[str]:
    with library.db.read() as session:
        return set(session.scalars(select(JobRow.id).where(~JobRow.gives_way)))


def test_batch_questions_give_way_until_they_waited_out_the_head_start(library: Library) -> None:
    young, old = batch_question(library, 10), batch_question(library, 100)
    assert forward(library) == set()
    assert reap(library.db, {})["let_forward"] == 1
    assert forward(library) == {old}
    assert young not in forward(library)


def test_few_are_let_forward_at_a_time_and_every_one_in_the_end(library: Library) -> None:
    """Whatever else comes, the oldest go on; so each is reached after finitely many."""
    at_once = get_settings().generation.aged_at_once
    jobs = [batch_question(library, 1000 - n) for n in range(7)]  # oldest first
    done: list[str] = []
    for _ in range(20):
        reap(library.db, {})
        under_way = forward(library) - set(done)
        assert len(under_way) <= at_once
        if not under_way:
            break
        first = min(under_way, key=jobs.index)
        assert first == jobs[len(done)]
        with library.db.write() as session:
            session.execute(update(JobRow).where(JobRow.id == first).values(status=JobStatus.DONE.value))
        done.append(first)
    assert done == jobs


def test_a_question_nobody_holds_ends_at_its_deadline(library: Library) -> None:
    job_id = batch_question(library, 10)
    with library.db.write() as session:
        session.execute(update(QueryRow).values(deadline_at=utcnow() - timedelta(seconds=1)))
    assert reap(library.db, {})["too_late"] == 1
    with library.db.read() as session:
        row = session.scalars(select(QueryRow)).one()
        assert (row.status, row.error_code) == ("failed", "deadline_exceeded")
        assert session.get_one(JobRow, job_id).status == "failed"
    assert reap(library.db, {})["too_late"] == 0
