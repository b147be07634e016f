from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from api.app import create_app
from api.downloads import attachment
from core.db import Database, get_database
from core.models import DocumentRow, JobRow
from core.settings import Settings, get_settings
from ingest.service import BlobStore
from tests.api.conftest import Configure

CONTENT = b"The harbour fee is 410 crowns per night."
NAMES = [
    "../escape.txt", "..\\..\\escape.txt", "/var/abs_escape.txt", "a/../../escape.txt", "%2e%2e%2fescape.txt",
    "ok\u202etxt.exe", "con.txt", ".", "..", "evil\r\nX-Injected: 1.txt", "nul\x00byte.txt", "~/.ssh/x.txt",
    "C:\\x.txt",
    '"quoted".txt', "<img src=x onerror=alert(1)>.md", "",
]  # fmt: skip


@pytest.fixture
def collection(client: TestClient) -> str:
    return client.post("/v1/collections", json={"name": "c"}).json()["id"]


def raw_form(name: bytes, content: bytes) -> tuple[bytes, dict[str, str]]:
    """A form as a hostile client writes it, the name unescaped but for what would end the header."""
    safe = name.replace(b"\r", b"%0D").replace(b"\n", b"%0A").replace(b'"', b"%22")
    body = (
        b'--b\r\nContent-Disposition: form-data; name="collection"\r\n\r\nc\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="' + safe + b'"\r\n\r\n'
    )
    return body + content + b"\r\n--b--\r\n", {"Content-Type": "multipart/form-data; boundary=b"}


def outside(settings: Settings) -> set[Path]:
    """Every path around the data folder that is not the store or the database."""
    top = settings.root.parent
    inside = ("blobs", "geo.sqlite3", "geo.sqlite3-wal", "geo.sqlite3-shm")
    return {
        p
        for p in top.rglob("*")
        if not (
            p.is_relative_to(settings.root)
            and p.relative_to(settings.root).parts[0:1]
            and p.relative_to(settings.root).parts[0] in inside
        )
    }


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_client_names_are_display_text_and_never_a_path(
    client: TestClient, collection: str, settings: Settings, number: int
) -> None:
    before = outside(settings)
    body, headers = raw_form(NAMES[number].encode(), CONTENT + str(number).encode())
    answer = client.post("/v1/documents", content=body, headers=headers)
    assert answer.status_code in (202, 400, 422), answer.text
    assert outside(settings) == before
    for stored in (p for p in settings.blob_dir.rglob("*") if p.is_file()):
        assert stored.name.isalnum()
        assert len(stored.name) == 64
    if answer.status_code == 202:
        document = answer.json()
        assert not set(document["name"]) & set("/\\\r\n\x00\u202e")
        source = client.get(f"/v1/documents/{document['id']}/source")
        assert source.status_code == 200
        assert "x-injected" not in source.headers


@pytest.mark.parametrize(
    "name", ["采购合同 2024年修订.md", "naïve résumé.txt", "报告“终稿”.pdf", "😀.txt", "a'b;c.txt"]
)
def test_name_survives_upload_and_download(client: TestClient, collection: str, name: str) -> None:
    body, headers = raw_form(name.encode(), CONTENT)
    document = client.post("/v1/documents", content=body, headers=headers).json()
    assert document["name"] == name
    source = client.get(document["status_url"] + "/source")
    assert source.content == CONTENT
    header = source.headers["content-disposition"]
    header.encode("ascii")
    assert unquote(header.split("filename*=UTF-8''")[1]) == name
    assert source.headers["x-content-type-options"] == "nosniff"
    assert source.headers["content-security-policy"].startswith("sandbox")


def test_source_keeps_its_type_and_claims_no_charset(client: TestClient, collection: str) -> None:
    files = {"file": ("page.html", "<p>费用</p>".encode("gb18030"), "text/html")}
    document = client.post("/v1/documents", files=files, data={"collection": "c"}).json()
    kind = client.get(document["status_url"] + "/source").headers["content-type"]
    assert "charset" not in kind


