from __future__ import annotations

import pytest
from sqlalchemy import select, update

from core.db import Database
from core.errors import InvalidInput, NotFound
from core.models import DocumentRow, JobRow, QueryRow
from core.settings import get_settings
from core.types import Role, Scope
from generation import service
from generation.admitting import EngineBusy
from tests.generation.test_tasks import GOOD, Stage


@pytest.fixture
def stage(sqlite_database: Database) -> Stage:
    return Stage(sqlite_database)


def again(stage: Stage, query_id: str) -> str:
    with stage.library.db.write() as session:
        new = service.replay(session, stage.library.scope, query_id, evidence="stored")
    with stage.library.db.read() as session:
        job = session.scalars(select(JobRow.id).where(JobRow.subject_id == new)).one()
    stage.run(job)
    return new


def compared(stage: Stage, query_id: str) -> dict[str, object]:
    with stage.library.db.read() as session:
        return service.comparison(session, stage.library.scope, query_id)


@pytest.mark.parametrize("mode", ["extract", "free"])
def test_the_same_evidence_prompt_and_seed_give_the_same_answer(stage: Stage, mode: str) -> None:
    old = stage.ask(mode=mode)
    new = again(stage, old)
    found = compared(stage, new)
    assert found["reproduced"] is True
    assert found["differences"] == []
    assert stage.answer(new).replay_of == old
    record = stage.answer(new).trace["generation"]["record"]
    assert bool(record.get("prompt_sha256")) is (mode == "free")


def test_what_differs_is_named(stage: Stage) -> None:
    old = stage.ask(mode="free")
    stage.engine.script = GOOD.replace("The museum had 8.9 million visitors in 2023. [2]", "").strip()
    found = compared(stage, again(stage, old))
    assert found["reproduced"] is False
    assert found["same"] == {
        "question": True,
        "policy": True,
        "profile": True,
        "variants": True,
        "evidence": True,
        "record": True,
        "status": True,
        "text": False,
        "claims": False,
    }


def test_a_document_that_is_gone_shows_as_other_evidence_is_used(stage: Stage) -> None:
    old = stage.ask(mode="extract")
    with stage.library.db.write() as session:
        session.execute(
            update(DocumentRow).where(DocumentRow.id == stage.library.documents[0]).values(live_version=None)
        )
    found = compared(stage, again(stage, old))
    assert found["same"]["claims"] is False  # type: ignore[index] # a JSON object


def test_a_replay_is_admitted_like_a_question(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    old = stage.ask(mode="free")
    db, scope = stage.library.db, stage.library.scope
    with db.write() as session:
        repeated = [service.replay(session, scope, old, evidence=how) for how in ("stored", "fresh")]
    for new in repeated:
        row = stage.library.row(new)
        assert row.kv_tokens > 0
        assert row.deadline_at is not None
    monkeypatch.setenv("GEO_GENERATION__MAX_OPEN", "2")
    get_settings.cache_clear()
    for how in ("stored", "fresh"):
        with db.write() as session, pytest.raises(EngineBusy):
            service.replay(session, scope, old, evidence=how)


def test_a_search_is_not_answered_by_a_replay(stage: Stage) -> None:
    library = stage.library
    with library.db.write() as session:
        searched = service.submit(
            session, library.scope, question="How tall?", collection_ids=[library.collection], task="search"
        )
        session.get_one(QueryRow, searched).status = "answered"
        with pytest.raises(InvalidInput, match="search"):
            service.replay(session, library.scope, searched, evidence="stored")


def test_only_ended_queries_of_ones_own_can_be_repeated(stage: Stage) -> None:
    query_id, _ = stage.library.ask()
    with stage.library.db.write() as session, pytest.raises(InvalidInput, match="not ended"):
        service.replay(session, stage.library.scope, query_id, evidence="stored")
    stranger = Scope("ten_other", None, "key_2", Role.ADMIN)
    with stage.library.db.write() as session, pytest.raises(NotFound):
        service.replay(session, stranger, query_id, evidence="stored")
    done = stage.ask()
    assert compared(stage, done)["reproduced"] is None
