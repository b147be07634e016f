from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.stack import Stack, until

FACTS = "The Halden pump station has four turbines. Each turbine is serviced every ninety days.\n"


def paragraphs(count: int, salt: str) -> str:
    return "\n\n".join(
        f"Record {salt}-{n}: valve {n} in hall {n % 17}: crew {n % 9}, pressure was {n * 3} kPa."
        for n in range(count)
    )


def test_upload_becomes_ready_with_true_status_at_every_step(stack: Stack) -> None:
    collection = stack.collection("walk-document")
    answer = stack.upload(collection, "halden.txt", FACTS)
    assert answer.status_code == 202
    seen = []

    def settled() -> dict | None:
        document = stack.document(answer.json()["id"])
        seen.append((document["status"], document["stage"]))
        return document if document["status"] in ("ready", "failed") else None

    document = until(settled, within_s=60, what="ready", every_s=0.02)
    assert document["status"] == "ready"
    order = ["normalize", "disambiguate", "index"]
    stages = [order.index(stage) for _, stage in seen if stage in order]
    assert stages == sorted(stages)
    assert document["counts"]["passages"] >= 1


def test_same_bytes_again_are_the_known_document(stack: Stack) -> None:
    collection = stack.collection("known-bytes")
    document = stack.ready(collection, "a.txt", FACTS)
    again = stack.upload(collection, "b.txt", FACTS)
    assert (again.status_code, again.json()["id"]) == (200, document["id"])


def test_twenty_parallel_uploads_of_the_same_bytes_are_one_document(stack: Stack) -> None:
    collection = stack.collection("parallel")
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda n: stack.upload(collection, f"{n}.txt", FACTS * 3), range(20)))
    assert {a.status_code for a in answers} <= {200, 202}
    assert len({a.json()["id"] for a in answers}) == 1
    document = stack.settled(answers[0].json()["id"])
    hits = stack.search(collection, "How many turbines has the Halden pump station?", top_k=50)
    assert len(hits) <= document["counts"]["passages"]
    assert len(stack.client.get("/v1/documents", params={"collection": collection}).json()["items"]) == 1


def test_every_sample_becomes_ready(stack: Stack, samples: Path) -> None:
    collection = stack.collection("samples")
    files = [p for p in samples.iterdir() if p.suffix not in (".json", ".py")]
    assert len(files) == 8
    ids = {p.name: stack.upload(collection, p.name, p.read_bytes()).json()["id"] for p in files}
    assert {name: stack.settled(i, 120)["status"] for name, i in ids.items()} == dict.fromkeys(ids, "ready")


def test_new_version_replaces_the_old_in_one_step(stack: Stack) -> None:
    collection = stack.collection("versions")
    document = stack.ready(collection, "fee.txt", "The harbour fee is 410 crowns per night.")
    files = {"file": ("fee.txt", b"The harbour fee is 620 crowns per night.")}
    assert stack.client.put(f"/v1/documents/{document['id']}", files=files).status_code == 202

    def switched() -> bool:
        texts = " ".join(h["text"] for h in stack.search(collection, "How much is the harbour fee?"))
        old, new = "410" in texts, "620" in texts
        assert old != new, "exactly one version answers at any time"
        return new

    until(switched, within_s=60, what="the new version answers")


def assert_found_nowhere(stack: Stack, collection: str) -> None:
    for question in ("暗号是什么？", "蓝色灯塔", "Marina Voss", "Tidewater Labs"):
        assert stack.search(collection, question) == [], question


def test_deleted_document_is_gone_from_every_route_and_erased_from_answers(stack: Stack) -> None:
    collection = stack.collection("deletes")
    text = "# 临时通知\n\n暗号为“蓝色灯塔”，仅本周有效。Marina Voss of Tidewater Labs signed the notice."
    document = stack.ready(collection, "delete_me.md", text)
    answer = stack.ask(collection, "暗号是什么？", policy={"mode": "extract"})
    assert "蓝色灯塔" in answer["text"]
    assert stack.client.delete(f"/v1/documents/{document['id']}").status_code in (202, 204)
    assert_found_nowhere(stack, collection)
    until(
        lambda: stack.client.get(f"/v1/documents/{document['id']}").status_code == 404,
        within_s=30, what="row purged",
    )  # fmt: skip
    stored = stack.client.get(f"/v1/queries/{answer['id']}").json()
    assert stored["stale_since"] is not None
    assert "蓝色灯塔" not in str({k: v for k, v in stored.items() if k != "question"})
    assert all(claim["erased"] for claim in stored["claims"])
    assert_found_nowhere(stack, collection)
    build = stack.client.post("/v1/admin/tiers/hot/rebuild", json={"mode": "full"}).json()
    until(
        lambda: stack.client.get(f"/v1/admin/builds/{build['id']}").json()["status"] == "published",
        within_s=60, what="the index rebuilt",
    )  # fmt: skip
    old = stack.kill("worker-retrieval")
    until(
        lambda: stack.processes().get("worker-retrieval") not in (None, old), within_s=60, what="it is back"
    )
    assert_found_nowhere(stack, collection)
    doctor = stack.geo("doctor", "--json", check=False)
    assert doctor.returncode == 0, doctor.stdout


def kill_during(stack: Stack, worker: str, stage: str, name: str) -> None:
    collection = stack.collection(f"kill-{worker}-{stage}")
    document_id = stack.upload(collection, name, paragraphs(700, name)).json()["id"]
    until(lambda: stack.document(document_id)["stage"] == stage, within_s=60, what=stage, every_s=0.01)
    old = stack.kill(worker)
    document = stack.settled(document_id, within_s=120)
    assert document["status"] == "ready", document
    assert stack.processes()[worker] != old
    passages = document["counts"]["passages"]
    hits = stack.search(collection, "valve 17 in hall 0", top_k=100)
    assert len({h["passage_id"] for h in hits}) == len(hits) <= passages


def test_kill_of_the_ingest_worker_mid_document_loses_nothing(stack: Stack) -> None:
    kill_during(stack, "worker-ingest", "normalize", "killed-ingest.txt")


def test_kill_of_the_index_worker_mid_document_loses_nothing(stack: Stack) -> None:
    kill_during(stack, "worker-index", "index", "killed-index.txt")
