from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from core.db import Database, utcnow
from core.errors import InvalidInput
from core.models import QueryRow
from core.settings import get_settings
from generation import admission_repository as counted
from generation import repository, service
from generation.admission import Capacity, Demand, Limits, refusal
from generation.admitting import EngineBusy
from tests.generation.fakes import fake_plan
from tests.generation.rows import Library

KV_TOKENS = 2048  # of `fake_plan`: 64 blocks of 32


@pytest.fixture
def library(database: Database, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setenv("GEO_GENERATION__ADMIT_KV_SHARE", "1")
    monkeypatch.setenv("GEO_GENERATION__MAX_OPEN", "40")
    get_settings.cache_clear()
    library = Library(database)
    with database.write() as session:
        repository.publish_plan(session, fake_plan(max_model_len=500).plan)
    return library


def ask(library: Library, mode: str = "free", **more: object) -> str:
    with library.db.write() as session:
        return service.submit(
            session,
            library.scope,
            question="How tall is the tower?",
            collection_ids=[library.collection],
            policy={"mode": mode},
            **more,  # type: ignore[arg-type] # keywords by name
        )


def end(library: Library, query_id: str, *, kv_tokens: int, took_s: float) -> None:
    now = utcnow()
    with library.db.write() as session:
        session.execute(
            update(QueryRow)
            .where(QueryRow.id == query_id)
            .values(
                status="answered",
                kv_tokens=kv_tokens,
                created_at=now - timedelta(seconds=took_s),
                finished_at=now,
            )
        )


def test_questions_are_taken_in_until_the_blocks_are_spoken_for(library: Library) -> None:
    for _ in range(KV_TOKENS // 500):
        ask(library)
    with pytest.raises(EngineBusy) as refused:
        ask(library)
    assert (refused.value.status, refused.value.ids["reason"]) == (429, "kv")
    assert refused.value.retry_after_s == 15  # nothing has ended to measure by
    ask(library, mode="extract")  # needs no engine
    ask(library, priority="batch")  # waits


def test_the_wait_is_told_by_the_measured_rate(library: Library) -> None:
    end(library, ask(library), kv_tokens=400, took_s=8)  # 50 KV tokens a second
    for _ in range(KV_TOKENS // 400):
        ask(library)
    with pytest.raises(EngineBusy) as refused:
        ask(library)
    # 6 × 400 are 352 more than the blocks hold: 7 s of work at 50 a second, some more for a slow test.
    assert refused.value.retry_after_s is not None
    assert 7 <= refused.value.retry_after_s <= 12


def test_a_question_needs_what_the_last_ones_needed(library: Library) -> None:
    with library.db.read() as session:
        assert counted.expected_kv_tokens(session, {"max_model_len": 500}) == 500
    for kv_tokens in (100, 300):
        end(library, ask(library), kv_tokens=kv_tokens, took_s=1)
    assert library.row(ask(library)).kv_tokens == 200
    assert library.row(ask(library, mode="extract")).kv_tokens == 0


def test_a_question_that_could_not_be_answered_in_time_is_refused(library: Library) -> None:
    end(library, ask(library), kv_tokens=100, took_s=10)
    for _ in range(3):
        ask(library)
    with pytest.raises(EngineBusy) as refused:
        ask(library, deadline_s=20)
    assert refused.value.ids["reason"] == "late"
    ask(library, deadline_s=200)


def test_the_queue_is_bounded_and_batch_questions_keep_nobody_out(library: Library) -> None:
    ids = [ask(library, priority="batch") for _ in range(39)]
    with library.db.read() as session:
        ahead = counted.open_demand(session).ahead(batch_at_once=2)
    assert ahead == Demand(2, 1000)
    with pytest.raises(EngineBusy) as refused:
        [ask(library, priority="batch") for _ in range(2)]
    assert refused.value.ids["reason"] == "queue"
    with library.db.write() as session:
        service.cancel(session, library.scope, ids[0])
    ask(library, priority="batch")


def test_deadlines_follow_the_priority_and_the_asker(library: Library) -> None:
    def allowed(query_id: str) -> float:
        row = library.row(query_id)
        assert row.deadline_at is not None
        return (row.deadline_at - row.created_at).total_seconds()

    settings = get_settings().generation
    assert allowed(ask(library)) == pytest.approx(settings.interactive_deadline_s, abs=2)
    assert allowed(ask(library, priority="batch")) == pytest.approx(settings.batch_deadline_s, abs=2)
    assert allowed(ask(library, deadline_s=7)) == pytest.approx(7, abs=2)
    with pytest.raises(InvalidInput, match="deadline_s"):
        ask(library, deadline_s=0)


demands = st.builds(Demand, st.integers(0, 500), st.integers(0, 10**6))
capacities = st.builds(Capacity, st.integers(0, 10**6), st.floats(0, 10**5))
limits = st.builds(Limits, st.floats(0.1, 10), st.integers(1, 500))


@given(demands, st.integers(1, 5000), capacities, limits, st.sampled_from(["interactive", "batch"]))
def test_a_refusal_always_names_a_bounded_wait(
    ahead: Demand, kv_tokens: int, capacity: Capacity, allowed: Limits, priority: str
) -> None:
    told = refusal(
        ahead,
        kv_tokens,
        capacity,
        allowed,
        open_questions=ahead.questions,
        priority=priority,
        deadline_s=60,
    )
    if told is not None:
        assert 1 <= told.retry_after_s <= 300
        assert priority == "interactive" or told.reason == "queue"
    if ahead.questions == 0:
        assert told is None


@given(demands, st.integers(1, 5000), capacities, limits)
def test_less_demand_is_never_refused_where_more_was_not(
    ahead: Demand, kv_tokens: int, capacity: Capacity, allowed: Limits
) -> None:
    def told(demand: Demand) -> bool:
        return (
            refusal(
                demand,
                kv_tokens,
                capacity,
                allowed,
                open_questions=demand.questions,
                priority="interactive",
                deadline_s=60,
            )
            is not None
        )

    less = Demand(ahead.questions, ahead.kv_tokens // 2)
    assert not (told(less) and not told(ahead))
