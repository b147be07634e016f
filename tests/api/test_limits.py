from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.requests import HTTPConnection

from api.app import create_app
from api.rate_limit import RateLimiter
from core.db import Database
from core.redis_client import make_async_redis
from core.settings import ApiSettings, Settings
from tests.api.conftest import OPERATOR_KEY, Configure, client_of, signed_in

WRONG = {"Authorization": "Bearer geo_wrong-key-wrong-key-wrong-key"}


@pytest.fixture
def strict(sqlite_database: Database, configure: Configure) -> FastAPI:
    configure(
        auth__bootstrap_key=OPERATOR_KEY,
        api__rate_per_minute=60,
        api__rate_burst=10,
        api__rate_anonymous_per_minute=20,
    )
    return create_app()


@pytest.fixture
def operator(strict: FastAPI) -> Iterator[TestClient]:
    with signed_in(strict, OPERATOR_KEY) as running:
        strict.state.portal = running.portal
        yield running


def test_key_that_asks_too_much_waits(strict: FastAPI, operator: TestClient) -> None:
    reader = client_of(strict, "reader")
    answers = [reader.get("/v1/collections") for _ in range(15)]
    refused = [a for a in answers if a.status_code == 429]
    assert 3 <= len(refused) <= 5
    assert int(refused[0].headers["retry-after"]) >= 1
    assert refused[0].json()["code"] == "rate_limited"


def test_users_behind_one_address_do_not_throttle_each_other(strict: FastAPI, operator: TestClient) -> None:
    greedy, modest = client_of(strict, "reader"), client_of(strict, "reader")
    assert 429 in [greedy.get("/v1/collections").status_code for _ in range(15)]
    assert [modest.get("/v1/collections").status_code for _ in range(5)] == [200] * 5


def test_rotating_forwarded_header_buys_nothing(strict: FastAPI, operator: TestClient) -> None:
    nobody = signed_in(strict, "")
    seen = [
        nobody.post("/v1/search", json={}, headers={**WRONG, "X-Forwarded-For": f"203.0.113.{n}"}).status_code
        for n in range(200)
    ]
    assert seen.count(401) <= 22
    assert set(seen) == {401, 429}
    assert operator.get("/v1/collections").status_code == 200


def test_health_is_never_limited(strict: FastAPI, operator: TestClient) -> None:
    nobody = signed_in(strict, "")
    assert {nobody.get("/healthz").status_code for _ in range(60)} == {200}


def test_requests_pass_while_redis_is_away(
    sqlite_database: Database, configure: Configure, settings: Settings
) -> None:
    configure(auth__bootstrap_key=OPERATOR_KEY, redis__url="redis://127.0.0.1:1/0", api__rate_burst=1)
    with signed_in(create_app(), OPERATOR_KEY) as client:
        assert [client.get("/v1/collections").status_code for _ in range(5)] == [200] * 5
        assert client.get("/readyz").status_code == 503
        skipped = [line for line in client.get("/metrics").text.splitlines() if "limit_skipped_total" in line]
        assert float(skipped[-1].split()[-1]) >= 5


@pytest.mark.parametrize(
    ("peer", "forwarded", "seen"),
    [
        ("198.51.100.7", None, "198.51.100.7"),
        ("198.51.100.7", "1.2.3.4", "198.51.100.7"),  # not our proxy: its header is a story
        ("10.0.0.2", "1.2.3.4", "1.2.3.4"),
        ("10.0.0.2", "9.9.9.9, 1.2.3.4", "1.2.3.4"),  # only the hop that our proxy saw counts
        ("10.0.0.2", "1.2.3.4, 10.0.0.9", "1.2.3.4"),
        ("10.0.0.2", "junk", "10.0.0.2"),
        ("10.0.0.2", None, "10.0.0.2"),
        ("::ffff:10.0.0.2", "1.2.3.4", "1.2.3.4"),
        ("2001:db8:1:2:aaaa::1", None, "2001:db8:1:2::"),
    ],
)
async def test_address_is_the_nearest_hop_that_is_not_our_proxy(
    settings: Settings, peer: str, forwarded: str | None, seen: str
) -> None:
    client = make_async_redis()
    limiter = RateLimiter(client, ApiSettings(trusted_proxies=("10.0.0.0/8",)))
    headers = [] if forwarded is None else [(b"x-forwarded-for", forwarded.encode())]
    connection = HTTPConnection({"type": "http", "client": (peer, 1), "headers": headers})
    assert limiter.address(connection) == seen
    await client.aclose()


