from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select

from api import keys
from api.app import create_app
from core.db import Database, get_database
from core.errors import ConfigError
from core.models import ApiKeyRow, TenantRow
from core.settings import get_settings
from tests.api.conftest import OPERATOR_KEY, Configure, client_of, signed_in


@pytest.mark.parametrize(
    "header", [None, "", " ", "Bearer", "Bearer ", "Bearer    ", "Basic b3A6b3A=", "bearer x"]
)
def test_blank_and_wrong_headers_open_nothing(client: TestClient, app: FastAPI, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    for path in ("/v1/collections", "/v1/admin/tiers/hot/rebuild", "/metrics"):
        method = "POST" if "rebuild" in path else "GET"
        answer = signed_in(app, "").request(method, path, headers=headers)
        assert answer.status_code == 401
        assert answer.json()["code"] == "unauthenticated"


@pytest.mark.parametrize("value", ["", "   ", "short-key", " fifteen-chars "])
def test_short_bootstrap_key_stops_the_start(configure: Configure, settings: object, value: str) -> None:
    configure(auth__bootstrap_key=value)
    with pytest.raises(ConfigError, match="16 characters"):
        get_settings()


def test_first_key_is_made_once_and_told_once(sqlite_database: Database) -> None:
    made = keys.ensure_bootstrap(sqlite_database)
    assert made is not None
    assert made.startswith("geo_")
    assert len(made) == 44
    assert keys.ensure_bootstrap(sqlite_database) is None
    with sqlite_database.read() as session:
        rows = session.scalars(select(ApiKeyRow)).all()
        assert [r.role for r in rows] == ["operator"]
        assert made not in str([r.__dict__ for r in rows])
        scope = keys.find_scope(session, made)
    assert scope is not None
    assert scope.may == "operator"


def test_first_key_is_written_to_the_terminal(
    sqlite_database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with TestClient(create_app()) as started:
        shown = capsys.readouterr().err
        key = shown.split("now): ")[1].split()[0]
        headers = {"Authorization": f"Bearer {key}"}
        assert started.get("/v1/admin/keys", headers=headers).status_code == 200
    with TestClient(create_app()):
        assert "geo_" not in capsys.readouterr().err


def test_bootstrap_on_both_databases(database: Database) -> None:
    assert keys.ensure_bootstrap(database) is not None
    assert keys.ensure_bootstrap(database) is None


def test_new_key_works_and_only_its_hash_is_stored(client: TestClient, app: FastAPI) -> None:
    made = client.post("/v1/admin/keys", json={"name": "reader", "role": "reader"})
    assert made.status_code == 201
    key = made.json()["key"]
    assert key not in client.get("/v1/admin/keys").text
    reader = signed_in(app, key)
    assert reader.get("/v1/collections").status_code == 200
    assert reader.post("/v1/collections", json={"name": "x"}).status_code == 403


def test_revoked_key_is_refused_on_the_next_request(client: TestClient, app: FastAPI) -> None:
    made = client.post("/v1/admin/keys", json={"name": "short life"}).json()
    holder = signed_in(app, made["key"])
    assert holder.get("/v1/collections").status_code == 200
    assert client.delete(f"/v1/admin/keys/{made['id']}").status_code == 200
    assert holder.get("/v1/collections").status_code == 401
    again = client.delete(f"/v1/admin/keys/{made['id']}")
    assert again.status_code == 200


def test_last_operator_key_stays(client: TestClient) -> None:
    only = client.get("/v1/admin/keys").json()["items"][0]
    assert client.delete(f"/v1/admin/keys/{only['id']}").status_code == 409
    client.post("/v1/admin/keys", json={"name": "second", "role": "operator"})
    assert client.delete(f"/v1/admin/keys/{only['id']}").status_code == 200


def test_admin_makes_no_stronger_key_and_no_tenant(client: TestClient, app: FastAPI) -> None:
    admin = client_of(app, "admin")
    assert admin.post("/v1/admin/keys", json={"name": "x", "role": "operator"}).status_code == 403
    assert admin.post("/v1/admin/keys", json={"name": "x", "tenant": "other"}).status_code == 403
    assert admin.post("/v1/admin/keys", json={"name": "x", "role": "admin"}).status_code == 201
    operator = client.get("/v1/admin/keys").json()["items"][0]
    assert admin.delete(f"/v1/admin/keys/{operator['id']}").status_code == 403


def test_tenant_is_born_with_its_first_key(client: TestClient) -> None:
    for _ in range(2):
        body = {"name": "k", "role": "admin", "tenant": "acme"}
        assert client.post("/v1/admin/keys", json=body).json()["tenant"] == "acme"
    with get_database().read() as session:
        assert sorted(session.scalars(select(TenantRow.name))) == ["acme", "default"]
    assert len(client.get("/v1/admin/keys", params={"tenant": "acme"}).json()["items"]) == 2


def test_key_limited_to_a_collection_sees_no_other(client: TestClient, app: FastAPI) -> None:
    client.post("/v1/collections", json={"name": "a"})
    client.post("/v1/collections", json={"name": "b"})
    limited = client_of(app, "writer", collections=["a"])
    assert [c["name"] for c in limited.get("/v1/collections").json()["items"]] == ["a"]
    assert limited.get("/v1/collections/b").status_code == 404
    files = {"file": ("n.txt", b"text")}
    assert limited.post("/v1/documents", files=files, data={"collection": "b"}).status_code == 404
    assert [m["id"] for m in limited.get("/v1/models").json()["data"]] == ["geo:a"]


def test_limited_admin_makes_only_narrower_keys(client: TestClient, app: FastAPI) -> None:
    client.post("/v1/collections", json={"name": "a"})
    client.post("/v1/collections", json={"name": "b"})
    limited = client_of(app, "admin", collections=["a"])
    assert limited.post("/v1/admin/keys", json={"name": "x"}).status_code == 403
    assert limited.post("/v1/admin/keys", json={"name": "x", "collections": ["b"]}).status_code == 404
    assert limited.post("/v1/admin/keys", json={"name": "x", "collections": ["a"]}).status_code == 201


def test_limited_admin_revokes_only_narrower_keys(client: TestClient, app: FastAPI) -> None:
    client.post("/v1/collections", json={"name": "a"})
    limited = client_of(app, "admin", collections=["a"])
    wide = client.post("/v1/admin/keys", json={"name": "wide"}).json()
    narrow = client.post("/v1/admin/keys", json={"name": "narrow", "collections": ["a"]}).json()
    assert limited.delete(f"/v1/admin/keys/{wide['id']}").status_code == 403
    assert limited.delete(f"/v1/admin/keys/{narrow['id']}").status_code == 200


def test_bootstrap_key_that_comes_too_late_is_told_of(
    client: TestClient, configure: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    configure(auth__bootstrap_key="another-key-of-enough-length")
    assert keys.ensure_bootstrap(get_database()) is None
    assert "bootstrap_key_ignored" in caplog.text


def test_use_of_a_key_is_stored(app: FastAPI) -> None:
    with signed_in(app, OPERATOR_KEY) as client:
        client.get("/v1/collections")
    with get_database().read() as session:
        assert session.scalars(select(ApiKeyRow)).one().last_used_at is not None


def test_every_change_is_in_the_audit_log(client: TestClient) -> None:
    made = client.post("/v1/admin/keys", json={"name": "k"}, headers={"X-Request-ID": "audit-1"}).json()
    client.post("/v1/collections", json={"name": "a"})
    client.delete(f"/v1/admin/keys/{made['id']}")
    entries = client.get("/v1/admin/audit").json()["items"]
    assert [e["action"] for e in entries] == ["key.revoke", "collection.create", "key.create"]
    assert entries[-1]["request_id"] == "audit-1"
    first = client.get("/v1/admin/audit", params={"limit": 2}).json()
    rest = client.get("/v1/admin/audit", params={"cursor": first["next_cursor"]}).json()
    assert [e["action"] for e in rest["items"]] == ["key.create"]


def test_admin_reads_the_audit_log_of_its_tenant_only(client: TestClient, app: FastAPI) -> None:
    client.post("/v1/collections", json={"name": "a"})
    elsewhere = client_of(app, "admin", tenant="elsewhere")
    assert elsewhere.get("/v1/admin/audit").json()["items"] == []