@pytest.mark.parametrize("name", ["a\r\nSet-Cookie: x", 'a"b', "a\\b", "\u202etxt.exe", "\x00", "", "。。"])
def test_no_name_breaks_out_of_its_header(name: str) -> None:
    header = attachment(name)
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2


def test_twenty_parallel_uploads_of_the_same_bytes_are_one_document_and_one_job(
    client: TestClient, collection: str
) -> None:
    def upload(number: int) -> tuple[int, str]:
        files = {"file": (f"{number}.txt", CONTENT)}
        answer = client.post("/v1/documents", files=files, data={"collection": collection})
        return answer.status_code, answer.json()["id"]

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(upload, range(20)))
    assert sorted(status for status, _ in answers) == [200] * 19 + [202]
    assert len({document for _, document in answers}) == 1
    with get_database().read() as session:
        assert session.scalar(select(func.count()).select_from(DocumentRow)) == 1
        assert session.scalar(select(func.count()).select_from(JobRow)) == 1
    assert len([p for p in get_settings().blob_dir.rglob("*") if p.is_file()]) == 1


def test_same_bytes_in_another_collection_are_another_document(client: TestClient, collection: str) -> None:
    client.post("/v1/collections", json={"name": "d"})
    first = client.post("/v1/documents", files={"file": ("a", CONTENT)}, data={"collection": "c"}).json()
    second = client.post("/v1/documents", files={"file": ("a", CONTENT)}, data={"collection": "d"}).json()
    assert first["id"] != second["id"]


def test_fields_beside_the_file_are_kept(client: TestClient, collection: str) -> None:
    fields = {
        "collection": "c",
        "metadata": json.dumps({"source": "港口\x00", "year": 2024}),
        "tags": '["fees", "fees", "港口"]',
        "trust": "high",
    }
    document = client.post("/v1/documents", files={"file": ("a.txt", CONTENT)}, data=fields).json()
    assert document["metadata"] == {"source": "港口", "year": 2024}
    assert document["tags"] == ["fees", "港口"]
    assert document["trust"] == "high"


@pytest.mark.parametrize(
    ("fields", "files", "status"),
    [
        ({"collection": "c"}, {}, 415),
        ({}, {"file": ("a", b"x")}, 422),
        ({"collection": "nowhere"}, {"file": ("a", b"x")}, 404),
        ({"collection": "c"}, {"file": ("a", b"")}, 422),
        ({"collection": "c"}, {"other": ("a", b"x")}, 422),
        ({"collection": "c", "metadata": "{"}, {"file": ("a", b"x")}, 422),
        ({"collection": "c", "metadata": "[]"}, {"file": ("a", b"x")}, 422),
        ({"collection": "c", "metadata": '{"n": NaN}'}, {"file": ("a", b"x")}, 422),
        ({"collection": "c", "tags": "[1]"}, {"file": ("a", b"x")}, 422),
        ({"collection": "c", "trust": "absolute"}, {"file": ("a", b"x")}, 422),
        ({"collection": "c", "colour": "red"}, {"file": ("a", b"x")}, 422),
        ({"collection": "c", "metadata": "x" * 20_000}, {"file": ("a", b"x")}, 413),
        ({f"f{n}": "x" for n in range(40)}, {"file": ("a", b"x")}, 413),
    ],
)
def test_unacceptable_forms_are_refused_and_leave_nothing(
    client: TestClient,
    collection: str,
    fields: dict[str, str],
    files: dict[str, tuple[str, bytes]],
    status: int,
) -> None:
    answer = client.post("/v1/documents", data=fields, files=files or None)
    assert answer.status_code == status, answer.text
    assert [p for p in get_settings().blob_dir.rglob("*") if p.is_file()] == []
    assert client.get("/v1/documents").json()["items"] == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--b",
        b"--b\r\n\r\n",
        b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n",
        b"junk" * 100,
    ],
)
def test_malformed_multipart_is_a_problem(client: TestClient, collection: str, body: bytes) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    assert client.post("/v1/documents", content=body, headers=headers).status_code in (400, 422)
    assert [p for p in get_settings().blob_dir.rglob("*") if p.is_file()] == []


