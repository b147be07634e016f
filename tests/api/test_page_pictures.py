from __future__ import annotations

import io
import time

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from PIL import Image

from core.db import get_database
from core.models import DocumentRow, DocumentVersionRow
from core.types import Scope
from ingest.parse.page_picture import MAX_WIDTH, page_picture
from ingest.pictures import PagePainter, document_page
from ingest.sandbox import _resident_bytes
from tests.api.conftest import client_of
from tests.ingest.parsing import pdf
from tests.ingest.pictures import encoded

CONTENT = pdf([(60, 80, "first")], [(60, 80, "second")])


def upload(client: TestClient, content: bytes, media_type: str, pages: int | None) -> str:
    client.post("/v1/collections", json={"name": "c"})
    name = {"application/pdf": "a.pdf", "image/png": "a.png"}.get(media_type, "a.txt")
    made = client.post("/v1/documents", files={"file": (name, content)}, data={"collection": "c"})
    document_id = made.json()["id"]
    with get_database().write() as session:
        row = session.get_one(DocumentRow, document_id)
        version = session.get_one(DocumentVersionRow, (document_id, 1))
        row.live_version, row.status = 1, "ready"
        version.text, version.media_type, version.pages = "x", media_type, pages
    return document_id


def picture(answer) -> Image.Image:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/png"
    return Image.open(io.BytesIO(answer.content))


def ink(image: Image.Image) -> int:
    return sum(1 for v in image.convert("L").tobytes() if v < 128)


def test_a_page_is_drawn_in_the_wanted_width_with_its_size_in_points(client: TestClient) -> None:
    document_id = upload(client, CONTENT, "application/pdf", 2)
    answer = client.get(f"/v1/documents/{document_id}/pages/2", params={"width": 500})
    image = picture(answer)
    assert abs(image.width - 500) <= 1
    assert float(answer.headers["x-page-width"]) == pytest.approx(595.28, abs=0.1)
    assert float(answer.headers["x-page-height"]) == pytest.approx(841.89, abs=0.1)
    scale = image.width / 595.28
    assert ink(image.crop((0, int(60 * scale), image.width, int(90 * scale)))) > 20
    assert ink(image) == ink(image.crop((0, int(60 * scale), image.width, int(90 * scale))))
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "no-cache" in answer.headers["cache-control"]


def test_an_unchanged_picture_is_not_sent_again(client: TestClient) -> None:
    document_id = upload(client, CONTENT, "application/pdf", 2)
    address = f"/v1/documents/{document_id}/pages/1"
    tag = client.get(address).headers["etag"]
    again = client.get(address, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get(address, params={"width": 300}, headers={"If-None-Match": tag}).status_code == 200
    with get_database().write() as session:
        session.get_one(DocumentRow, document_id).status = "deleting"
    assert client.get(address, headers={"If-None-Match": tag}).status_code == 404


def test_pages_of_pictures_are_pictures_too(client: TestClient) -> None:
    image = Image.new("RGB", (300, 200), "white")
    image.paste("black", (100, 50, 120, 60))
    document_id = upload(client, encoded(image), "image/png", 1)
    answer = client.get(f"/v1/documents/{document_id}/pages/1", params={"width": 150})
    assert picture(answer).size == (150, 100)
    assert float(answer.headers["x-page-width"]) == 300


def test_what_has_no_such_page_is_not_found(client: TestClient, app: FastAPI) -> None:
    document_id = upload(client, CONTENT, "application/pdf", 2)
    assert client.get(f"/v1/documents/{document_id}/pages/3").status_code == 404
    assert client.get(f"/v1/documents/{document_id}/pages/0").status_code == 422
    assert client.get(f"/v1/documents/{document_id}/pages/1", params={"width": 2001}).status_code == 422
    assert client.get(f"/v1/documents/{document_id}/pages/1", params={"version": 2}).status_code == 404
    text = upload(client, b"no pages here", "text/plain", None)
    assert client.get(f"/v1/documents/{text}/pages/1").status_code == 404
    stranger = client_of(app, "reader", tenant="elsewhere")
    assert stranger.get(f"/v1/documents/{document_id}/pages/1").status_code == 404
    other = client.post("/v1/collections", json={"name": "other"}).json()["id"]
    narrow = client_of(app, "reader", collections=[other])
    assert narrow.get(f"/v1/documents/{document_id}/pages/1").status_code == 404


def test_a_damaged_file_is_no_error_of_the_server(client: TestClient) -> None:
    document_id = upload(client, b"%PDF-1.7 nothing", "application/pdf", 1)
    answer = client.get(f"/v1/documents/{document_id}/pages/1")
    assert (answer.status_code, answer.json()["code"]) == (422, "corrupt")


def test_the_painter_ends_its_process_after_a_pause(client: TestClient) -> None:
    document_id = upload(client, CONTENT, "application/pdf", 2)
    painter = PagePainter(idle_s=0.4)
    with get_database().read() as session:
        scope = Scope(session.get_one(DocumentRow, document_id).tenant_id, None, "test")
        page = document_page(session, scope, document_id=document_id, page=1)
    assert painter.draw(page).png.startswith(b"\x89PNG")
    pid = painter._sandbox._child.pid
    assert _resident_bytes(pid) > 0
    for _ in range(60):
        if not painter.is_warm:
            break
        time.sleep(0.1)
    assert not painter.is_warm
    assert _resident_bytes(pid) == 0
    assert painter.draw(page).png.startswith(b"\x89PNG")
    painter.close()


def test_a_very_long_picture_stays_bounded() -> None:
    tall = encoded(Image.new("RGB", (400, 20_000), "white"))
    drawn = page_picture(tall, "image/png", 1, MAX_WIDTH)
    assert Image.open(io.BytesIO(drawn.png)).height <= 8000
    poster = pdf([(10, 10, "x")])
    assert (
        Image.open(io.BytesIO(page_picture(poster, "application/pdf", 1, MAX_WIDTH).png)).width
        <= MAX_WIDTH + 1
    )
