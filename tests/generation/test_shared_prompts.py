"""What one worker's answers share of their prompts, and what they do not."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from core.db import Database
from core.models import JobRow
from core.settings import get_settings
from core.types import CitationMode, Lang
from generation import service
from generation.prompt_book import Form
from generation.requests import GenerationRequest
from tests.generation.fakes import fake_plan
from tests.generation.rows import Library
from tests.generation.test_tasks import Stage

LATER = "The museum had 8.9 million visitors in 2023. [1]"


@pytest.fixture
def stage(sqlite_database: Database) -> Stage:
    return Stage(sqlite_database, LATER)


def use(stage: Stage, *passages: int, times: int = 3) -> None:
    """As if earlier prompts of the tenant had had these passages."""
    for _ in range(times):
        form = Form(Lang.EN, CitationMode.FREE, "neutral")
        stage.runtime.prompts.note(stage.library.tenant, form, passages)


def body(request: GenerationRequest) -> str:
    return request.messages[-1].content


def again(stage: Stage, query_id: str) -> str:
    with stage.library.db.write() as session:
        new = service.replay(session, stage.library.scope, query_id, evidence="stored")
    with stage.library.db.read() as session:
        job = session.scalars(select(JobRow.id).where(JobRow.subject_id == new)).one()
    stage.run(job)
    return new


def test_the_most_used_passage_stands_first_and_is_cited_by_its_own_marker(stage: Stage) -> None:
    tower, museum = (passage_id for passage_id, _ in stage.library.passages)
    use(stage, museum)
    answer = stage.answer(stage.ask("How many visitors?", mode="free"))
    assert body(stage.engine.requests[0]).startswith("Passages:\n[1] The museum")
    assert [s.passage_id for s in answer.sources] == [tower, museum]  # by rank, as before
    assert [(c.marker, c.passage_id) for c in answer.claims[0].citations] == [(2, museum)]
    assert answer.trace["generation"]["record"]["order"] == [museum, tower]


def test_a_replay_has_the_same_order_whatever_was_asked_since(stage: Stage) -> None:
    tower, museum = (passage_id for passage_id, _ in stage.library.passages)
    use(stage, museum)
    old = stage.ask("How many visitors?", mode="free")
    use(stage, tower, times=9)
    new = again(stage, old)
    assert body(stage.engine.requests[0]) == body(stage.engine.requests[1])
    with stage.library.db.read() as session:
        assert service.comparison(session, stage.library.scope, new)["reproduced"] is True
    stage.ask("How many visitors?", mode="free")
    assert body(stage.engine.requests[2]).startswith("Passages:\n[1] The tower")


def test_the_operator_may_ask_for_the_order_of_relevance(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEO_GENERATION__EVIDENCE_ORDER", "relevance")
    get_settings.cache_clear()
    use(stage, stage.library.passages[1][0])
    stage.ask("How tall is the tower?", mode="free")
    get_settings.cache_clear()
    assert body(stage.engine.requests[0]).startswith("Passages:\n[1] The tower")


def test_every_request_carries_its_tenants_salt(stage: Stage, sqlite_database: Database) -> None:
    stage.ask("How many visitors?", mode="free")
    first = stage.library
    stage.library = Library(sqlite_database)
    stage.ask("How many visitors?", mode="free")
    salts = [request.cache_salt for request in stage.engine.requests]
    assert salts == [first.tenant, stage.library.tenant]
    assert salts[0] != salts[1]


def test_an_answer_under_kv_pressure_uses_fewer_sources_and_says_so(sqlite_database: Database) -> None:
    stage = Stage(sqlite_database, "Pump house 0 opened in 1900. [1]", planned=fake_plan(1024))
    texts = [f"Pump house {n} opened in {1900 + n}. " + f"It has {n} doors. " * 20 for n in range(8)]
    stage.library = Library(sqlite_database, texts)
    idle = stage.ask("When did house 0 open?", mode="free")
    with stage.runtime.promises.held(1500):  # of 2,048 tokens of KV cache
        busy = stage.ask("When did house 0 open?", mode="free")
    assert len(body(stage.engine.requests[1])) < len(body(stage.engine.requests[0]))
    told = {n.code: n for n in stage.answer(busy).notices}
    assert "context_shortened" not in {n.code for n in stage.answer(idle).notices}
    used = told["context_shortened"].detail["used"]
    assert 0 < used < 8
    record = stage.answer(busy).trace["generation"]["record"]
    assert record["prompt_budget"] < record["full_budget"]
    assert len(record["order"]) == used
    assert len(stage.answer(busy).sources) == 8  # what was found is told, used or not
    assert stage.runtime.promises.tokens == 0
    repeated = stage.answer(again(stage, busy)).trace["generation"]["record"]
    assert repeated == record  # though the engine is idle by now
