"""The same bytes sent many times at once, through the doors and on to the vectors, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from api.app import create_app
from core.db import Database
from core.models import DocumentRow, DocumentVersionRow, JobRow, PassageRow, PassageVectorRow
from core.settings import get_settings
from core.types import JobStatus
from core.worker import Task
from tests.api.conftest import OPERATOR_KEY, Configure, client_of, signed_in

TEXT = b"The Halden pump station has four turbines. Each turbine is serviced every ninety days.\n" * 30


def rows(db: Database, *tables: type) -> list[int]:
    with db.read() as session:
        return [int(session.scalar(select(func.count()).select_from(t)) or 0) for t in tables]


def run_all(db: Database) -> None:
    """Every stage of every waiting job, by the tasks that the workers run."""
    from ingest import tasks as ingest
    from retrieval import tasks as retrieval

    run = {
        Task.NORMALIZE.value: ingest.normalize,
        Task.DISAMBIGUATE.value: ingest.disambiguate,
        Task.INDEX.value: retrieval.index,
    }
    while True:
        with db.read() as session:
            waiting = session.scalars(select(JobRow).where(JobRow.status == JobStatus.WAITING.value)).all()
        if not waiting:
            return
        for job in waiting:
            run[job.task](job.id)


@pytest.mark.timeout(300)
def test_twenty_posts_at_once_are_one_document_one_job_and_one_set_of_vectors(
    database: Database, configure: Configure, encoder_pack: Path
) -> None:
    configure(
        auth__bootstrap_key=OPERATOR_KEY,
        min_free_bytes=0,
        api__rate_per_minute=1_000_000,
        api__rate_burst=1_000_000,
    )
    app = create_app()
    with signed_in(app, OPERATOR_KEY) as running:
        app.state.portal = running.portal
        client = client_of(app, "admin")
        assert client.post("/v1/collections", json={"name": "ours"}).status_code == 201
        answers = send(client, 20)
        assert sorted(a[0] for a in answers) == [200] * 19 + [202]
        assert len({a[1] for a in answers}) == 1
        assert rows(database, DocumentRow, DocumentVersionRow, JobRow) == [1, 1, 1]
        run_all(database)
        document = client.get(f"/v1/documents/{answers[0][1]}").json()
        assert (document["status"], document["live_version"]) == ("ready", 1)
        count = document["counts"]["passages"]
        assert rows(database, PassageRow, PassageVectorRow) == [count, count]
        assert {a[0] for a in send(client, 5)} == {200}
        assert rows(database, DocumentRow, JobRow) == [1, 3]
    assert list((get_settings().blob_dir / ".staging").iterdir()) == []


def send(client: TestClient, times: int) -> list[tuple[int, str]]:
    def post(number: int) -> tuple[int, str]:
        files = {"file": (f"{number}.txt", TEXT)}
        answer = client.post("/v1/documents", files=files, data={"collection": "ours"})
        return answer.status_code, answer.json()["id"]

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(post, range(times)))
