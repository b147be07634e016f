"""Generated from the list of doors: a new door is tested here by existing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from api.app import create_app, doors
from core.db import get_database
from core.ids import new_id
from core.models import BuildRow, DocumentRow, DocumentVersionRow, EntityRow, PassageRow, ReprocessRow
from core.settings import RetrievalSettings, Settings
from ingest.offset_map import OffsetMap, Segment
from retrieval.profile import built_in
from tests.api.conftest import client_of, signed_in
from tests.ingest.parsing import pdf

PROFILE = built_in(RetrievalSettings()).model_dump(mode="json")
OPEN = {"/healthz", "/readyz"}
BODIES: dict[str, dict[str, Any]] = {
    "make_key": {"name": "k"},
    "create_collection": {"name": "another"},
    "patch_collection": {"name": "renamed", "parse": {"keep_hidden": True}},
    "reprocess_collection": {"only": "failed"},
    "put_policy": {},
    "patch_document": {"tags": ["a"]},
    "patch_entity": {"description": "d"},
    "merge_entities": {"entity_ids": ["{other_entity}"]},
    "split_entity": {"name": "second", "document_ids": ["{document_id}"]},
    "search": {"question": "q", "collection": "{collection}"},
    "ask": {"question": "q", "collection": "{collection}"},
    "complete": {"model": "geo:{collection_name}", "messages": [{"role": "user", "content": "q"}]},
    "rebuild_tier": {},
    "place": {"target": "{collection}", "tier": "warm"},
    "put_placement_policy": {"hot_days": 10},
    "add_profile": {"collection": "{collection}", "profile": PROFILE},
}
FORMS = {"upload_document": {"collection": "{collection}"}, "new_version": {}}
OPERATORS = tuple(
    f"/v1/admin/{name}"
    for name in ("jobs", "tiers", "builds", "placement", "moves", "recall", "retrieval-profiles")
)
NEEDS_WORKERS = {"search", "complete", "follow_query"}


def every_door() -> list[tuple[str, str, str]]:
    return [
        (route.name, method, route.path)
        for route in doors(create_app(Settings()))
        for method in sorted(route.methods - {"HEAD"})
    ]


DOORS = every_door()
CLOSED = [d for d in DOORS if d[2] not in OPEN]
WITH_ID = [d for d in DOORS if "{" in d[2] or d[0] in ("upload_document", "search", "ask", "complete")]


@dataclass
class Owned:
    """One tenant's things, one of each kind."""

    client: TestClient
    ids: dict[str, str]

    def fill(self, value: Any) -> Any:
        if isinstance(value, str) and "{" in value:
            return value.format(**self.ids)
        if isinstance(value, dict):
            return {k: self.fill(v) for k, v in value.items()}
        return [self.fill(v) for v in value] if isinstance(value, list) else value


def call(client: TestClient, door: tuple[str, str, str], owned: Owned) -> httpx.Response:
    name, method, path = door
    url = path.format(**owned.ids)
    if name in FORMS:
        return client.request(
            method, url, data=owned.fill(FORMS[name]), files={"file": ("n.txt", b"other bytes")}
        )
    if name == "import_entities":
        return client.request(
            method, url, content=b'{"name": "n"}\n', headers={"Content-Type": "application/jsonl"}
        )
    body = BODIES.get(name)
    return client.request(method, url, json=None if body is None else owned.fill(body))


@pytest.fixture
def owned(client: TestClient, app: FastAPI) -> Owned:
    """A document with one passage, an entity, a query, a key, a build of the tenant `default`."""
    admin = client_of(app, "admin")
    collection = admin.post("/v1/collections", json={"name": "ours"}).json()
    files = {"file": ("ours.pdf", pdf([(60, 80, "the harbour fee is 410")]))}
    document = admin.post("/v1/documents", files=files, data={"collection": "ours"}).json()["id"]
    tenant = make_readable(document, collection["id"])
    entities = [new_id("ent"), new_id("ent")]
    key = client.post("/v1/admin/keys", json={"name": "to revoke"}).json()
    body = {"question": "how much?", "collection": "ours"}
    query = admin.post("/v1/queries", json=body).json()["id"]
    stored = {"collection": collection["id"], "profile": PROFILE}
    profile = client.post("/v1/admin/retrieval-profiles", json=stored).json()["id"]
    build, walk = new_id("bld"), new_id("rep")
    with get_database().write() as session:
        for entity in entities:
            session.add(EntityRow(id=entity, tenant_id=tenant, type="org", name=entity))
        session.add(BuildRow(id=build, tier="hot", created_by="test", status="published"))
        session.add(
            ReprocessRow(
                id=walk, tenant_id=tenant, collection_id=collection["id"], only="all", status="done",
                until=document, created_by="test",
            )
        )  # fmt: skip
    ids = {
        "collection": collection["id"],
        "collection_name": "ours",
        "document_id": document,
        "query_id": query,
        "entity_id": entities[0],
        "other_entity": entities[1],
        "key_id": key["id"],
        "build_id": build,
        "reprocess_id": walk,
        "job_id": client.get("/v1/admin/jobs").json()["items"][0]["id"],
        "tier": "hot",
        "profile_id": profile,
        "page": "1",
    }
    return Owned(admin, ids)


