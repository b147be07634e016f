"""The product's side of `geo bench generate`: API, queue and worker on a scratch folder, asked over HTTP."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from core.errors import GeoError
from core.ids import new_id
from core.models import (
    ApiKeyRow,
    DocumentRow,
    DocumentVersionRow,
    EvidenceRow,
    PassageRow,
    QueryRow,
)
from core.redis_client import get_redis
from core.types import AnswerStatus, CitationMode, Role
from generation.policy import CitationPolicy
from generation.service import ENGINE_KEY
from retrieval.scratch import ScratchStack, scratch_stack

START_S = 240.0
_STOP_S = 20.0
_SENTENCES = 20  # as many as the grammar allows, so that the length ends the answer


@dataclass(frozen=True, slots=True)
class Lap:
    """One answer over HTTP: seconds to its first text and to its end, and its tokens."""

    first_s: float
    total_s: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Case:
    """A question that fixes its answer's length, with its passages."""

    question: str
    passages: tuple[str, ...]
    length: int


@dataclass(slots=True)
class Door:
    """The running product. Cases are stored with their evidence; `ask` answers one from it."""

    stack: ScratchStack
    url: str
    key: str
    pids: dict[str, int] = field(init=False, default_factory=dict[str, int])
    """Process ids of `api` and `worker`."""
    document_id: str = field(init=False, default="")
    _ordinals: Iterator[int] = field(init=False, default_factory=count)

    def store(self, cases: Sequence[Case]) -> list[str]:
        """Queries that ended, each with its evidence, as retrieval leaves them; returns their ids."""
        with self.stack.db.write() as session:
            if not self.document_id:
                self.document_id = _add_document(session, self.stack)
            return [_add_query(session, self.stack, self.document_id, case, self._ordinals) for case in cases]

    def client(self) -> httpx.Client:
        """A client for one asking thread."""
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=httpx.Timeout(300.0))

    def ask(self, client: httpx.Client, query_id: str) -> Lap:
        """Answer a stored query again, from its stored evidence, and follow it to the last token."""
        begun, first = time.perf_counter(), 0.0
        path, headers = f"/v1/queries/{query_id}/replay?evidence=stored", {"Accept": "text/event-stream"}
        with client.stream("POST", path, headers=headers) as response:
            if response.status_code != 200:
                raise GeoError(f"{path}: {response.read().decode()}")
            for name, payload in _events(response):
                if not first and name in ("delta", "claim"):
                    first = time.perf_counter() - begun
                if name == "done":
                    total = time.perf_counter() - begun
                    return Lap(first or total, total, int(payload["usage"]["completion_tokens"]))
        raise GeoError(f"the stream of {path} ended before its answer")


@contextmanager
def open_door(worker_module: str = "generation.measure_generate_worker") -> Generator[Door]:
    """Start Redis, the API and a measured generation worker on a scratch folder.

    Args:
        worker_module: run as a program for the worker.
    """
    with scratch_stack() as stack, ExitStack() as children:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        door = Door(stack, f"http://127.0.0.1:{port}", "geo_" + secrets.token_urlsafe(24))
        with stack.db.write() as session:
            session.add(
                ApiKeyRow(
                    id=new_id("key"), tenant_id=stack.scope.tenant_id, name="benchmark",
                    role=Role.OPERATOR.value, key_hash=hashlib.sha256(door.key.encode()).hexdigest(),
                )
            )  # fmt: skip
        changes = {
            "GEO_API__PORT": str(port),
            "GEO_API__RATE_PER_MINUTE": "1000000",
            "GEO_API__RATE_BURST": "1000000",
            "GEO_LOG__LEVEL": "WARNING",
            "GEO_GENERATION__DEADLINE_S": "1200",  # lengths end the answers, however slow the machine is
            # Nothing runs here while the other engine is asked.
            "GEO_GENERATION__CANARY_IDLE_S": "3600",
            "GEO_GENERATION__PREWARM_OPENINGS": "0",
        }
        logs = stack.folder / "logs"
        logs.mkdir(exist_ok=True)
        python = sys.executable
        api = children.enter_context(child([python, "-m", "api.cli", "serve"], changes, logs / "api.log"))
        worker = [python, "-m", worker_module]
        process = children.enter_context(child(worker, changes, logs / "worker.log"))
        door.pids |= {"api": api.pid, "worker": process.pid}
        _await_engine(process, logs / "worker.log")
        await_http(door.url + "/healthz", api, logs / "api.log")
        yield door


@contextmanager
def child(
    command: Sequence[str], changes: Mapping[str, str], log: Path
) -> Generator[subprocess.Popen[bytes]]:
    """A process of the comparison; ended with the block."""
    environment = {**os.environ, **changes, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.pop("OMP_NUM_THREADS", None)  # the engine places its own threads
    with log.open("ab") as sink:
        process = subprocess.Popen(command, env=environment, stdout=sink, stderr=sink)  # noqa: S603 - own
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def await_http(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the process answers there.

    Raises:
        GeoError: it ended or stayed silent; the message has the end of its log.
    """
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(url, timeout=5).status_code < 500:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise GeoError(f"nothing answers at {url}: {log.read_text()[-2000:]}")


def _await_engine(process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        live = json.loads(str(get_redis().get(ENGINE_KEY) or "{}"))
        if live.get("state") == "ready":
            return
        if live.get("state") == "failed":
            raise GeoError(f"the engine did not start: {live.get('detail')}")
        time.sleep(0.2)
    raise GeoError(f"the generation worker did not start: {log.read_text()[-2000:]}")


def _events(response: httpx.Response) -> Generator[tuple[str, Mapping[str, Any]]]:
    name = ""
    for line in response.iter_lines():
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:") and name:
            yield name, json.loads(line[5:])


def _add_document(session: Any, stack: ScratchStack) -> str:
    document_id = new_id("doc")
    session.add(
        DocumentRow(
            id=document_id, tenant_id=stack.scope.tenant_id, collection_id=stack.collection_id,
            name="houses.txt", content_hash=document_id, status="ready", live_version=1,
        )
    )  # fmt: skip
    session.flush()
    session.add(
        DocumentVersionRow(
            document_id=document_id, version=1, blob_hash="0" * 64, size_bytes=1, file_name="houses.txt"
        )
    )
    session.flush()
    return document_id


def _add_query(
    session: Any, stack: ScratchStack, document_id: str, case: Case, ordinals: Iterator[int]
) -> str:
    policy = CitationPolicy(
        mode=CitationMode.FREE, max_sentences=_SENTENCES, refusal_threshold=0.0, max_answer_tokens=case.length
    )
    query_id = new_id("qry")
    session.add(
        QueryRow(
            id=query_id, tenant_id=stack.scope.tenant_id, principal="benchmark",
            collection_ids=[stack.collection_id], question=case.question,
            policy=policy.model_dump(mode="json"), status=AnswerStatus.ANSWERED.value,
        )
    )  # fmt: skip
    session.flush()
    for marker, text in enumerate(case.passages, 1):
        row = PassageRow(
            tenant_id=stack.scope.tenant_id, collection_id=stack.collection_id, document_id=document_id,
            version=1, ordinal=next(ordinals), start=0, end=len(text), heading_path=[], lang="en", text=text,
        )  # fmt: skip
        session.add(row)
        session.flush()
        session.add(
            EvidenceRow(
                query_id=query_id, marker=marker, passage_id=row.id, document_id=document_id, version=1,
                score=1.0 - marker / 100,
            )
        )  # fmt: skip
    return query_id
