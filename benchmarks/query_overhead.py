"""What the queue adds to a query: API → two worker hops → first event, against a direct call.

Starts an embedded stack on a scratch folder, uploads the sample documents, then asks the same questions
in turn (A) through `POST /v1/queries` and (B) by calling the rerank and answer tasks' functions in this
process on the same database and index. Both are timed from the start of the call to the Redis entry of the
`sources` event. A minus B is the queue's overhead.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "docs" / "samples"
KEY = "benchmark-operator-key-0001"


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="times each question is asked, each way")
    parser.add_argument("--json", action="store_true", help="print one JSON object (the only format)")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="geo-overhead-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update(
        GEO_DATA_DIR=str(folder / "geo"), GEO_API__PORT=str(port), GEO_AUTH__BOOTSTRAP_KEY=KEY,
        GEO_API__RATE_PER_MINUTE="1000000", GEO_API__RATE_BURST="100000", OMP_NUM_THREADS="1",
    )  # fmt: skip
    geo = [sys.executable, "-m", "api.cli"]
    try:
        subprocess.run([*geo, "up", "--detach"], check=True, cwd=ROOT, stdout=sys.stderr)
        print(json.dumps(_measure(f"http://127.0.0.1:{port}", args.rounds), indent=1))
    finally:
        subprocess.run([*geo, "down"], check=False, cwd=ROOT, stdout=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _measure(url: str, rounds: int) -> dict[str, Any]:
    client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=120)
    collection = _upload_samples(client)
    known = json.loads((SAMPLES / "questions.json").read_text())
    questions = [q["question"] for q in known if q["answerable"]]
    ways: dict[str, Callable[[str], float]] = {
        "queued": lambda q: _queued(client, collection, q),
        "direct": lambda q: _direct(collection, q),
    }
    for way in ways.values():
        way(questions[0])  # warm: encoder, readers, connections
    times: dict[str, list[float]] = {name: [] for name in ways}
    shuffled = random.Random(7)  # noqa: S311 - an order, not a secret
    for done in range(rounds):
        for question in questions:
            for name in shuffled.sample(sorted(ways), len(ways)):
                times[name].append(ways[name](question))
        print(f"round {done + 1} of {rounds}", file=sys.stderr)
    p50 = {name: statistics.median(ms) for name, ms in times.items()}
    return {
        "n": len(times["queued"]),
        "p50_ms": {name: round(ms, 1) for name, ms in p50.items()},
        "p95_ms": {name: round(statistics.quantiles(ms, n=20)[-1], 1) for name, ms in times.items()},
        "overhead_p50_ms": round(p50["queued"] - p50["direct"], 1),
        "peer": "the same task functions called in one process",
        "limit_ms": 25,
        "machine": {"cores": os.cpu_count(), "load_1m": os.getloadavg()[0]},
        "seed": 7,
    }


def _upload_samples(client: httpx.Client) -> str:
    collection = client.post("/v1/collections", json={"name": "samples"}).raise_for_status().json()["id"]
    files = [p for p in sorted(SAMPLES.iterdir()) if p.suffix not in (".json", ".py")]
    ids = [
        client.post(
            "/v1/documents", files={"file": (p.name, p.read_bytes())}, data={"collection": collection}
        ).raise_for_status().json()["id"]
        for p in files
    ]  # fmt: skip
    while {client.get(f"/v1/documents/{i}").json()["status"] for i in ids} != {"ready"}:
        time.sleep(0.2)
    return str(collection)


def _queued(client: httpx.Client, collection: str, question: str) -> float:
    start = time.time()
    body = {"question": question, "collection": collection, "policy": {"mode": "extract"}}
    query_id = client.post("/v1/queries", json=body).raise_for_status().json()["id"]
    elapsed = _sources_at_ms(query_id) - start * 1000
    while client.get(f"/v1/queries/{query_id}").json()["status"] in ("queued", "running"):
        time.sleep(0.005)
    return elapsed


def _direct(collection: str, question: str) -> float:
    from sqlalchemy import select

    from core.db import Database
    from core.jobs import run_job
    from core.models import JobRow
    from core.settings import get_settings
    from core.types import Role, Scope
    from generation import service
    from generation.tasks import answer_query, get_runtime
    from retrieval.rerank_task import rerank_query

    silent = Database(get_settings().database_url)  # rings nobody: the jobs are run here
    start = time.time()
    with silent.write() as session:
        scope = _default_scope(session, Scope, Role)
        query_id = service.submit(
            session, scope, question=question, collection_ids=[collection], policy={"mode": "extract"}
        )
    for task, work in (
        ("retrieval.rerank", rerank_query),
        ("generation.answer", lambda run: answer_query(run, get_runtime())),
    ):
        with silent.read() as session:
            job = session.scalars(
                select(JobRow.id).where(JobRow.subject_id == query_id, JobRow.task == task)
            ).one()
        run_job(job, work, db=silent)
    elapsed = _sources_at_ms(query_id) - start * 1000
    silent.dispose()
    return elapsed


def _default_scope(session: Any, scope: Any, role: Any) -> Any:
    from sqlalchemy import select

    from core.models import TenantRow

    tenant_id = session.scalars(select(TenantRow.id)).first()
    return scope(tenant_id, None, "benchmark", role.OPERATOR)


def _sources_at_ms(query_id: str) -> float:
    """Redis' own clock, in milliseconds, at the query's `sources` event."""
    from core.redis_client import get_redis
    from core.streams import stream_key

    for _ in range(20_000):
        entries: Any = get_redis().xrange(stream_key(query_id))
        for entry_id, fields in entries:
            if fields["event"] == "sources":
                return float(entry_id.split("-")[0])
        time.sleep(0.001)
    raise RuntimeError(f"{query_id} gave no sources")


if __name__ == "__main__":
    sys.exit(main())
