from __future__ import annotations

import pytest
from sqlalchemy import select, update

from core.db import Database
from core.models import JobRow
from core.redis_client import get_redis
from core.worker import waiting_messages
from generation.batch_room import BatchRoom
from tests.generation.rows import Library


@pytest.fixture
def library(sqlite_database: Database) -> Library:
    return Library(sqlite_database)


def batch_job(library: Library) -> str:
    _, job_id = library.ask(mode="free")
    with library.db.write() as session:
        session.execute(update(JobRow).where(JobRow.id == job_id).values(gives_way=True))
    return job_id


def rung() -> int:
    return waiting_messages(get_redis(), "generate")


def test_a_batch_answer_without_a_place_waits_and_is_rung_for_when_one_leaves(library: Library) -> None:
    room = BatchRoom(1)
    first, second = batch_job(library), batch_job(library)
    _, interactive = library.ask(mode="free")
    with library.db.write() as session:
        session.execute(update(JobRow).where(JobRow.id == first).values(status="running"))
    with room.place(library.db, first) as free:
        assert free
        with room.place(library.db, second) as other:
            assert not other
        with room.place(library.db, interactive) as other:
            assert other  # there is always a place for it
        before = rung()
    assert rung() == before + 1
    with library.db.read() as session:
        assert session.scalars(select(JobRow.status).where(JobRow.id == second)).one() == "waiting"
    with room.place(library.db, second) as free:
        assert free


def test_a_place_is_given_back_when_the_answer_fails(library: Library) -> None:
    room = BatchRoom(1)
    job_id = batch_job(library)
    with pytest.raises(RuntimeError), room.place(library.db, job_id):
        raise RuntimeError("a bug")
    with room.place(library.db, job_id) as free:
        assert free
