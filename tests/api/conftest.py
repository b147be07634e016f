from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

from api import keys
from api.app import create_app
from core.db import Database, get_database
from core.redis_client import get_redis
from core.settings import get_settings
from core.types import Role
from core.worker import get_app

OPERATOR_KEY = "operator-key-of-the-tests"
Configure = Callable[..., None]


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Change settings of this test: `configure(api__rate_burst=5)`."""

    def change(**values: object) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"GEO_{name.upper()}", str(value))
        for cached in (get_settings, get_redis, get_app):
            cached.cache_clear()

    return change


@pytest.fixture
def app(sqlite_database: Database, configure: Configure) -> FastAPI:
    configure(
        auth__bootstrap_key=OPERATOR_KEY,
        min_free_bytes=0,
        api__rate_per_minute=1_000_000,
        api__rate_burst=1_000_000,
        api__rate_anonymous_per_minute=1_000_000,
        api__disconnect_grace_s=0.2,
    )
    return create_app()


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    """The operator's client, with the application started."""
    with signed_in(app, OPERATOR_KEY) as running:
        app.state.portal = running.portal
        yield running


def signed_in(app: FastAPI, key: str) -> TestClient:
    """A client that sends this key and runs on the event loop of the started application."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    made = TestClient(app, headers=headers, raise_server_exceptions=False)
    made.portal = getattr(app.state, "portal", None)
    return made


def client_of(
    app: FastAPI, role: str, tenant: str = "default", collections: list[str] | None = None
) -> TestClient:
    """A client with a new key of this role."""
    with get_database().write() as session:
        operator = keys.find_scope(session, OPERATOR_KEY)
        assert operator is not None
        _, key = keys.create(
            session, operator, name=role, role=Role(role), tenant=tenant, collections=collections
        )
    return signed_in(app, key)


@pytest.fixture
def url(sqlite_database: Database, configure: Configure) -> Iterator[str]:
    """The application on a socket, with a pool of two connections and no overflow."""
    sqlite_database.dispose()
    configure(
        auth__bootstrap_key=OPERATOR_KEY,
        min_free_bytes=0,
        database__pool_size=2,
        database__max_overflow=0,
        api__rate_burst=1_000_000,
        api__max_upload_bytes=8 << 20,
        api__disconnect_grace_s=0.3,
    )
    get_database.cache_clear()
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(), log_config=None, proxy_headers=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    wait_until(lambda: server.started)
    yield address
    server.should_exit = True
    thread.join(timeout=10)
    get_database().dispose()


def wait_until(check: Any, within_s: float = 8.0) -> Any:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if seen := check():
            return seen
        time.sleep(0.02)
    raise AssertionError("not in time")
