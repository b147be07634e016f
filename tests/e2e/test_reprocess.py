"""Documents made anew from their originals while they are asked for, uploaded beside and workers die."""

from __future__ import annotations

import json
import threading
from typing import Any

from tests.e2e.stack import Stack, until
from tests.e2e.test_document_walk import paragraphs


def walk_of(stack: Stack, collection: str, **body: Any) -> dict[str, Any]:
    answer = stack.client.post(f"/v1/collections/{collection}/reprocess", json=body)
    assert answer.status_code in (200, 202), answer.text
    return answer.json()


def ended(stack: Stack, walk: dict[str, Any], within_s: float = 150) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        seen = stack.client.get(walk["status_url"]).json()
        assert walk["done"] <= seen["done"] <= seen["queued"] <= seen["total"], seen
        return seen if seen["status"] != "running" else None

    return until(look, within_s=within_s, what="the walk ended", every_s=0.5)


def test_a_collection_is_made_anew_without_downtime_while_workers_die(stack: Stack) -> None:
    collection = stack.collection("anew")
    places = ("Askvoll", "Bremanger", "Eivindvik", "Florø", "Hyllestad", "Kalvåg", "Måløy", "Selje")
    texts = {
        f"{p}.txt": f"The ferry of {p} leaves pier {n + 3}.\n\n{paragraphs(30, p)}"
        for n, p in enumerate(places)
    }
    ids = {name: stack.ready(collection, name, text)["id"] for name, text in texts.items()}
    before = {i: stack.document(i)["counts"]["passages"] for i in ids.values()}
    stop, wrong, asked = threading.Event(), [], []

    def keep_asking() -> None:
        while not stop.is_set():
            for n, place in enumerate(places):
                hits = stack.search(collection, f"From which pier leaves the ferry of {place}?", top_k=20)
                versions: dict[str, set[int]] = {}
                for hit in hits:
                    versions.setdefault(hit["document_id"], set()).add(hit["version"])
                asked.append(place)
                if not any(f"pier {n + 3}" in h["text"] for h in hits) or any(
                    len(v) > 1 for v in versions.values()
                ):
                    wrong.append((place, hits[:3]))

    asker = threading.Thread(target=keep_asking)
    asker.start()
    try:
        changed = stack.client.patch(f"/v1/collections/{collection}", json={"parse": {"passage_tokens": 40}})
        assert changed.json()["parse_in_force"]["passage_tokens"] == 40
        listed = stack.client.get("/v1/documents", params={"collection": collection, "outdated": True}).json()
        assert {d["id"] for d in listed["items"]} == set(ids.values())
        walk = walk_of(stack, collection, only="outdated")
        assert walk["total"] == len(ids)
        assert walk_of(stack, collection, only="outdated")["id"] == walk["id"]
        for worker in ("worker-maintenance", "worker-ingest"):
            stack.kill(worker)
        done = ended(stack, walk)
    finally:
        stop.set()
        asker.join()
    assert (done["status"], done["done"], done["failed"]) == ("done", len(ids), 0)
    assert wrong == []
    assert len(asked) > len(places)
    for document_id in ids.values():
        document = stack.document(document_id)
        assert (document["status"], document["version"], document["live_version"]) == ("ready", 2, 2)
        assert document["parse"]["passage_tokens"] == 40
        assert not document["outdated"]
        assert document["counts"]["passages"] > before[document_id]
    doctor = stack.geo("doctor", "--json", check=False)
    assert doctor.returncode == 0, doctor.stdout


