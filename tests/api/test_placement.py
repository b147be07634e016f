from __future__ import annotations

from fastapi import FastAPI
from fastapi.testclient import TestClient

from core.db import Database
from core.models import ApiKeyRow, CollectionRow, DocumentRow
from tests.api.conftest import client_of
from tests.retrieval.rows import add_collection, add_document, add_tenant


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


def test_an_operators_key_that_is_limited_to_collections_places_nothing_outside_them(
    app: FastAPI, client: TestClient, sqlite_database: Database
) -> None:
    own, (kept,) = fill(client, sqlite_database, 1)
    with sqlite_database.write() as session:
        tenant = session.get_one(CollectionRow, own).tenant_id
        other = add_collection(session, tenant, "cellar")
        foreign_tenant, foreign = add_tenant(session, "elsewhere")
        beside, _ = add_document(session, tenant, other, ["a"])
        strange, _ = add_document(session, foreign_tenant, foreign, ["a"])
    limited = client_of(app, "operator")
    with sqlite_database.write() as session:  # no door makes such a key; a row of it is held to its words
        session.query(ApiKeyRow).order_by(ApiKeyRow.created_at.desc()).first().collection_ids = [own]  # type: ignore[union-attr]

    for target in (other, "cellar", foreign, beside, strange):
        for dry_run in (True, False):
            body = {"target": target, "tier": "cold", "dry_run": dry_run}
            assert limited.post("/v1/admin/placement", json=body).status_code == 404, body
        assert limited.get(f"/v1/admin/placement/{target}").status_code == 404
        assert limited.put(f"/v1/admin/placement/{target}", json={"pinned": "cold"}).status_code == 404
    with sqlite_database.read() as session:
        assert {d.wanted_tier for d in session.query(DocumentRow)} == {None}

    for target in (foreign, other):
        assert client.put(f"/v1/admin/placement/{target}", json={"pinned": "cold"}).status_code == 200
    dry = {"dry_run": True}
    assert client.post("/v1/admin/placement", json=dry).json()["documents"] == 2, "the whole installation"
    told = limited.post("/v1/admin/placement", json=dry).json()
    assert (told["documents"], told["others"], told["moves"]) == (0, 0, [])
    assert limited.post("/v1/admin/placement", json={}).json()["documents"] == 0
    assert client.post("/v1/admin/placement", json={}).json()["documents"] == 2
    for target in (own, kept):
        assert limited.post("/v1/admin/placement", json={"target": target, "tier": "cold"}).status_code == 202
    assert [m["document_id"] for m in limited.get("/v1/admin/moves").json()["items"]] == [kept]
    assert len(client.get("/v1/admin/moves").json()["items"]) == 3