def test_truncated_multipart_stores_nothing(client: TestClient, collection: str) -> None:
    body, headers = raw_form(b"a.txt", CONTENT)
    assert client.post("/v1/documents", content=body[:-10], headers=headers).status_code == 400
    assert client.get("/v1/documents").json()["items"] == []


def test_file_over_the_cap_is_refused(
    client: TestClient, collection: str, app: FastAPI, configure: Configure
) -> None:
    app.state.settings.api.__dict__["max_upload_bytes"] = 2048
    files = {"file": ("big.bin", b"x" * 4096)}
    answer = client.post("/v1/documents", files=files, data={"collection": "c"})
    assert answer.status_code == 413
    assert [p for p in get_settings().blob_dir.rglob("*") if p.is_file()] == []


def test_full_disk_is_507_and_not_ready(client: TestClient, collection: str, app: FastAPI) -> None:
    app.state.settings.__dict__["min_free_bytes"] = 1 << 62
    answer = client.post("/v1/documents", files={"file": ("a", CONTENT)}, data={"collection": "c"})
    assert answer.status_code == 507
    assert answer.json()["code"] == "disk_full"
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert not ready.json()["checks"]["disk"]["ok"]
    app.state.settings.__dict__["min_free_bytes"] = 0
    answer = client.post("/v1/documents", files={"file": ("a", CONTENT)}, data={"collection": "c"})
    assert answer.status_code == 202


def test_new_version_keeps_the_id(client: TestClient, collection: str) -> None:
    first = client.post("/v1/documents", files={"file": ("a.txt", CONTENT)}, data={"collection": "c"}).json()
    second = client.put(first["status_url"], files={"file": ("a.txt", CONTENT + b"!")})
    assert second.status_code == 202
    assert (second.json()["id"], second.json()["version"]) == (first["id"], 2)
    same = client.put(first["status_url"], files={"file": ("a.txt", CONTENT + b"!")})
    assert same.status_code == 200


def test_deleted_document_frees_its_bytes(client: TestClient, collection: str) -> None:
    first = client.post("/v1/documents", files={"file": ("a", CONTENT)}, data={"collection": "c"}).json()
    assert client.delete(first["status_url"]).json()["status"] == "deleting"
    again = client.post("/v1/documents", files={"file": ("a", CONTENT)}, data={"collection": "c"})
    assert again.status_code == 202
    assert again.json()["id"] != first["id"]
    assert client.get(first["status_url"] + "/source").status_code == 404


def test_entities_are_imported_and_bad_rows_told(client: TestClient) -> None:
    lines = '\ufeff{"name": "Halden 泵站", "type": "org", "aliases": ["Halden"]}\n{"nam": 1}\n'
    headers = {"Content-Type": "application/jsonl"}
    done = client.post("/v1/entities/import", content=lines.encode(), headers=headers).json()
    assert (done["created"], len(done["rejected"])) == (1, 1)
    assert (
        client.get("/v1/entities", params={"q": "ＨＡＬＤＥＮ"}).json()["items"][0]["name"] == "Halden 泵站"
    )
    assert client.post("/v1/entities/import", content=b"\xff\n", headers=headers).status_code == 422
    wrong = {"Content-Type": "application/xml"}
    assert client.post("/v1/entities/import", content=b"x", headers=wrong).status_code == 415


def test_staging_of_a_killed_upload_is_removed_at_the_next_start(sqlite_database: Database) -> None:
    staging = BlobStore.of().staging
    staging.mkdir(parents=True, exist_ok=True)
    old, young = staging / "old", staging / "young"
    old.write_bytes(b"half an upload")
    young.write_bytes(b"an upload under way")
    os.utime(old, (0, 0))
    with TestClient(create_app()):
        assert (old.exists(), young.exists()) == (False, True)
