from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from itertools import pairwise

import pytest
import sqlalchemy.exc
from sqlalchemy import select, update
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from core import jobs
from core.db import Database, utcnow
from core.errors import DocumentRejected, LeaseLost, PermanentError, TransientError
from core.job_failures import backoff_s
from core.jobs import JobRun, add_job, run_job
from core.lease_keeper import LeaseKeeper
from core.metrics import JOBS_FINISHED
from core.models import BuildRow, JobRow
from core.reaper import reap
from core.redis_client import get_redis
from core.retry import classify
from core.settings import Settings, WorkerSettings, get_settings
from core.types import BuildStatus, JobStatus
from core.worker import Task, get_app, waiting_messages

IDLE = dict.fromkeys(("ingest", "index", "query", "rebuild", "generate"), 0)


def make_job(db: Database, key: str = "") -> str:
    with db.write() as session:
        if session.get(BuildRow, "bld_1") is None:
            session.add(BuildRow(id="bld_1", tier="hot", created_by="key_1", open_key="hot"))
        return add_job(
            session,
            Task.REBUILD,
            tenant_id="ten_1",
            subject_kind="build",
            subject_id="bld_1",
            attempt_key=key,
        )


def row_of(db: Database, job_id: str) -> JobRow:
    with db.read() as session:
        return session.get_one(JobRow, job_id)


def expire(db: Database, job_id: str) -> None:
    with db.write() as session:
        session.execute(
            update(JobRow).where(JobRow.id == job_id).values(lease_expires_at=utcnow() - timedelta(seconds=1))
        )


def test_message_is_sent_after_the_commit(database: Database) -> None:
    with database.write() as session:
        session.add(BuildRow(id="bld_2", tier="hot", created_by="key_1"))
        add_job(session, Task.REBUILD, tenant_id="t", subject_kind="build", subject_id="bld_2")
        assert get_redis().llen("rebuild") == 0
    assert get_redis().llen("rebuild") == 1


