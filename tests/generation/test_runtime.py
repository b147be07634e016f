"""The engine's runtime: start, canary, loss, and a stop that loses nothing."""

from __future__ import annotations

import threading
import time

import pytest
from sqlalchemy import update

from core.db import Database, utcnow
from core.models import JobRow, QueryRow
from core.settings import get_settings
from generation import service, tasks
from generation.engine_losses import loss_told
from generation.requests import Cancelled, HandBack
from generation.runtime import EXIT_ENGINE_DEAD, EngineNotReady, EngineRuntime
from generation.tasks import CANCELS
from generation.values import join_sentences
from tests.generation.fakes import FakeEngine
from tests.generation.test_tasks import GOOD, Stage, start
from tests.support.waiting import until


@pytest.fixture
def stage(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("GEO_GENERATION__HANG_AFTER_S", "1")
    monkeypatch.setenv("GEO_GENERATION__CANARY_IDLE_S", "1")
    monkeypatch.setenv("GEO_GENERATION__DRAIN_S", "0.3")
    monkeypatch.setattr("generation.runtime._HERALD_S", 0.05)
    get_settings.cache_clear()
    stage = Stage(sqlite_database)
    monkeypatch.setattr(tasks, "get_runtime", lambda: stage.runtime)
    return stage


def test_an_idle_engine_proves_that_it_works(stage: Stage) -> None:
    stage.runtime._proved_at = time.monotonic() - 5
    assert stage.runtime._lost(stage.engine) == ""
    until(lambda: stage.engine.proofs)
    until(lambda: not stage.runtime._proving)
    assert stage.runtime._lost(stage.engine) == ""
    assert stage.engine.proofs == 1  # not again at once


@pytest.mark.parametrize("sign", ["canary", "silence"])
def test_an_engine_that_hangs_is_killed_and_its_answers_begin_anew(stage: Stage, sign: str) -> None:
    query_id, job_id = stage.library.ask(mode="free")
    stage.engine.stalled.set()
    answering = start(stage, job_id)
    if sign == "canary":
        stage.runtime._prove(stage.engine)
    else:
        stage.engine.silent_for_s = 2.0
    stage.runtime._herald()
    assert stage.exits == [EXIT_ENGINE_DEAD]
    answering.join(timeout=5)
    with stage.library.db.read() as session:
        assert session.get_one(JobRow, job_id).status == "waiting"
        status = service.engine_status(session)
    assert (status.state, status.detail) == ("failed", "The engine hung.")
    assert loss_told().startswith("The engine hung ")
    following = EngineRuntime(lambda: FakeEngine(GOOD))
    following.start()
    assert following.wait_ready(time.monotonic() + 5)
    stage.runtime = following
    stage.run(job_id)
    assert [name for name, _ in stage.events(query_id)].count("done") == 1
    following.stop()


def test_sixteen_answers_survive_the_death_of_the_engine(stage: Stage) -> None:
    """As many streams as one batch holds: each ends once, with the text that is stored."""
    asked = [stage.library.ask(mode="free") for _ in range(16)]
    stage.engine.die_after = 7
    stage.engine.pause_s = 0.005
    threads = [threading.Thread(target=stage.run, args=(job_id,)) for _, job_id in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    stage.runtime._herald()
    assert stage.exits == [EXIT_ENGINE_DEAD]
    stage.engine = FakeEngine(GOOD)
    stage.runtime = EngineRuntime(lambda: stage.engine)
    stage.runtime._bring_up()
    for query_id, job_id in asked:
        stage.run(job_id)
        answer, events = stage.answer(query_id), stage.events(query_id)
        assert [name for name, _ in events].count("done") == 1
        last = [p["text"] for n, p in events[_after_restart(events) :] if n == "claim"]
        assert join_sentences(last) == answer.text
        assert [c.ordinal for c in answer.claims] == [0, 1]


def _after_restart(events: list[tuple[str, object]]) -> int:
    return max((n for n, (name, _) in enumerate(events) if name == "restart"), default=0)


def test_a_stopping_worker_hands_back_what_it_cannot_end(stage: Stage) -> None:
    query_id, job_id = stage.library.ask(mode="free")
    stage.engine.stalled.set()
    thread = threading.Thread(target=tasks._answer, args=(job_id,))
    thread.start()
    until(lambda: stage.engine.running)
    stage.runtime.begin_stop(CANCELS.call_all)
    thread.join(timeout=30)
    assert not thread.is_alive()
    with stage.library.db.read() as session:
        job = session.get_one(JobRow, job_id)
        assert (job.status, job.attempts, job.lease_token) == ("waiting", 0, None)
    assert stage.answer(query_id).status == "running"
    stage.engine = FakeEngine(GOOD)
    stage.runtime = EngineRuntime(lambda: stage.engine)
    stage.runtime._bring_up()
    stage.run(job_id)
    names = [name for name, _ in stage.events(query_id)]
    assert names.count("done") == names.count("sources") == 1
    assert "restart" not in names, "nothing had been shown yet that a reader would have to forget"


def test_an_answer_that_ends_in_time_is_not_handed_back(stage: Stage) -> None:
    query_id, job_id = stage.library.ask(mode="free")
    stage.runtime._settings = stage.runtime._settings.model_copy(update={"drain_s": 60.0})
    stage.runtime.begin_stop(CANCELS.call_all)
    tasks._answer(job_id)
    assert stage.answer(query_id).status == "answered"


def test_a_cancel_while_the_worker_stops_is_a_cancel(stage: Stage) -> None:
    query_id, job_id = stage.library.ask(mode="free")
    stage.engine.stalled.set()
    thread = threading.Thread(target=tasks._answer, args=(job_id,))
    thread.start()
    until(lambda: stage.engine.running)
    stage.runtime.handing_back = True
    with stage.library.db.write() as session:
        session.execute(update(QueryRow).where(QueryRow.id == query_id).values(cancel_requested=True))
    CANCELS.call_all()
    thread.join(timeout=30)
    assert stage.answer(query_id).status == "cancelled"


def test_a_cancel_before_the_engine_is_up_is_a_cancel(stage: Stage) -> None:
    stage.runtime._ready.clear()
    query_id, job_id = stage.library.ask(mode="free")
    thread = threading.Thread(target=tasks._answer, args=(job_id,))
    thread.start()
    until(lambda: query_id in CANCELS._callbacks)
    CANCELS.call_all()
    thread.join(timeout=30)
    assert stage.answer(query_id).status == "cancelled"


def test_waiting_ends_when_it_cannot_help(sqlite_database: Database) -> None:
    runtime = EngineRuntime(FakeEngine)
    with pytest.raises(Cancelled):
        runtime.wait_ready(time.monotonic() + 5, stop=lambda: True)
    runtime._hopeless, runtime.detail = True, "Legal sizes here: 1, 3."
    with pytest.raises(EngineNotReady, match="Legal sizes here"):
        runtime.wait_ready(time.monotonic() + 60)
    runtime._hopeless = False
    runtime._stopping.set()
    with pytest.raises(HandBack):
        runtime.wait_ready(time.monotonic() + 5)


def test_answers_that_need_no_engine_keep_their_threads(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEO_WORKER__GENERATION_THREADS", "2")
    get_settings.cache_clear()
    runtime = EngineRuntime(FakeEngine)
    waiting, released = threading.Event(), threading.Event()
    ended: list[type[BaseException]] = []

    def stop() -> bool:
        waiting.set()
        return released.is_set()

    def wait() -> None:
        try:
            runtime.wait_ready(time.monotonic() + 60, stop=stop)
        except Cancelled as end:
            ended.append(type(end))

    waits = threading.Thread(target=wait)
    waits.start()
    assert waiting.wait(30)
    with pytest.raises(HandBack):
        runtime.wait_ready(time.monotonic() + 5)
    released.set()
    waits.join(timeout=30)
    assert ended == [Cancelled]


def test_a_question_past_its_deadline_ends_and_says_so(stage: Stage) -> None:
    query_id, job_id = stage.library.ask(mode="free")
    with stage.library.db.write() as session:
        session.execute(update(QueryRow).where(QueryRow.id == query_id).values(deadline_at=utcnow()))
    tasks._answer(job_id)
    answer = stage.answer(query_id)
    assert answer.status == "failed"
    assert answer.error is not None
    assert answer.error.code == "deadline_exceeded"
    name, payload = stage.events(query_id)[-1]
    assert (name, payload["status"]) == ("done", "failed")
    assert stage.engine.requests == []


def test_a_deadline_of_its_own_cuts_the_answer_off(stage: Stage) -> None:
    from datetime import timedelta

    query_id, job_id = stage.library.ask(mode="free")
    stage.engine.stalled.set()
    with stage.library.db.write() as session:
        soon = utcnow() + timedelta(seconds=1.5)
        session.execute(update(QueryRow).where(QueryRow.id == query_id).values(deadline_at=soon))
    tasks._answer(job_id)
    answer = stage.answer(query_id)
    assert (answer.status, answer.mode_used) == ("incomplete", "extract")
    assert answer.mode_reason == "no generated sentence was finished before the deadline"
    assert answer.text.startswith("The tower is 330 metres tall.")
    assert stage.engine.running == {}


def test_the_engine_is_given_the_turn_of_the_question(stage: Stage) -> None:
    query_id, job_id = stage.library.ask(mode="free")
    with stage.library.db.write() as session:
        session.execute(update(QueryRow).where(QueryRow.id == query_id).values(priority="batch"))
    stage.run(job_id)
    stage.ask(mode="free")
    batch, interactive = stage.engine.requests
    head_start_ms = get_settings().generation.head_start_s * 1000
    assert 0 < interactive.priority - batch.priority + head_start_ms < 60_000


def test_an_engine_that_takes_long_to_start_leaves_the_time_to_write(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEO_GENERATION__DEADLINE_S", "1")
    get_settings.cache_clear()
    stage.runtime._ready.clear()
    query_id, job_id = stage.library.ask(mode="free")
    thread = threading.Thread(target=tasks._answer, args=(job_id,))
    thread.start()
    time.sleep(1.3)
    stage.runtime._ready.set()
    thread.join(timeout=30)
    assert stage.answer(query_id).status == "answered"
