"""Shared fixtures: settings on a scratch folder, real Redis, and a migrated database on both backends."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from core.db import Database, get_database
from core.packs import pack_folder
from core.redis_client import get_redis
from core.settings import Settings, get_settings
from core.settings.packs import PackSettings
from core.worker import get_app
from migrations import run as migrations
from tests.support.servers import PostgresServer, RedisServer

SHARED = Path(os.environ.get("GEO_TEST_SHARED", Path(__file__).parents[2] / "shared"))


class SharedCosts(LoadScopeScheduling):
    """Gives each test process whole files, and one of them all that share an engine or a stack."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = file.rpartition("/")[0]
        return folder if folder in ("tests/e2e", "tests/generation") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedCosts:
    return SharedCosts(config, log)


def clear_process_caches() -> None:
    for cached in (get_settings, get_database, get_redis, get_app):
        cached.cache_clear()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture
def settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer
) -> Iterator[Settings]:
    """Settings of this test alone: scratch data folder, the session's Redis (flushed)."""
    for name in [n for n in os.environ if n.startswith("GEO_")]:
        if not name.startswith("GEO_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEO_DATA_DIR", str(tmp_path / "geo"))
    monkeypatch.setenv("GEO_REDIS__URL", redis_server.url)
    clear_process_caches()
    get_redis().flushdb()
    yield get_settings()
    clear_process_caches()


@pytest.fixture
def own_redis(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[RedisServer]:
    """A broker of this test alone, which it may kill."""
    server = RedisServer()
    server.start()
    monkeypatch.setenv("GEO_REDIS__URL", server.url)
    for cached in (get_settings, get_redis, get_app):
        cached.cache_clear()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "geo.sqlite3"
    db = Database(f"sqlite:///{path}")
    migrations.upgrade(db)
    with db.engine.connect() as connection:
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    db.dispose()
    return path


@pytest.fixture(scope="session")
def _postgres_template(postgres_server: PostgresServer) -> str:
    name = postgres_server.new_database()
    db = Database(postgres_server.url_of(name))
    migrations.upgrade(db)
    db.dispose()
    return name


@pytest.fixture
def sqlite_database(settings: Settings, _sqlite_template: Path) -> Iterator[Database]:
    """The process's database (`get_database()`) on SQLite; its outbox rings the real broker."""
    settings.root.mkdir(parents=True, exist_ok=True)
    shutil.copy(_sqlite_template, settings.root / "geo.sqlite3")
    db = get_database()
    yield db
    db.dispose()


@pytest.fixture
def postgres_database(
    settings: Settings,
    postgres_server: PostgresServer,
    _postgres_template: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Database]:
    """The same on PostgreSQL."""
    name = postgres_server.new_database(_postgres_template)
    monkeypatch.setenv("GEO_DATABASE__URL", postgres_server.url_of(name))
    get_settings.cache_clear()
    get_database.cache_clear()
    db = get_database()
    yield db
    db.dispose()
    postgres_server.drop(name)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    """Each test that asks for it runs on SQLite and on PostgreSQL."""
    return request.getfixturevalue(f"{request.param}_database")


@pytest.fixture(scope="session")
def encoder_pack() -> Path:
    """The folder of the built-in encoder."""
    return _fetched(PackSettings().encoder)


@pytest.fixture(scope="session")
def generator_pack() -> Path:
    """The folder of the built-in generator."""
    return _fetched(PackSettings().generator)


def _fetched(name: str) -> Path:
    """`make test` fetches the packs: without them a run would have tested nothing, so this is no skip."""
    folder = pack_folder(name)
    if not (folder / "config.json").is_file():
        pytest.fail(f"no pack in {folder}; run: geo models fetch")
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Public evaluation sets and case files laid beside the checkout; tests that need them skip without."""
    if not SHARED.is_dir():
        pytest.skip("no shared evaluation data beside this checkout")
    return SHARED
