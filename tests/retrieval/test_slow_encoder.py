"""A slow encoder is not a dead one: its job keeps its lease, and one that comes later is served or waits."""

from __future__ import annotations

import threading
import time
from collections import Counter

import numpy as np
import pytest

from core import jobs
from core.db import Database
from core.lease_keeper import LeaseKeeper
from core.models import CollectionRow, JobRow, TenantRow
from core.reaper import reap
from core.settings import get_settings
from core.types import JobStatus
from retrieval import embed, index_jobs, tasks
from retrieval.writer import VectorSpace
from tests.retrieval.test_index_tasks import put, status, waiting

LEASE_S = 2.0
BATCHES = 200


def slow(texts: list[str], model: str = "") -> np.ndarray:
    """Two batches take longer than a lease; all together take many leases."""
    slow.calls += 1
    time.sleep(1.6 * LEASE_S if slow.calls in (50, 120) else 0.015)
    rows = np.random.default_rng(len(texts)).standard_normal((len(texts), 8)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_two_hundred_slow_batches_outlive_many_leases_and_hold_nobody_up(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = sqlite_database
    with db.write() as session:
        session.add(TenantRow(id="t1", name="t1"))
        session.flush()
        session.add(CollectionRow(id="c1", tenant_id="t1", name="c1"))
    monkeypatch.setenv("GEO_WORKER__LEASE_TTL_S", str(LEASE_S))
    monkeypatch.setenv("GEO_WORKER__RESEND_BASE_S", "0.2")
    get_settings.cache_clear()
    monkeypatch.setattr(jobs, "LEASES", LeaseKeeper())  # one that sleeps by these settings
    monkeypatch.setattr(index_jobs, "_SLICE_MIN", 2)
    monkeypatch.setattr(index_jobs, "_SLICE_MAX", 2)
    monkeypatch.setattr(embed, "encode_for_index", slow)
    monkeypatch.setattr(tasks, "served_space", lambda _db: VectorSpace("test/slow", 8))
    slow.calls = 0
    put(db, "first", [f"Gate {n} opens." for n in range(2 * BATCHES)])
    first = waiting(db, "first")
    thread = threading.Thread(target=tasks.index_jobs, args=(db, first))
    start = time.monotonic()
    thread.start()
    second = ""
    reaped: Counter[str] = Counter()
    progress, seen = [], set()
    while thread.is_alive():
        reaped.update(reap(db, dict.fromkeys(("index", "ingest"), 0)))
        if not second and slow.calls > 20:
            put(db, "second", ["Gate zero stays shut."])
            second = waiting(db, "second")
        with db.read() as session:
            row = session.get_one(JobRow, first)
            if row.status == JobStatus.RUNNING:
                progress.append(row.progress_done)
                seen.add(session.get_one(JobRow, second).status if second else "")
        time.sleep(0.1)
    thread.join()
    assert time.monotonic() - start > 3 * LEASE_S
    assert (reaped["expired"], reaped["failed"]) == (0, 0)
    assert progress == sorted(progress)
    assert seen <= {"", JobStatus.WAITING.value, JobStatus.RUNNING.value, JobStatus.DONE.value}
    assert JobStatus.DONE.value in seen  # the small one was served while the large one went on
    with db.read() as session:
        rows = [session.get_one(JobRow, job_id) for job_id in (first, second)]
    assert [(r.status, r.attempts, r.error_code) for r in rows] == [(JobStatus.DONE, 1, None)] * 2
    assert slow.calls >= BATCHES
    assert status(db, "first") == status(db, "second") == ("ready", 1)
