"""Index jobs taken together, with an encoder whose vectors follow from the text."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import update

from core.db import Database, utcnow
from core.jobs import add_job, claim, settle, waiting_jobs
from core.lease_keeper import LEASES
from core.models import (
    CollectionRow,
    DocumentRow,
    DocumentVersionRow,
    IndexLogRow,
    JobRow,
    PassageRow,
    PassageVectorRow,
    TenantRow,
)
from core.settings import Settings
from core.types import Scope
from core.worker import Task
from retrieval.check import check_index
from retrieval.index_jobs import IndexJobs
from retrieval.manifest import IndexFolder
from retrieval.tiers import IndexReader
from retrieval.writer import VectorSpace

ROOT = Path(__file__).parents[2]
SPACE = VectorSpace("test/encoder", 16)
ALL = Scope("t1", None, "test")


def vectors_of(texts) -> np.ndarray:
    """A unit vector per text that depends on its words alone."""
    rows = []
    for text in texts:
        if "poison" in text:
            raise ValueError("this text cannot be encoded")
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
        row = np.random.default_rng(seed).standard_normal(SPACE.dimension).astype(np.float32)
        rows.append(row * np.nan if "mute" in text else row / np.linalg.norm(row))
    return np.stack(rows)


def jobs_on(db: Database, encode=vectors_of, **options) -> IndexJobs:
    return IndexJobs(db, lambda: SPACE, lambda _model, texts: encode(texts), **options)


def put(db: Database, document: str, texts: list[str]) -> str:
    """A document as the stages before leave it; returns its waiting job."""
    with db.write() as session:
        if session.get(TenantRow, "t1") is None:
            session.add(TenantRow(id="t1", name="t1"))
            session.flush()
            session.add(CollectionRow(id="c1", tenant_id="t1", name="c1"))
            session.flush()
        session.add(
            DocumentRow(
                id=document, tenant_id="t1", collection_id="c1", name=f"{document}.txt",
                content_hash=document, status="processing",
            )
        )  # fmt: skip
        session.flush()
        session.add(
            DocumentVersionRow(
                document_id=document, version=1, blob_hash="0", size_bytes=1, file_name="a.txt"
            )
        )
        session.flush()
        for ordinal, text in enumerate(texts):
            session.add(
                PassageRow(
                    tenant_id="t1", collection_id="c1", document_id=document, version=1, ordinal=ordinal,
                    start=0, end=len(text), lang="en", text=text,
                )
            )  # fmt: skip
        return add_job(
            session, Task.INDEX, tenant_id="t1", subject_kind="document", subject_id=document,
            subject_version=1,
        )  # fmt: skip


def states(db: Database) -> dict[str, tuple[str, str]]:
    """Status of each document and of its job."""
    with db.read() as session:
        rows = session.query(DocumentRow.id, DocumentRow.status, JobRow.status).join(
            JobRow, JobRow.subject_id == DocumentRow.id
        )
        return {document: (status, job) for document, status, job in rows}


def assert_whole(db: Database, settings: Settings) -> None:
    """Everything that is live is in both routes once, and nothing else."""
    check = check_index(db, IndexFolder(settings.index_dir))
    assert (check.faults, check.pending) == ((), 0)


def test_waiting_documents_share_encodings_and_one_generation(database: Database, settings: Settings) -> None:
    first, *_ = [put(database, f"d{n}", [f"gate {n} part {k}" for k in range(3)]) for n in range(9)]
    sizes: list[int] = []

    def encode(texts):
        sizes.append(len(texts))
        return vectors_of(texts)

    jobs_on(database, encode).run(first)
    assert set(states(database).values()) == {("ready", "done")}
    assert sum(sizes) == 27
    assert len(sizes) < 9
    reader = IndexReader(IndexFolder(settings.index_dir))
    assert reader.snapshot().generation == 1
    assert reader.snapshot().hot.live_count == 27
    assert_whole(database, settings)
    with database.read() as session:
        assert session.query(IndexLogRow).count() == 9


def test_a_small_document_does_not_wait_for_a_large_one(
    sqlite_database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.index_jobs.ROUND_S", 0)  # a slice a round
    monkeypatch.setattr("retrieval.index_jobs._SLICE_MAX", 16)
    large = put(sqlite_database, "large", [f"page {n}" for n in range(400)])
    slices: list[list[str]] = []
    ready_after: list[int] = []

    def encode(texts):
        slices.append(texts)
        if len(slices) == 3:
            put(sqlite_database, "small", ["a note", "another note"])
        if len(slices) > 3 and not ready_after and states(sqlite_database)["small"][0] == "ready":
            ready_after.append(len(slices))
        return vectors_of(texts)

    jobs_on(sqlite_database, encode).run(large)
    assert ready_after
    assert ready_after[0] <= 6
    assert len(slices) >= 25
    assert set(states(sqlite_database).values()) == {("ready", "done")}
    assert_whole(sqlite_database, settings)


def test_many_small_documents_do_not_starve_a_large_one(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.index_jobs.ROUND_S", 0)  # a slice a round
    monkeypatch.setattr("retrieval.index_jobs._SLICE_MAX", 16)
    large = put(sqlite_database, "large", [f"page {n}" for n in range(64)])
    for n in range(40):
        put(sqlite_database, f"s{n:02}", [f"note {n} {k}" for k in range(4)])
    shares: list[int] = []

    def encode(texts):
        shares.append(sum(text.startswith("page") for text in texts))
        return vectors_of(texts)

    jobs_on(sqlite_database, encode).run(large)
    assert sum(shares[:8]) >= 48  # at least half of each slice, but for the first of all


def test_a_document_that_cannot_be_encoded_fails_alone(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put(database, "d1", ["gate one"])
    put(database, "d2", ["gate two", "poison"])
    put(database, "d3", ["mute", "mute as well"])
    put(database, "d4", ["mute", "gate four"])
    put(database, "d5", [])
    jobs_on(database).run(first)
    assert states(database) == {
        "d1": ("ready", "done"), "d2": ("failed", "failed"), "d3": ("failed", "failed"),
        "d4": ("ready", "done"), "d5": ("failed", "failed"),
    }  # fmt: skip
    with database.read() as session:
        assert session.get_one(DocumentVersionRow, ("d4", 1)).warnings[0]["code"] == "passages_without_vector"
        assert session.get_one(DocumentRow, "d5").error_code == "empty"
        assert "no usable vector for any of 2" in str(session.get_one(DocumentRow, "d3").error_detail)


def test_a_blank_passage_never_reaches_the_encoder(sqlite_database: Database) -> None:
    first = put(sqlite_database, "d1", ["gate one", "\u3000\u200b \n", "gate two"])
    seen: list[str] = []

    def encode(texts):
        seen.extend(texts)
        return vectors_of(texts)

    jobs_on(sqlite_database, encode).run(first)
    assert seen == ["gate one", "gate two"]
    assert states(sqlite_database) == {"d1": ("ready", "done")}
    with sqlite_database.read() as session:
        (warning,) = session.get_one(DocumentVersionRow, ("d1", 1)).warnings
    assert warning["code"] == "passages_without_vector"
    assert len(warning["passage_ids"]) == 1


def test_a_job_whose_lease_was_lost_changes_nothing_and_stops_no_other(
    database: Database, settings: Settings
) -> None:
    first = put(database, "d1", ["gate one"])
    taken_away = put(database, "d2", ["gate two"])

    def encode(texts):
        with database.write() as session:
            session.execute(update(JobRow).where(JobRow.id == taken_away).values(lease_token="another"))
        return vectors_of(texts)

    jobs_on(database, encode).run(first)
    assert states(database) == {"d1": ("ready", "done"), "d2": ("processing", "running")}


def test_a_job_that_was_tried_before_runs_alone(sqlite_database: Database) -> None:
    bad = put(sqlite_database, "d1", ["gate one"])
    put(sqlite_database, "d2", ["gate two"])
    for run in claim(sqlite_database, (bad,)):
        settle(run, ConnectionError("the worker lost its database"))
    assert waiting_jobs(sqlite_database, Task.INDEX, 9) != [bad]
    jobs_on(sqlite_database).run(bad)
    assert states(sqlite_database) == {"d1": ("ready", "done"), "d2": ("processing", "waiting")}


def test_jobs_that_a_killed_worker_left_run_in_groups_and_then_alone(sqlite_database: Database) -> None:
    jobs = [put(sqlite_database, f"d{n}", [f"gate {n}"]) for n in range(10)]
    put(sqlite_database, "fresh", ["gate of nobody"])

    def die(job_ids: list[str]) -> None:
        for run in claim(sqlite_database, job_ids):
            LEASES.release(run.token)
        with sqlite_database.write() as session:
            session.execute(
                update(JobRow)
                .where(JobRow.status == "running")
                .values(status="waiting", lease_token=None, lease_expires_at=None)
            )

    die(jobs)
    jobs_on(sqlite_database).run(jobs[0])
    done = {d for d, (status, _) in states(sqlite_database).items() if status == "ready"}
    assert len(done) == 8
    left = [job for job in jobs if f"d{jobs.index(job)}" not in done]
    die(left)
    jobs_on(sqlite_database).run(left[0])
    assert len({d for d, (status, _) in states(sqlite_database).items() if status == "ready"}) == 9
    assert states(sqlite_database)["fresh"][1] == "waiting"


def test_a_worker_that_is_asked_to_stop_hands_its_jobs_back(
    sqlite_database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.index_jobs._SLICE_MAX", 16)
    job = put(sqlite_database, "large", [f"page {n}" for n in range(200)])
    calls: list[int] = []

    def encode(texts):
        calls.append(len(texts))
        return vectors_of(texts)

    jobs_on(sqlite_database, encode, stopping=lambda: len(calls) >= 2).run(job)
    with sqlite_database.read() as session:
        row = session.get_one(JobRow, job)
        assert (row.status, row.attempts, row.lease_token) == ("waiting", 0, None)
        assert session.query(PassageVectorRow).count() == sum(calls) < 200
        assert 0 < row.progress_done == sum(calls)
    jobs_on(sqlite_database, encode).run(job)
    assert sum(calls) == 200
    assert states(sqlite_database) == {"large": ("ready", "done")}
    assert_whole(sqlite_database, settings)


# Indexes three documents and kills itself at the n-th durable step: a commit, a sync or a rename.
KILLED_WORKER = """
import os, pathlib, signal, sys
from core.db import get_database
from retrieval import lease
from sqlalchemy.orm import Session
from tests.retrieval.test_index_jobs import jobs_on