def test_body_over_the_cap_is_refused_by_its_declared_length(client: TestClient) -> None:
    answer = client.post("/v1/search", content=b"x", headers={"Content-Length": str(1 << 30)})
    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"


def test_chunked_body_over_the_cap_is_refused_while_it_streams(client: TestClient) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(64):
            sent += 1 << 20
            yield b" " * (1 << 20)

    answer = client.post("/v1/search", content=endless(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"", "application/json", 422),
        (b"\xff\xfe\x00", "application/json", 400),
        (b"[1, 2]", "application/json", 422),
        (b"null", "application/json", 422),
        (b'{"question": 5, "collection": "a"}', "application/json", 422),
        (b'{"question": "q", "collection": "a", "typo": 1}', "application/json", 422),
        (b"[" * 100_000, "application/json", 400),
        (b"question=q", "application/x-www-form-urlencoded", 422),
    ],
)
def test_malformed_bodies_are_problems_not_crashes(
    client: TestClient, content: bytes, kind: str, status: int
) -> None:
    answer = client.post("/v1/search", content=content, headers={"Content-Type": kind})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_refused_field_is_named_as_the_caller_wrote_it(client: TestClient) -> None:
    answer = client.post("/v1/search", json={"question": "q", "collection": "\x00"}).json()
    assert answer["detail"].startswith("collection: ")
    assert {tuple(e["loc"]) for e in answer["errors"]} == {("body", "collection")}


@pytest.mark.parametrize(
    "path", ["/v1/documents/a%00b", "/v1/collections?cursor=%00", "/v1/collections?cursor=%ff%fe"]
)
def test_nul_and_broken_text_in_an_address_are_refused(client: TestClient, path: str) -> None:
    assert client.get(path).status_code in (400, 404, 422)


@pytest.mark.parametrize("cursor", ["x", "====", "gAAA", "%20", "a" * 300])
def test_made_up_cursors_are_refused(client: TestClient, cursor: str) -> None:
    for door in (
        "collections",
        "documents",
        "queries",
        "entities",
        "admin/keys",
        "admin/audit",
        "admin/jobs",
    ):
        assert client.get(f"/v1/{door}", params={"cursor": cursor}).status_code in (200, 422), door


def test_parameters_that_a_door_lacks_or_has_twice_are_refused(client: TestClient) -> None:
    client.post("/v1/collections", json={"name": "c"})
    for path, named in (
        ("/v1/documents?colection=c", "colection"),
        ("/v1/documents?status=ready&status=failed", "status"),
        ("/v1/admin/tiers?tier=hot", "takes none"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
        assert named in answer.json()["detail"]
    assert client.get("/v1/documents?collection=c&limit=5").status_code == 200
    assert client.get("/v1/models?api-version=2024-06-01").status_code == 200
    assert client.get("/healthz?probe=1").status_code == 200


def test_unknown_door_and_wrong_method_are_problems(client: TestClient) -> None:
    assert client.get("/v1/nothing").json()["code"] == "not_found"
    answer = client.put("/v1/search")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    assert answer.json()["code"] == "method_not_allowed"


def test_bug_in_a_handler_tells_nothing_and_is_logged(
    client: TestClient, app: FastAPI, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise RuntimeError("secret detail")

    app.add_api_route("/v1/broken", broken)
    answer = client.get("/v1/broken")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert "secret detail" in caplog.text
