from __future__ import annotations

import threading
import time

import pytest
from sqlalchemy import update

from core.db import Database
from core.models import DocumentRow
from core.types import CitationMode, Lang
from generation.engine import LocalEngine
from generation.prompt_book import Form
from generation.runtime import EngineRuntime
from generation.warmer import Warmer
from tests.generation.rows import Library
from tests.generation.test_tasks import Stage
from tests.support.waiting import until

FORM = Form(Lang.EN, CitationMode.FREE, "neutral")


@pytest.fixture
def stage(sqlite_database: Database) -> Stage:
    return Stage(sqlite_database)


def warmer(stage: Stage, openings: int = 8) -> Warmer:
    made = Warmer(stage.runtime, stage.library.db, openings=openings, idle_s=0.0)
    stage.runtime.on_busy = made._make_way
    return made


def test_popular_openings_are_computed_under_their_tenants_salt(stage: Stage) -> None:
    for _ in range(2):
        stage.ask(mode="free")
    asked = len(stage.engine.requests)
    assert warmer(stage).warm() == 1
    (request,) = stage.engine.requests[asked:]
    assert (request.max_tokens, request.cache_salt) == (1, stage.library.tenant)
    assert request.priority > max(r.priority for r in stage.engine.requests[:asked])
    before, after = (r.messages[-1].content for r in (stage.engine.requests[0], request))
    assert before.split("\n\nQuestion:")[0] == after.split("\n\nQuestion:")[0]
    assert request.messages[0] == stage.engine.requests[0].messages[0]


def test_nothing_is_computed_ahead_while_an_answer_runs(stage: Stage) -> None:
    stage.runtime.prompts.note(stage.library.tenant, FORM, [stage.library.passages[0][0]])
    stage.runtime.prompts.note(stage.library.tenant, FORM, [stage.library.passages[0][0]])
    with stage.runtime:
        assert warmer(stage).warm() == 0
    assert stage.engine.requests == []


def test_an_answer_that_arrives_aborts_what_is_computed_ahead(stage: Stage) -> None:
    for _ in range(2):
        stage.runtime.prompts.note(stage.library.tenant, FORM, [stage.library.passages[0][0]])
    stage.engine.stalled.set()
    ahead, done = warmer(stage), list[int]()
    thread = threading.Thread(target=lambda: done.append(ahead.warm()))
    thread.start()
    until(lambda: bool(stage.engine.running))
    with stage.runtime:
        thread.join(timeout=5)
        assert done == [0]
        assert not stage.engine.running


def test_a_pass_is_not_repeated_until_somebody_asked(stage: Stage) -> None:
    for _ in range(2):
        stage.runtime.prompts.note(stage.library.tenant, FORM, [stage.library.passages[0][0]])
    ahead = warmer(stage)
    ahead.start()
    try:
        until(lambda: len(stage.engine.requests) == 1)
        time.sleep(1.5)  # the thread looks once a second
        assert len(stage.engine.requests) == 1
        stage.ask(mode="free")
        until(lambda: len(stage.engine.requests) == 3)
    finally:
        ahead.stop()


def test_a_deleted_passage_is_never_computed_ahead(stage: Stage) -> None:
    tower, museum = (passage_id for passage_id, _ in stage.library.passages)
    for _ in range(2):
        stage.runtime.prompts.note(stage.library.tenant, FORM, [tower, museum])
    with stage.library.db.write() as session:
        session.execute(
            update(DocumentRow).where(DocumentRow.id == stage.library.documents[1]).values(live_version=None)
        )
    warmer(stage).warm()
    assert "tower" in stage.engine.requests[0].messages[-1].content
    assert "museum" not in stage.engine.requests[0].messages[-1].content


def test_openings_are_bounded_by_number_and_by_blocks(stage: Stage) -> None:
    texts = [f"House {n} is old. " + "It is green. " * 40 for n in range(12)]
    stage.library = Library(stage.library.db, texts)
    for passage_id, _ in stage.library.passages:
        for _ in range(2):
            stage.runtime.prompts.note(stage.library.tenant, FORM, [passage_id])
    assert warmer(stage, openings=2).warm() == 2
    most = warmer(stage, openings=12).warm()  # a quarter of 2,048 tokens
    assert 2 < most < 12


def test_a_new_worker_learns_from_stored_answers(stage: Stage) -> None:
    for _ in range(2):
        stage.ask(mode="free")
    stage.ask(mode="extract")
    old, stage.runtime = stage.runtime, EngineRuntime(lambda: stage.engine)
    stage.runtime._bring_up()
    warmer(stage).seed()
    assert stage.runtime.prompts.popular(8) == old.prompts.popular(8)
    assert stage.runtime.prompts.noted == 2


@pytest.mark.engine
@pytest.mark.timeout(600)
def test_the_first_question_finds_the_opening_in_the_cache(
    engine: LocalEngine, sqlite_database: Database
) -> None:
    stage = Stage(sqlite_database)
    texts = [
        "The tower is 330 metres tall. " + "It is old. " * 20,
        "The museum is new. " + "It is green. " * 20,
    ]
    stage.library = Library(sqlite_database, texts)
    stage.runtime = EngineRuntime(lambda: engine)
    stage.runtime._bring_up()
    for _ in range(2):
        stage.runtime.prompts.note(stage.library.tenant, FORM, [p for p, _ in stage.library.passages])
    assert warmer(stage).warm() == 1
    usage = stage.answer(stage.ask(mode="free", max_sentences=1, max_answer_tokens=24)).usage
    assert usage["cached_tokens"] >= 128
    # Another tenant with the same texts finds nothing, so its waiting time tells nothing.
    stage.library = Library(sqlite_database, texts)
    usage = stage.answer(stage.ask(mode="free", max_sentences=1, max_answer_tokens=24)).usage
    assert usage["cached_tokens"] == 0