def test_rolled_back_request_sends_nothing(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.write() as session:
        add_job(session, Task.REBUILD, tenant_id="t", subject_kind="build", subject_id="bld_2")
        raise ZeroDivisionError
    assert get_redis().llen("rebuild") == 0
    with database.read() as session:
        assert session.scalar(select(JobRow)) is None


def test_broker_outage_does_not_fail_the_request_and_the_reaper_rings_again(database: Database) -> None:
    def down(_task: str, _job: str) -> None:
        raise ConnectionError("no broker")

    database._send = down
    job_id = make_job(database)
    database._send = None
    assert row_of(database, job_id).status == JobStatus.WAITING
    sent: list[str] = []
    database._send = lambda _task, job: sent.append(job)
    with database.write() as session:
        session.execute(update(JobRow).values(next_send_at=utcnow() - timedelta(seconds=1)))
    assert reap(database, IDLE)["resent"] == 1
    assert sent == [job_id]
    assert reap(database, IDLE)["resent"] == 0, "the next ring comes at a doubled interval"


def test_same_intent_is_one_job(database: Database) -> None:
    assert make_job(database) == make_job(database)
    assert make_job(database) != make_job(database, key="again")


def test_second_delivery_is_a_no_op(database: Database) -> None:
    job_id, calls = make_job(database), []
    for _ in range(3):
        run_job(job_id, lambda run: calls.append(run.attempt), db=database)
    assert calls == [1]
    assert row_of(database, job_id).status == JobStatus.DONE


def test_parallel_deliveries_run_once(database: Database) -> None:
    job_id, calls = make_job(database), []
    barrier = threading.Barrier(8)

    def deliver() -> None:
        barrier.wait()
        run_job(job_id, lambda run: calls.append(run.token), db=database)

    threads = [threading.Thread(target=deliver) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_who_lost_the_lease_writes_nothing(database: Database) -> None:
    job_id = make_job(database)
    effects: list[str] = []

    def slow(run: JobRun) -> None:
        expire(database, job_id)
        run_job(job_id, lambda second: effects.append("second"), db=database)  # another worker takes over
        with pytest.raises(LeaseLost), run.finish():
            effects.append("first")
        raise LeaseLost(job_id=job_id)

    run_job(job_id, slow, db=database)
    row = row_of(database, job_id)
    assert (row.status, row.attempts) == (JobStatus.DONE, 2)
    assert effects == ["second"]


def test_finish_commits_writes_and_end_together(database: Database) -> None:
    job_id = make_job(database)

    def crash_in_finish(run: JobRun) -> None:
        with run.finish() as session:
            session.execute(update(BuildRow).values(status="published"))
            raise TransientError("lost the database")

    run_job(job_id, crash_in_finish, db=database)
    row = row_of(database, job_id)
    assert row.status == JobStatus.WAITING
    with database.read() as session:
        assert session.get_one(BuildRow, "bld_1").status == BuildStatus.QUEUED


def test_transient_errors_are_retried_with_growing_gaps_then_end(database: Database) -> None:
    job_id = make_job(database)

    def unavailable(run: JobRun) -> None:
        raise TransientError("try later")

    gaps = []
    for _ in range(get_settings().worker.max_attempts):
        run_job(job_id, unavailable, db=database)
        row = row_of(database, job_id)
        if row.next_send_at and row.status == JobStatus.WAITING:
            gaps.append((row.next_send_at - utcnow()).total_seconds())
    assert row_of(database, job_id).status == JobStatus.FAILED
    assert all(later > earlier for earlier, later in pairwise(gaps))
    with database.read() as session:
        build = session.get_one(BuildRow, "bld_1")
    assert (build.status, build.error_code, build.open_key) == (BuildStatus.FAILED, "unavailable", None)


def test_permanent_error_ends_at_the_first_attempt(database: Database) -> None:
    job_id = make_job(database)

    def corrupt(run: JobRun) -> None:
        raise PermanentError("bad bytes")

    run_job(job_id, corrupt, db=database)
    assert (row_of(database, job_id).status, row_of(database, job_id).attempts) == (JobStatus.FAILED, 1)


def test_reaper_takes_over_an_expired_lease_and_ends_a_hopeless_job(database: Database) -> None:
    job_id = make_job(database)

    class Killed(BaseException):
        """Stands for kill -9: nothing of ours runs afterwards."""

    def die(run: JobRun) -> None:
        raise Killed

    for attempt in range(1, get_settings().worker.max_attempts + 1):
        with pytest.raises(Killed):
            run_job(job_id, die, db=database)
        assert row_of(database, job_id).status == JobStatus.RUNNING
        expire(database, job_id)
        counts = reap(database, IDLE)
        if attempt < get_settings().worker.max_attempts:
            assert counts["expired"] == 1
    row = row_of(database, job_id)
    assert (row.status, row.error_code) == (JobStatus.FAILED, "worker_died")


def test_reaper_leaves_a_living_lease_alone(database: Database) -> None:
    job_id = make_job(database)
    run_job(job_id, lambda run: reap(database, IDLE), db=database)
    assert row_of(database, job_id).attempts == 1


def test_reaper_does_not_resend_while_the_queue_holds_the_message(database: Database) -> None:
    make_job(database)
    with database.write() as session:
        session.execute(update(JobRow).values(next_send_at=utcnow() - timedelta(seconds=1)))
    assert reap(database, {**IDLE, "rebuild": 1})["resent"] == 0


def test_leases_are_renewed_while_the_process_lives(
    sqlite_database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEO_WORKER__LEASE_TTL_S", "1")
    get_settings.cache_clear()
    monkeypatch.setattr(jobs, "LEASES", LeaseKeeper())
    job_id = make_job(sqlite_database)

    def saturated(run: JobRun) -> None:
        threading.Event().wait(2.5)
        assert reap(sqlite_database, IDLE)["expired"] == 0

    run_job(job_id, saturated, db=sqlite_database)
    assert row_of(sqlite_database, job_id).attempts == 1


def test_a_job_that_is_handed_back_costs_no_attempt_and_counts_as_no_done_one(
    sqlite_database: Database,
) -> None:
    def counted(outcome: str) -> float:
        return JOBS_FINISHED.labels(Task.REBUILD.value, outcome)._value.get()

    job_id = make_job(sqlite_database)
    before = {outcome: counted(outcome) for outcome in ("done", "handed_back")}
    run_job(job_id, JobRun.hand_back, db=sqlite_database)
    row = row_of(sqlite_database, job_id)
    assert (row.status, row.attempts, row.lease_token) == (JobStatus.WAITING, 0, None)
    assert counted("handed_back") == before["handed_back"] + 1
    assert counted("done") == before["done"]


@pytest.mark.parametrize("fault", [PoolTimeout("no connection free"), RuntimeError("anything else")])
def test_a_failed_renewal_does_not_end_the_renewals(
    sqlite_database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    monkeypatch.setenv("GEO_WORKER__LEASE_TTL_S", "1")
    get_settings.cache_clear()
    keeper = LeaseKeeper()
    monkeypatch.setattr(jobs, "LEASES", keeper)
    job_id = make_job(sqlite_database)
    write, failures = sqlite_database.write, []

    def once_broken() -> AbstractContextManager[Session]:
        if threading.current_thread().name == "lease-keeper" and not failures:
            failures.append(fault)
            raise fault
        return write()

    monkeypatch.setattr(sqlite_database, "write", once_broken)

    def saturated(run: JobRun) -> None:
        threading.Event().wait(2)
        assert reap(sqlite_database, IDLE)["expired"] == 0

    run_job(job_id, saturated, db=sqlite_database)
    assert failures
    assert row_of(sqlite_database, job_id).attempts == 1


def test_a_full_disk_costs_no_attempt(database: Database) -> None:
    job_id = make_job(database)
    full = get_settings().worker.max_attempts + 2
    seen: list[int] = []

    def write(run: JobRun) -> None:
        seen.append(run.attempt)
        if len(seen) <= full:
            raise OSError(errno.ENOSPC, "No space left on device")

    for _ in range(full):
        run_job(job_id, write, db=database)
        row = row_of(database, job_id)
        assert (row.status, row.error_code) == (JobStatus.WAITING, "disk_full")
    run_job(job_id, write, db=database)
    assert row_of(database, job_id).status == JobStatus.DONE
    assert set(seen) == {1}


def test_a_connection_that_a_restart_closed_is_an_outage_and_no_bug() -> None:
    error = sqlalchemy.exc.InterfaceError("SELECT 1", {}, Exception("the connection is closed"))
    assert isinstance(classify(error), TransientError)


def test_backoff_doubles_and_is_capped() -> None:
    worker = WorkerSettings(retry_base_s=2, retry_cap_s=10)
    for attempt, ceiling in ((1, 2), (2, 4), (3, 8), (4, 10), (9, 10)):
        assert ceiling / 2 <= backoff_s(attempt, worker) <= ceiling


def test_two_hundred_jobs_that_failed_together_do_not_return_together() -> None:
    worker = WorkerSettings(retry_base_s=60, retry_cap_s=300)
    seconds = [int(backoff_s(1, worker)) for _ in range(200)]
    assert max(seconds.count(second) for second in seconds) < 30


def test_work_that_gives_way_is_taken_after_all_other(sqlite_database: Database) -> None:
    for number in range(6):
        with sqlite_database.write() as session:
            add_job(
                session, Task.REBUILD, tenant_id="t", subject_kind="build", subject_id=f"b{number}",
                gives_way=number < 3,
            )  # fmt: skip
    assert waiting_messages(get_redis(), "rebuild") == 6
    taken: list[str] = []
    with get_app().connection_for_read() as connection, connection.SimpleQueue("rebuild") as queue:
        for _ in range(6):
            message = queue.get(timeout=5)
            message.ack()
            taken.append(message.payload[0][0])
    with sqlite_database.read() as session:
        order = [session.get_one(JobRow, job_id).subject_id for job_id in taken]
    assert order == ["b3", "b4", "b5", "b0", "b1", "b2"]


def test_progress_does_not_go_back_when_a_later_attempt_begins_again(database: Database) -> None:
    job_id = make_job(database)
    seen: list[tuple[int, int]] = []

    def work(run: JobRun) -> None:
        steps = [(1, 10), (7, 10)] if run.attempt == 1 else [(2, 10), (8, 10), (1, 4), (3, 4)]
        for done, total in steps:
            run.progress(done, total)
            row = row_of(database, job_id)
            seen.append((row.progress_done, row.progress_total))
        if run.attempt == 1:
            raise TransientError("the worker lost its breath")

    run_job(job_id, work, db=database)
    run_job(job_id, work, db=database)
    assert seen == [(1, 10), (7, 10), (7, 10), (8, 10), (1, 4), (3, 4)]


def test_a_file_that_cannot_be_read_is_no_error_of_the_operator(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    def reject(run: JobRun) -> None:
        raise DocumentRejected("encrypted", "The file is protected by a password; upload it without one.")

    with caplog.at_level("INFO", logger="core.jobs"):
        run_job(make_job(database), reject, db=database)
    (record,) = [r for r in caplog.records if r.name == "core.jobs"]
    assert (record.levelname, record.message, record.exc_info) == ("INFO", "document_rejected", None)


class Died(BaseException):
    """Stands for kill -9: nothing of ours runs afterwards."""


def die_after(steps: list[tuple[int, int]]) -> Callable[[JobRun], None]:
    def work(run: JobRun) -> None:
        for done, total in steps:
            run.progress(done, total)
        raise Died

    return work


def test_work_that_advances_is_not_given_up_however_often_its_worker_dies(database: Database) -> None:
    job_id = make_job(database)
    for attempt in range(10):
        with pytest.raises(Died):
            run_job(job_id, die_after([(0, 100), (3 * attempt, 100), (3 * attempt + 3, 100)]), db=database)
        expire(database, job_id)
        assert reap(database, IDLE)["failed"] == 0
    run_job(job_id, lambda run: run.progress(100, 100), db=database)
    assert row_of(database, job_id).status == JobStatus.DONE


def test_work_that_always_dies_at_the_same_place_ends(database: Database) -> None:
    job_id = make_job(database)
    for _ in range(get_settings().worker.max_attempts):
        with pytest.raises(Died):
            run_job(job_id, die_after([(0, 100), (40, 100)]), db=database)
        expire(database, job_id)
        reap(database, IDLE)
    assert (row_of(database, job_id).status, row_of(database, job_id).error_code) == (
        JobStatus.FAILED, "worker_died",
    )  # fmt: skip