def test_reprocessing_from_the_terminal_and_a_fresh_upload_that_overtakes(stack: Stack) -> None:
    collection = stack.collection("overtake")
    for n in range(12):
        stack.upload(collection, f"{n}.txt", paragraphs(20, f"s{n}"))
    listed = stack.client.get("/v1/documents", params={"collection": collection}).json()["items"]
    for document in listed:
        assert stack.settled(document["id"])["status"] == "ready"
    walk = walk_of(stack, collection, only="all")
    fresh = stack.upload(collection, "fresh.txt", "The lamp of Utvær is red.").json()
    assert stack.settled(fresh["id"])["status"] == "ready"
    seen = stack.client.get(walk["status_url"]).json()
    assert seen["done"] < seen["total"]  # it did not wait for those queued before it
    done = json.loads(stack.geo("reprocess", collection, "--only", "all", "--json").stdout)
    assert (done["id"], done["status"], done["done"]) == (walk["id"], "done", 12)
    again = json.loads(stack.geo("reprocess", collection, "--json").stdout)
    assert (again["status"], again["total"]) == ("done", 0)
    shown = stack.geo("documents", collection, "--current").stdout
    assert shown.count("\n") == 13
    other = ("--set", "passage_tokens=48", "--set", "keep_hidden=true")
    begun = json.loads(stack.geo("reprocess", collection, *other, "--no-wait", "--json").stdout)
    assert begun["total"] == 13
    stopped = json.loads(stack.geo("reprocess", collection, "--cancel", "--json").stdout)
    assert (stopped["id"], stopped["status"]) == (begun["id"], "cancelled")
    chosen = stack.client.get(f"/v1/collections/{collection}").json()["parse"]
    assert chosen == {"keep_hidden": True, "passage_tokens": 48}
    for document in stack.client.get("/v1/documents", params={"collection": collection}).json()["items"]:
        assert stack.settled(document["id"])["status"] == "ready"  # those in work are finished


def test_a_version_that_failed_says_so_while_the_one_before_is_served(stack: Stack) -> None:
    collection = stack.collection("failed-version")
    document = stack.ready(collection, "lock.txt", "The lock of Vemork has nine gates.")
    files = {"file": ("lock.pdf", b"%PDF-1.7 this is no PDF at all")}
    assert stack.client.put(f"/v1/documents/{document['id']}", files=files).status_code == 202
    seen = stack.settled(document["id"])
    assert (seen["status"], seen["version"], seen["live_version"]) == ("failed", 2, 1)
    assert seen["error"]["detail"]
    hits = stack.search(collection, "How many gates has the lock of Vemork?")
    assert "nine gates" in hits[0]["text"]
    told = stack.geo("documents", collection).stdout
    assert "[version 1 is served]" in told
    doctor = stack.geo("doctor", "--json", check=False)
    assert doctor.returncode == 0, doctor.stdout


def test_near_duplicates_and_properties_are_shown_at_the_door(stack: Stack) -> None:
    collection = stack.collection("near")
    page = (
        "<html lang='en'><head><title>Log</title><meta name='author' content='Marina Voss'>"
        "<meta name='description' content='A harbour log.'></head><body><main><h1>Harbour log</h1>"
        "<p>{}</p></main></body></html>"
    )
    text = " ".join(
        f"On day {n} crew {n % 5} checked crane {n * 7 % 23} and buoy {n * 3 % 19}." for n in range(60)
    )
    first = stack.ready(collection, "log.html", page.format(text))
    second = stack.ready(collection, "copy.html", page.format(text.replace("day 30", "the last day")))
    stack.ready(collection, "other.txt", paragraphs(10, "other"))
    shown = stack.document(first["id"])["near_duplicates"]
    assert [(n["document_id"], n["name"]) for n in shown] == [(second["id"], "copy.html")]
    assert shown[0]["similarity"] > 0.9
    listed = stack.client.get(
        "/v1/documents", params={"collection": collection, "near_duplicates": True}
    ).json()
    assert {d["id"] for d in listed["items"]} == {first["id"], second["id"]}
    stack.client.delete(f"/v1/documents/{second['id']}")
    assert stack.document(first["id"])["near_duplicates"] == []
    assert first["properties"] == {
        "author": "Marina Voss", "description": "A harbour log.", "language": "en",
    }  # fmt: skip
    graph = stack.client.get(f"/v1/documents/{first['id']}/annotation").json()
    assert (graph["author"]["name"], graph["description"]) == ("Marina Voss", "A harbour log.")
