from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import redis

from tests.e2e.stack import Stack, free_port, until


def test_rebuild_is_not_noticed_by_queries(stack: Stack) -> None:
    collection = stack.collection("walk-rebuild")
    stack.ready(collection, "gate.txt", "Gate seven of the Brenna canal opens at 05:40 each morning.")
    stop, missed, asked = threading.Event(), [], []

    def keep_asking() -> None:
        while not stop.is_set():
            hits = stack.search(collection, "When does gate seven open?")
            asked.append(1)
            if not hits or "05:40" not in hits[0]["text"]:
                missed.append(hits)

    asker = threading.Thread(target=keep_asking)
    asker.start()
    before = {t["tier"]: t for t in stack.client.get("/v1/admin/tiers").json()["items"]}
    answer = stack.client.post("/v1/admin/tiers/hot/rebuild", json={"mode": "full"})
    assert answer.status_code == 202, answer.text
    second = stack.client.post("/v1/admin/tiers/hot/rebuild", json={"mode": "full"})
    build_id = answer.json()["id"]

    def ended() -> dict | None:
        build = stack.client.get(f"/v1/admin/builds/{build_id}").json()
        return build if build["status"] not in ("queued", "running") else None

    build = until(ended, within_s=90, what="build ended")
    assert second.status_code == 409 or build["status"] == "published"
    assert build["status"] == "published", build
    after = {t["tier"]: t for t in stack.client.get("/v1/admin/tiers").json()["items"]}
    assert after["hot"]["generation"] > before["hot"]["generation"]
    rolled = stack.client.post("/v1/admin/tiers/hot/rollback")
    assert rolled.status_code in (200, 202), rolled.text
    stack.ready(collection, "gate8.txt", "Gate eight of the Brenna canal opens at 06:15 each morning.")
    stop.set()
    asker.join()
    assert len(asked) > 3
    assert missed == []
    assert any("06:15" in h["text"] for h in stack.search(collection, "When does gate eight open?"))


def test_redis_killed_with_a_filled_queue_loses_no_document(stack: Stack) -> None:
    collection = stack.collection("redis-killed")
    ids = [
        stack.upload(collection, f"{n}.txt", f"Buoy {n} of the Sellen strait flashes {n + 2} times.").json()[
            "id"
        ]
        for n in range(20)
    ]
    for _ in range(2):
        old = stack.kill("redis")
        until(
            lambda old=old: stack.processes().get("redis") not in (None, old), within_s=30, what="redis back"
        )
    states = [stack.settled(i, within_s=120)["status"] for i in ids]
    assert states == ["ready"] * 20
    hits = stack.search(collection, "Buoy of the Sellen strait flashes", top_k=100)
    assert len(hits) == len({h["passage_id"] for h in hits}) <= 20


def test_broker_holds_no_key_without_end_and_no_content(stack: Stack) -> None:
    client = redis.Redis.from_url(stack.status()["redis_url"])
    queues = (b"ingest", b"index", b"query", b"rebuild", b"reap", b"generate")
    lasting = [
        k for k in client.keys("*")
        if client.ttl(k) == -1 and k not in queues and not k.startswith((b"_kombu.binding", b"unacked"))
    ]  # fmt: skip
    assert lasting == []
    for queue in queues:
        assert all(len(message) < 4096 for message in client.lrange(queue, 0, -1))


@contextmanager
def second_api(stack: Stack) -> Iterator[httpx.Client]:
    """One more API process on the same data."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "api.cli", "serve"],
        env={**stack.env, "GEO_API__PORT": str(port)}, cwd=stack.folder.parent,
    )  # fmt: skip
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=stack.client.headers, timeout=60)

    def answers() -> bool:
        try:
            return client.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False

    try:
        until(answers, within_s=30, what="the second API answers")
        yield client
    finally:
        process.terminate()
        process.wait(timeout=20)


def test_what_one_api_process_stores_or_deletes_the_other_knows_at_once(stack: Stack) -> None:
    collection = stack.collection("generations")
    question = {"question": "At which kilometre stands the Ulvik marker stone?", "collection": collection}
    with second_api(stack) as other:
        document = stack.ready(collection, "stone.txt", "The Ulvik marker stone stands at kilometre 37.")
        for client in (stack.client, other) * 5:
            hits = client.post("/v1/search", json=question).json()["hits"]
            assert any("kilometre 37" in h["text"] for h in hits)
        served = [c.get("/readyz").json()["tiers"] for c in (stack.client, other)]
        assert served[0] == served[1] != []
        assert other.delete(f"/v1/documents/{document['id']}").status_code in (202, 204)
        for client in (stack.client, other) * 5:
            assert client.post("/v1/search", json=question).json()["hits"] == []


@pytest.mark.timeout(300)
def test_backup_restores_to_the_same_answers(stack: Stack, tmp_path: Path) -> None:
    collection = stack.collection("backup")
    document = stack.ready(collection, "ferry.txt", "The Askvoll ferry leaves pier three at 07:05.")
    archive = tmp_path / "geo-backup.tar.gz"
    stack.geo("backup", str(archive))
    other = Stack(tmp_path / "restored")
    other.geo("restore", str(archive))
    other.up()
    try:
        assert other.document(document["id"])["status"] == "ready"
        answer = other.ask(collection, "When does the Askvoll ferry leave?", policy={"mode": "extract"})
        assert "07:05" in answer["text"]
        assert other.geo("doctor", "--json", check=False).returncode == 0
    finally:
        other.down()


def test_second_start_on_the_same_folder_is_refused(stack: Stack) -> None:
    second = stack.geo("up", "--detach", check=False)
    assert second.returncode != 0
    assert "running" in (second.stdout + second.stderr).lower()
