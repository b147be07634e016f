from __future__ import annotations

from fastapi import FastAPI
from fastapi.testclient import TestClient

from core.db import Database
from core.models import CollectionRow
from tests.api.conftest import client_of
from tests.retrieval.rows import add_document


def fill(client: TestClient, db: Database, documents: int) -> tuple[str, list[str]]:
    collection = client.post("/v1/collections", json={"name": "shelf"}).json()["id"]
    with db.write() as session:
        tenant = session.get_one(CollectionRow, collection).tenant_id
        ids = [add_document(session, tenant, collection, ["a"])[0] for _ in range(documents)]
    return collection, ids


def test_an_operator_pins_a_collection_reads_the_moves_page_by_page_and_sees_it_in_the_audit(
    client: TestClient, sqlite_database: Database
) -> None:
    collection, ids = fill(client, sqlite_database, 5)
    dry = client.post("/v1/admin/placement", json={"target": "shelf", "tier": "cold", "dry_run": True})
    assert (dry.status_code, dry.json()["documents"]) == (200, 5)
    assert client.get("/v1/admin/moves").json()["items"] == []
    done = client.post("/v1/admin/placement", json={"target": "shelf", "tier": "cold"})
    assert (done.status_code, done.json()["counts"]) == (202, {"hot → cold": 5, "pinned": 5})
    seen: list[str] = []
    cursor = None
    while True:
        page = client.get("/v1/admin/moves", params={"limit": 2, **({"cursor": cursor} if cursor else {})})
        seen += [m["document_id"] for m in page.json()["items"]]
        cursor = page.json()["next_cursor"]
        if not cursor:
            break
    assert sorted(seen) == sorted(ids)
    assert len(client.get("/v1/admin/moves", params={"document": ids[0]}).json()["items"]) == 1
    policy = client.get(f"/v1/admin/placement/{collection}").json()
    assert (policy["version"], policy["policy"]["pinned"]) == (1, "cold")
    actions = [e["action"] for e in client.get("/v1/admin/audit").json()["items"]]
    assert "placement.place" in actions


def test_wrong_words_are_told_and_others_may_not(
    app: FastAPI, client: TestClient, sqlite_database: Database
) -> None:
    collection, _ = fill(client, sqlite_database, 1)
    assert client.post("/v1/admin/placement", json={"tier": "cold"}).status_code == 422
    assert client.post("/v1/admin/placement", json={"target": "none"}).status_code == 404
    refused = client.put(f"/v1/admin/placement/{collection}", json={"hot_dayz": 3})
    assert (refused.status_code, "placement.hot_dayz" in refused.json()["detail"]) == (422, True)
    assert client_of(app, "admin").post("/v1/admin/placement", json={}).status_code == 403
