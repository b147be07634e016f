"""The embedded stack as a person runs it (`geo up`), on a scratch data folder, and a small client for it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from generation.values import join_sentences

ROOT = Path(__file__).parents[2]
KEY = "e2e-operator-key-0123456789"
TERMINAL = {"answered", "refused", "incomplete", "failed", "cancelled"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(check: Callable[[], Any], *, within_s: float, what: str, every_s: float = 0.1) -> Any:
    """The first truthy value of `check`, or a failure that says what was waited for and what was seen."""
    deadline, seen = time.monotonic() + within_s, None
    while time.monotonic() < deadline:
        seen = check()
        if seen:
            return seen
        time.sleep(every_s)
    raise AssertionError(f"not within {within_s} s: {what}; last seen {seen!r}")


@dataclass
class Stack:
    folder: Path
    extra_env: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = self.client_for(KEY)

    def client_for(self, key: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {key}"}, timeout=60)

    @property
    def env(self) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("GEO_") and k != "PYTHONPATH"}
        return {
            **clean,
            "PYTHONPATH": str(ROOT),
            "GEO_DATA_DIR": str(self.folder),
            "GEO_API__PORT": str(self.port),
            "GEO_AUTH__BOOTSTRAP_KEY": KEY,
            "GEO_API__RATE_PER_MINUTE": "1000000",
            "GEO_API__RATE_BURST": "1000000",
            "GEO_WORKER__LEASE_TTL_S": "4",
            "GEO_WORKER__REAP_INTERVAL_S": "1",
            "GEO_WORKER__RESEND_BASE_S": "2",
            "GEO_GENERATION__KV_CACHE_BYTES": str(256 << 20),
            "GEO_GENERATION__ADMIT_KV_SHARE": "100",  # so few blocks would refuse what the tests ask at once
            "GEO_API__DISCONNECT_GRACE_S": "2",
            **self.extra_env,
        }

    def geo(self, *args: str, check: bool = True, timeout: float = 180) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "api.cli", *args],
            env=self.env, cwd=self.folder.parent, capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(
                f"geo {' '.join(args)} exited {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done

    def up(self) -> None:
        self.geo("up", "--detach")

    def down(self) -> None:
        self.geo("down", check=False)

    def status(self) -> dict[str, Any]:
        return json.loads(self.geo("status", "--json").stdout)

    def processes(self) -> dict[str, int]:
        """Process id by name (`api`, `redis`, `worker-ingest` …)."""
        return {p["name"]: p["pid"] for p in self.status()["processes"]}

    def kill(self, name: str) -> int:
        pid = self.processes()[name]
        os.kill(pid, signal.SIGKILL)
        return pid

    # -- doors --

    def collection(self, name: str) -> str:
        answer = self.client.post("/v1/collections", json={"name": name})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def upload(self, collection: str, name: str, content: bytes | str, **form: str) -> httpx.Response:
        body = content.encode() if isinstance(content, str) else content
        return self.client.post(
            "/v1/documents", files={"file": (name, body)}, data={"collection": collection, **form}
        )

    def document(self, document_id: str) -> dict[str, Any]:
        answer = self.client.get(f"/v1/documents/{document_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def settled(self, document_id: str, within_s: float = 60) -> dict[str, Any]:
        def done() -> dict[str, Any] | None:
            seen = self.document(document_id)
            return seen if seen["status"] in ("ready", "failed") else None

        return until(done, within_s=within_s, what=f"{document_id} ready or failed")

    def ready(self, collection: str, name: str, content: bytes | str, within_s: float = 60) -> dict[str, Any]:
        answer = self.upload(collection, name, content)
        assert answer.status_code in (200, 202), answer.text
        document = self.settled(answer.json()["id"], within_s)
        assert document["status"] == "ready", document
        return document

    def ask(self, collection: str, question: str, within_s: float = 90, **body: Any) -> dict[str, Any]:
        answer = self.client.post(
            "/v1/queries", json={"question": question, "collection": collection, **body}
        )
        assert answer.status_code == 202, answer.text
        return self.answered(answer.json()["id"], within_s)

    def answered(self, query_id: str, within_s: float = 90) -> dict[str, Any]:
        def done() -> dict[str, Any] | None:
            seen = self.client.get(f"/v1/queries/{query_id}").json()
            return seen if seen["status"] in TERMINAL else None

        return until(done, within_s=within_s, what=f"{query_id} terminal")

    def search(self, collection: str, question: str, **body: Any) -> list[dict[str, Any]]:
        answer = self.client.post("/v1/search", json={"question": question, "collection": collection, **body})
        assert answer.status_code == 200, answer.text
        return answer.json()["hits"]


@dataclass(frozen=True)
class Event:
    id: str
    event: str
    payload: dict[str, Any]


@contextmanager
def events(stack: Stack, query_id: str, after: str | None = None) -> Iterator[Iterator[Event]]:
    """The query's event stream, without keep-alives."""
    from httpx_sse import connect_sse

    headers = {"Last-Event-ID": after} if after else {}
    with connect_sse(stack.client, "GET", f"/v1/queries/{query_id}/events", headers=headers) as source:
        assert source.response.status_code == 200

        def read() -> Iterator[Event]:
            for sse in source.iter_sse():
                if not sse.data:  # a keep-alive, which httpx-sse takes for an event once an id is known
                    continue
                yield Event(sse.id, sse.event, json.loads(sse.data))
                if sse.event == "done":
                    return

        yield read()


def joined_claims(seen: list[Event]) -> str:
    """The text a client shows at the end: the last version of each claim since the last restart, in order."""
    claims: dict[int, str] = {}
    for event in seen:
        if event.event == "restart":
            claims.clear()
        if event.event == "claim":
            claims[event.payload["ordinal"]] = event.payload["text"]
    return join_sentences(claims[n] for n in sorted(claims))