def make_readable(document_id: str, collection_id: str) -> str:
    with get_database().write() as session:
        row = session.get_one(DocumentRow, document_id)
        version = session.get_one(DocumentVersionRow, (document_id, 1))
        row.live_version, row.status = 1, "ready"
        version.text, version.media_type, version.pages = "the harbour fee is 410", "application/pdf", 1
        version.offset_map = OffsetMap([Segment(0, 22, page=1)]).to_bytes()
        session.add(
            PassageRow(
                tenant_id=row.tenant_id,
                collection_id=collection_id,
                document_id=document_id,
                version=1,
                ordinal=0,
                start=0,
                end=22,
                lang="en",
                text=version.text,
            )
        )
        return row.tenant_id


@pytest.fixture
def stranger(app: FastAPI, client: TestClient) -> TestClient:
    """An administrator of another tenant."""
    return client_of(app, "admin", tenant="elsewhere")


def test_no_door_opens_without_a_key(app: FastAPI, client: TestClient, owned: Owned) -> None:
    nobody = signed_in(app, "")
    for door in CLOSED:
        answer = call(nobody, door, owned)
        assert answer.status_code == 401, door
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_foreign_ids_read_like_unknown_ones_at_every_door(owned: Owned, stranger: TestClient) -> None:
    """403 at an operator's door, before any id is looked at; 404 everywhere else."""
    for door in WITH_ID:
        answer = call(stranger, door, owned)
        operators = door[2].startswith(OPERATORS)
        assert answer.status_code == (403 if operators else 404), (door, answer.text)
        if answer.status_code == 404:
            assert answer.headers["content-type"] == "application/problem+json"
            detail = answer.json()["detail"]  # nothing of ours but what the caller named, as for any unknown
            assert "ours" not in detail or detail == "No such collection: ours"


def test_foreign_and_unknown_names_get_the_same_words(owned: Owned, stranger: TestClient) -> None:
    details = []
    for name in ("ours", "none"):
        answer = stranger.post("/v1/search", json={"question": "How deep is it?", "collection": name})
        assert answer.status_code == 404
        details.append(answer.json()["detail"].replace(name, "NAME"))
    assert details[0] == details[1]


def test_lists_of_another_tenant_show_nothing_of_ours(owned: Owned, stranger: TestClient) -> None:
    for name, method, path in DOORS:
        if method != "GET" or "{" in path or path in OPEN or not path.startswith("/v1"):
            continue
        answer = stranger.get(path)
        if answer.status_code == 403:
            continue
        assert answer.status_code == 200, name
        text = answer.text
        for kind, value in owned.ids.items():
            assert kind in ("tier", "page", "collection_name") or value not in text, (path, kind)
        assert "geo:ours" not in text


def test_the_owner_finds_what_a_stranger_does_not(owned: Owned) -> None:
    """Else the 404s above would prove nothing."""
    order = sorted(WITH_ID, key=lambda d: (d[1] == "DELETE", d[0] == "delete_collection", d[0]))
    for door in order:
        if door[0] in NEEDS_WORKERS or door[2].startswith(OPERATORS):
            continue
        answer = call(owned.client, door, owned)
        assert answer.status_code not in (401, 403, 404, 405, 500), (door, answer.text)


def test_roles_stop_below_their_rank(app: FastAPI, owned: Owned) -> None:
    by_role = {role: client_of(app, role) for role in ("reader", "writer", "admin")}
    for door in CLOSED:
        needed = required_role(door)
        for role, weaker in by_role.items():
            if ["reader", "writer", "admin", "operator"].index(role) < [
                "reader", "writer", "admin", "operator"
            ].index(needed):  # fmt: skip
                assert call(weaker, door, owned).status_code == 403, (role, door)


def required_role(door: tuple[str, str, str]) -> str:
    """The table of who may do what, written out once more."""
    _, method, path = door
    if path.startswith(("/v1/admin/keys", "/v1/admin/audit")):
        return "admin"
    if path.startswith("/v1/admin"):
        return "operator"
    if path.startswith(("/v1/collections", "/v1/entities")) and method != "GET":
        return "admin"
    if path.startswith("/v1/documents") and method != "GET":
        return "writer"
    return "reader"


def test_operators_see_every_door(client: TestClient, owned: Owned) -> None:
    for name, method, path in DOORS:
        if method == "GET" and name not in NEEDS_WORKERS:
            answer = client.get(path.format(**owned.ids))
            assert answer.status_code == 200, (path, answer.text)