lease.TTL_S = 0.3
left = [int(sys.argv[1])]

def counted(function):
    def step(*args, **kwargs):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return step

Session.commit = counted(Session.commit)
os.fsync = counted(os.fsync)
pathlib.Path.replace = counted(pathlib.Path.replace)
pathlib.Path.rename = counted(pathlib.Path.rename)
jobs_on(get_database()).run(sys.argv[2])
print("finished")
"""


def test_a_worker_killed_at_any_step_loses_and_doubles_nothing(
    sqlite_database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval import lease

    monkeypatch.setattr(lease, "TTL_S", 0.3)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    db, step, finished = sqlite_database, 1, False
    while not finished:
        jobs = [put(db, f"d{step}{k}", [f"gate {step} {k} {n}" for n in range(2)]) for k in range(3)]
        done = subprocess.run(
            [sys.executable, "-c", KILLED_WORKER, str(step), jobs[0]],
            env=environment, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        finished = "finished" in done.stdout
        assert finished or done.returncode == -signal.SIGKILL, done.stderr
        with db.write() as session:
            session.execute(
                update(JobRow)
                .where(JobRow.status == "running")
                .values(lease_expires_at=utcnow() - timedelta(seconds=1))
            )
        for job in jobs:
            jobs_on(db).run(job)
        assert set(states(db).values()) == {("ready", "done")}
        assert_whole(db, settings)
        step += 7
        assert step < 120
    with db.read() as session:
        assert session.query(PassageVectorRow).count() == session.query(PassageRow).count()
        assert max(a for (a,) in session.query(JobRow.attempts)) == 2
    assert step > 12
