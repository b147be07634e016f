from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from core.db import Database, get_database, utcnow
from core.models import DocumentRow, JobRow, QueryRow, TierRow
from tests.api import answering

ODD = [
    "", "   \n", "\u200b\u3000", "🙂🙂🙂", "？！。", "的", "水泵" * 1500, "x" * 20_000, "a\x00b",
    "' OR 1=1 --",
    'AND OR NOT ("unclosed AND title:* ~2 [1 TO', "<think>先想一想</think>水泵多久保养一次？",
    "e\u0301clair 和 éclair",
]  # fmt: skip


@pytest.fixture
def collection(client: TestClient) -> str:
    return client.post("/v1/collections", json={"name": "水泵 manuals"}).json()["id"]


@pytest.fixture
def finishing(client: TestClient) -> Iterator[None]:
    """Every query is answered with nothing found, as soon as it is there."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            with get_database().read() as session:
                waiting = list(session.scalars(select(QueryRow.id).where(QueryRow.status == "queued")))
            for query_id in waiting:
                answering.finish(query_id, answering.repository.Outcome(answering.AnswerStatus.ANSWERED))
            time.sleep(0.01)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.mark.parametrize("number", range(len(ODD)))
def test_odd_questions_never_crash_a_door(
    client: TestClient, collection: str, finishing: None, number: int
) -> None:
    body = {"question": ODD[number], "collection": "水泵 manuals"}
    start = time.monotonic()
    for door in ("/v1/search", "/v1/queries"):
        answer = client.post(door, json=body)
        assert answer.status_code in (200, 202, 413, 422), answer.text
    messages = [{"role": "user", "content": ODD[number]}]
    answer = client.post("/v1/chat/completions", json={"model": "geo:水泵 manuals", "messages": messages})
    assert answer.status_code in (200, 413, 422), answer.text
    assert time.monotonic() - start < 5


def test_reported_queries_never_crash_a_door(
    client: TestClient, collection: str, finishing: None, shared_data: Path
) -> None:
    lines = (shared_data / "cases" / "D51" / "queries.jsonl").read_text().splitlines()
    for line in lines:
        body = {"question": json.loads(line)["q"], "collection": collection}
        assert client.post("/v1/search", json=body).status_code in (200, 413, 422)


def test_lone_surrogates_are_refused_or_replaced(client: TestClient, collection: str) -> None:
    raw = b'{"question": "\\ud83d pump", "collection": "' + collection.encode() + b'"}'
    answer = client.post("/v1/queries", content=raw, headers={"Content-Type": "application/json"})
    assert answer.status_code in (202, 422)
    named = client.post(
        "/v1/collections",
        content=b'{"name": "a\\ud83d\\u0000b"}',
        headers={"Content-Type": "application/json"},
    )
    assert named.status_code in (201, 422)


@pytest.mark.parametrize(
    "more",
    [
        {"policy": {"mode": "guess"}},
        {"policy": {"unknown": 1}},
        {"policy": {"rewrite": "always"}},
        {"policy": {"listwise": "sometimes"}},
        {"policy": {"max_sentences": 10**30}},
        {"filters": {"documents": "x"}},
        {"filters": {"unknown": 1}},
        {"task": "sing"},
        {"collection": []},
        {"collection": ["x"] * 51},
        {"question": None},
        {"question": ["a"]},
        {"history": "before"},
        {"history": [{"role": "system", "content": "x"}]},
        {"history": [{"role": "user", "content": None}]},
        {"history": [{"role": "user", "content": "x"}] * 201},
    ],
)
def test_bad_options_are_named(client: TestClient, collection: str, more: dict[str, object]) -> None:
    answer = client.post("/v1/queries", json={"question": "q", "collection": collection, **more})
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_input"


def test_a_search_that_no_engine_could_rewrite_says_so(
    client: TestClient, collection: str, finishing: None
) -> None:
    body = {"question": "pump", "collection": collection, "rewrite": "hyde"}
    found = client.post("/v1/search", json=body).json()
    assert (found["rewrite"], found["variants"]) == ({"kind": "hyde", "state": "engine_not_ready"}, [])
    assert client.post("/v1/search", json=body | {"rewrite": "always"}).status_code == 422


def test_earlier_turns_are_kept_with_the_question(client: TestClient, collection: str) -> None:
    turns = [{"role": "user", "content": "a\x00b"}, {"role": "assistant", "content": " "}]
    body = {"question": "And it?", "collection": collection, "history": turns}
    query_id = client.post("/v1/queries", json=body).json()["id"]
    with get_database().read() as session:
        assert session.get_one(QueryRow, query_id).history == [{"role": "user", "content": "ab"}]


def test_policy_is_versioned_and_checked(client: TestClient, collection: str) -> None:
    door = f"/v1/collections/{collection}/policy"
    assert client.get(door).json()["version"] == 0
    assert client.put(door, json={"mode": "free"}).json()["version"] == 1
    assert client.put(door, json={"mode": "wild"}).status_code == 422
    assert client.get(door).json()["body"]["mode"] == "free"


def test_collection_with_a_bad_policy_is_not_made(client: TestClient) -> None:
    answer = client.post("/v1/collections", json={"name": "n", "policy": {"mode": "wild"}})
    assert answer.status_code == 422
    assert client.get("/v1/collections").json()["items"] == []


def test_names_work_in_place_of_ids(client: TestClient, collection: str) -> None:
    assert client.get("/v1/collections/水泵 manuals").json()["id"] == collection
    assert client.post("/v1/collections", json={"name": "水泵 manuals"}).status_code == 409


def test_pages_neither_skip_nor_repeat(client: TestClient) -> None:
    made = [client.post("/v1/collections", json={"name": f"c{n}"}).json()["id"] for n in range(7)]
    seen, cursor = [], None
    while True:
        page = client.get(
            "/v1/collections", params={"limit": 3, "cursor": cursor} if cursor else {"limit": 3}
        )
        seen += [c["id"] for c in page.json()["items"]]
        if (cursor := page.json()["next_cursor"]) is None:
            break
    assert seen == made


def fail(job_id: str) -> None:
    from core.job_failures import fail_job

    with get_database().write() as session:
        fail_job(session, job_id, "worker_died", "It died.")


def test_failed_job_gets_another_set_of_attempts(client: TestClient, collection: str) -> None:
    files = {"file": ("a.txt", b"text")}
    document = client.post("/v1/documents", files=files, data={"collection": collection}).json()
    job = client.get("/v1/admin/jobs", params={"subject_id": document["id"]}).json()["items"][0]
    assert client.post(f"/v1/admin/jobs/{job['id']}/retry").status_code == 409
    fail(job["id"])
    failed = client.get("/v1/admin/jobs", params={"status": "failed"}).json()["items"]
    assert [j["error"]["code"] for j in failed] == ["worker_died"]
    assert client.get(document["status_url"]).json()["status"] == "failed"
    again = client.post(f"/v1/admin/jobs/{job['id']}/retry")
    assert again.status_code == 202
    assert (again.json()["status"], again.json()["attempts"]) == ("waiting", 0)
    assert client.get(document["status_url"]).json()["status"] == "queued"


def test_job_of_a_superseded_version_is_not_retried(client: TestClient, collection: str) -> None:
    files = {"file": ("a.txt", b"text")}
    document = client.post("/v1/documents", files=files, data={"collection": collection}).json()
    job = client.get("/v1/admin/jobs").json()["items"][0]
    fail(job["id"])
    client.put(document["status_url"], files={"file": ("a.txt", b"newer")})
    assert client.post(f"/v1/admin/jobs/{job['id']}/retry").status_code == 409


def test_failed_query_is_retried(client: TestClient, collection: str) -> None:
    query = client.post("/v1/queries", json={"question": "q", "collection": collection}).json()
    job = client.get("/v1/admin/jobs", params={"task": "retrieval.rerank"}).json()["items"][0]
    fail(job["id"])
    assert client.get(query["status_url"]).json()["error"]["code"] == "worker_died"
    assert client.post(f"/v1/admin/jobs/{job['id']}/retry").status_code == 202
    assert client.get(query["status_url"]).json()["status"] == "queued"


def test_a_query_that_is_retried_has_its_time_again(client: TestClient, collection: str) -> None:
    body = {"question": "q", "collection": collection, "deadline_s": 60}
    query = client.post("/v1/queries", json=body).json()
    long_ago = utcnow() - timedelta(hours=1)
    with get_database().write() as session:
        row = session.get_one(QueryRow, query["id"])
        row.created_at, row.deadline_at = long_ago, long_ago + timedelta(seconds=60)
    job = client.get("/v1/admin/jobs", params={"subject_id": query["id"]}).json()["items"][0]
    fail(job["id"])
    assert client.post(f"/v1/admin/jobs/{job['id']}/retry").status_code == 202
    with get_database().read() as session:
        deadline = session.get_one(QueryRow, query["id"]).deadline_at
    assert deadline is not None
    assert 50 < (deadline - utcnow()).total_seconds() <= 60


def test_the_last_message_of_a_chat_has_to_ask_something(client: TestClient, collection: str) -> None:
    messages = [{"role": "user", "content": "How deep is it?"}, {"role": "user", "content": " \n"}]
    answer = client.post("/v1/chat/completions", json={"model": f"geo:{collection}", "messages": messages})
    assert answer.status_code == 422
    assert "messages" in answer.json()["error"]["message"]


def test_metrics_count_requests_jobs_and_documents(client: TestClient, collection: str) -> None:
    client.post("/v1/documents", files={"file": ("a.txt", b"text")}, data={"collection": collection})
    text = client.get("/metrics").text
    assert 'geo_jobs{queue="ingest",status="waiting"} 1.0' in text
    assert 'geo_documents{error="",status="queued"} 1.0' in text
    assert 'path="/v1/documents"' in text


def test_readiness_tells_of_workers_and_tiers(client: TestClient) -> None:
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert set(ready.json()["workers"]) == {"ingest", "index", "retrieval", "maintenance", "generation"}
    assert not ready.json()["workers"]["ingest"]["alive"]


def test_damaged_tier_makes_it_unready(client: TestClient) -> None:
    with get_database().write() as session:
        session.add(TierRow(tier="hot", generation=3, refused="checksum of segment 2 differs"))
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert "segment 2" in ready.json()["checks"]["index"]["detail"]
    assert ready.json()["tiers"][0]["generation"] == 3


def test_damage_of_another_part_is_told_while_the_rest_serves(client: TestClient) -> None:
    with get_database().write() as session:
        session.add(TierRow(tier="hot", generation=3))
        session.add(TierRow(tier="cold", refused="page 7 is cut"))
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["checks"]["index"]["detail"] == "refused until rebuilt: cold: page 7 is cut"
    assert {t["tier"]: (t["generation"], t["refused"]) for t in ready.json()["tiers"]} == {
        "hot": (3, None), "cold": (3, "page 7 is cut"),
    }  # fmt: skip


def test_one_build_of_a_tier_is_open(client: TestClient) -> None:
    tiers = client.get("/v1/admin/tiers").json()["items"]
    assert [(t["tier"], t["status"]) for t in tiers] == [
        ("hot", "empty"), ("warm", "empty"), ("cold", "empty"), ("lexical", "empty"),
    ]  # fmt: skip
    assert client.post("/v1/admin/tiers/hot/rollback").status_code == 409
    assert client.post("/v1/admin/tiers/lukewarm/rebuild").status_code == 404
    build = client.post("/v1/admin/tiers/hot/rebuild", json={"mode": "full"})
    assert build.status_code == 202
    second = client.post("/v1/admin/tiers/all/rebuild")
    assert second.status_code == 409
    assert second.json()["build_id"] == build.json()["id"]
    door = build.json()["status_url"]
    assert client.get(door).json()["status"] == "queued"
    assert client.post(door + "/cancel").json()["status"] == "cancelled"
    assert client.post(door + "/cancel").status_code == 409
    assert [b["status"] for b in client.get("/v1/admin/builds").json()["items"]] == ["cancelled"]
    actions = [e["action"] for e in client.get("/v1/admin/audit").json()["items"]]
    assert actions == ["build.cancel", "tier.rebuild"]


def test_a_build_is_paused_resumed_and_cancelled_by_its_doors(client: TestClient) -> None:
    build = client.post("/v1/admin/tiers/cold/rebuild", json={"mode": "compact"}).json()
    assert (build["mode"], build["model"], build["eta_s"]) == ("compact", "", None)
    door = build["status_url"]
    assert client.post(door + "/pause").json()["status"] == "paused"
    assert client.post("/v1/admin/tiers/cold/rebuild").status_code == 409
    assert client.post("/v1/admin/tiers/warm/rebuild").status_code == 202
    assert client.post(door + "/resume").json()["status"] == "queued"
    assert client.post(door + "/cancel").json()["status"] == "cancelled"
    assert client.post(door + "/pause").status_code == 409
    actions = {e["action"] for e in client.get("/v1/admin/audit").json()["items"]}
    assert actions == {"tier.rebuild", "build.pause", "build.resume", "build.cancel"}


def test_a_rebuild_that_cannot_be_is_refused_at_the_door(client: TestClient) -> None:
    for tier, body, status in (
        ("hot", {"model": "someone/other"}, 422),
        ("all", {"model": "someone/other"}, 422),
        ("all", {"mode": "compact", "model": "someone/other"}, 422),
        ("lexical", {"mode": "compact"}, 422),
        ("hot", {"mode": "quick"}, 422),
        ("hot", {"accept": True}, 422),
    ):
        assert client.post(f"/v1/admin/tiers/{tier}/rebuild", json=body).status_code == status, body
    assert client.post("/v1/admin/tiers/all/rollback", json={"generation": 7}).status_code == 409
    assert client.get("/v1/admin/builds").json()["items"] == []


def test_uploads_survive_a_broker_that_is_away(
    client: TestClient, collection: str, database_send: None
) -> None:
    answer = client.post("/v1/documents", files={"file": ("a", b"text")}, data={"collection": collection})
    assert answer.status_code == 202
    with get_database().read() as session:
        assert session.scalars(select(JobRow.status)).all() == ["waiting"]
        assert session.scalars(select(DocumentRow.status)).all() == ["queued"]


@pytest.fixture
def database_send(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_task: str, _job: str) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(get_database(), "_send", away)


def test_doors_work_on_postgres_too(postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from api.app import create_app
    from core.settings import get_settings

    monkeypatch.setenv("GEO_AUTH__BOOTSTRAP_KEY", "operator-key-of-the-tests")
    monkeypatch.setenv("GEO_MIN_FREE_BYTES", "0")
    get_settings.cache_clear()
    headers = {"Authorization": "Bearer operator-key-of-the-tests"}
    with TestClient(create_app(), headers=headers) as client:
        client.post("/v1/collections", json={"name": "c"})
        files = {"file": ("nul\x00.txt", b"text")}
        fields = {"collection": "c", "metadata": '{"a": "b\\u0000"}'}
        assert client.post("/v1/documents", files=files, data=fields).status_code == 202
        assert client.post("/v1/queries", json={"question": "a\x00b", "collection": "c"}).status_code == 202
        assert client.post("/v1/collections", json={"name": "c"}).status_code == 409
        for door in (
            "collections",
            "documents",
            "queries",
            "entities",
            "admin/keys",
            "admin/audit",
            "admin/jobs",
        ):
            assert client.get(f"/v1/{door}").status_code == 200
        assert client.get("/v1/collections?cursor=%00").status_code == 400
        assert client.get("/metrics").status_code == 200
