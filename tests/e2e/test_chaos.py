"""Every process is killed at random moments while documents come and go and questions are asked."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from api.cli.embedded.state import read_state
from core.settings import Settings
from tests.e2e.stack import TERMINAL, Stack, until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

SEED = int(os.environ.get("GEO_TEST_CHAOS_SEED", "20"))
KILLING_S = 120
DOCUMENTS, DELETED = 60, 20


def insisting(call: Callable[[], httpx.Response], within_s: float = 180) -> httpx.Response:
    """Ask until something answers, as a client does whose server comes back. A 5xx counts as away only
    while it says so (503); anything else is a fault of ours."""

    def attempt() -> httpx.Response | None:
        try:
            answer = call()
        except httpx.TransportError:
            return None
        assert answer.status_code < 500 or answer.status_code in (503, 504), answer.text
        return None if answer.status_code >= 500 else answer

    return until(attempt, within_s=within_s, what="an answer of the API")


WORDS = (
    "anchor", "birch", "copper", "drift", "ember", "fjord", "gravel", "harbour", "island", "juniper",
    "lantern", "meadow", "north", "oak", "pier", "quarry", "rope", "slate", "timber", "umber", "valley",
    "willow", "yarrow", "zinc", "apple", "bridge", "clover", "dune", "elder", "fern", "granite",
)  # fmt: skip


def text_of(number: int) -> str:
    """Unlike every other, so that none is taken for a near copy."""
    told = random.Random(number).sample(WORDS, 18)
    return (
        f"# Beacon K{number:03d}\n\nBeacon K{number:03d} flashes {number + 2} times a minute. "
        f"Its log speaks of {', '.join(told)}.\n"
    )


def running(stack: Stack) -> dict[str, int]:
    """Process ids as the supervisor last wrote them down; `geo status` would ask parts that are dead."""
    state = read_state(Settings(data_dir=stack.folder))
    return {p["name"]: p["pid"] for p in state.get("processes", []) if p["pid"]}


class Killer(threading.Thread):
    """Kills a random process of the stack every few seconds; the supervisor is left alone."""

    def __init__(self, stack: Stack, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.stack, self.chance = stack, chance
        self.killed: list[str] = []
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.wait(self.chance.uniform(2, 8)):
            processes = running(self.stack)
            if not processes:
                continue
            name = self.chance.choice(sorted(processes))
            victims = [processes[name]]
            if self.chance.random() < 0.3:  # a pool child or the beat dies alone
                children = [c.pid for c in _children(processes[name])]
                victims = [self.chance.choice(children)] if children else victims
            try:
                os.kill(victims[0], signal.SIGKILL)
            except ProcessLookupError:
                continue
            self.killed.append(name if victims[0] == processes[name] else f"{name} child")


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []


def processes_of(folder: Path) -> list[str]:
    """Command lines of everything that still runs for this data folder."""
    left = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        environment, words = process.info["environ"] or {}, " ".join(process.info["cmdline"] or [])
        if environment.get("GEO_DATA_DIR") == str(folder) or str(folder) in words:
            left.append(words)
    return left


def counts(stack: Stack) -> tuple[int, int, int]:
    """Live passages, live passages with a vector, vectors in all."""
    with closing(sqlite3.connect(f"file:{stack.folder}/geo.sqlite3?mode=ro", uri=True)) as db:
        live = "FROM passages p JOIN documents d ON d.id = p.document_id AND d.live_version = p.version"
        passages = db.execute(f"SELECT count(*) {live}").fetchone()[0]
        with_vector = db.execute(
            f"SELECT count(*) {live} JOIN passage_vectors v ON v.passage_id = p.id"
        ).fetchone()[0]
        return passages, with_vector, db.execute("SELECT count(*) FROM passage_vectors").fetchone()[0]


def work(
    stack: Stack, collection: str, killer: Killer, chance: random.Random
) -> tuple[list[str], set[str], list[str]]:
    """Upload, delete and ask for as long as the killing lasts."""
    documents: list[str] = []
    deleted: set[str] = set()
    queries: list[str] = []
    end = time.monotonic() + KILLING_S
    while time.monotonic() < end or len(documents) < DOCUMENTS:
        if time.monotonic() > end:  # what is left to do is done in peace
            killer.stop.set()
        if len(documents) < DOCUMENTS:
            name, text = f"k{len(documents)}.md", text_of(len(documents))
            documents.append(insisting(lambda n=name, t=text: stack.upload(collection, n, t)).json()["id"])
        if len(deleted) < DELETED and len(documents) > 5 and chance.random() < 0.5:
            gone = chance.choice(sorted(set(documents) - deleted))
            insisting(lambda i=gone: stack.client.delete(f"/v1/documents/{i}"))
            deleted.add(gone)
        body = {
            "question": f"How often does beacon K{chance.randrange(len(documents)):03d} flash?",
            "collection": collection,
            "policy": {"mode": "extract"},
        }
        queries.append(insisting(lambda b=body: stack.client.post("/v1/queries", json=b)).json()["id"])
        time.sleep(chance.uniform(0, KILLING_S / DOCUMENTS))
    killer.stop.set()
    killer.join()
    return documents, deleted, queries


def shake(stack: Stack) -> None:
    """Kill and work side by side, then look at what is left."""
    chance = random.Random(SEED)
    collection = stack.collection("chaos")
    killer = Killer(stack, random.Random(SEED + 1))
    killer.start()
    documents, deleted, queries = work(stack, collection, killer, chance)
    assert len(killer.killed) > 10
    print(f"seed {SEED}: killed {killer.killed}")

    def settled(document_id: str) -> dict[str, Any] | None:
        answer = insisting(lambda: stack.client.get(f"/v1/documents/{document_id}"))
        if answer.status_code == 404:
            return {"status": "gone"}
        return answer.json() if answer.json()["status"] in ("ready", "failed") else None

    states = {
        d: until(lambda d=d: settled(d), within_s=240, what=f"{d} settled", every_s=0.5) for d in documents
    }
    assert {d for d, s in states.items() if s["status"] == "gone"} == deleted
    failed = [s for s in states.values() if s["status"] == "failed"]
    assert all(s["error"]["code"] == "worker_died" for s in failed), failed
    for query in queries:
        until(
            lambda q=query: insisting(lambda: stack.client.get(f"/v1/queries/{q}")).json()["status"]
            in TERMINAL,
            within_s=120, what=f"{query} ended",
        )  # fmt: skip
    until(lambda: stack.status()["state"] == "ready", within_s=120, what="all processes back", every_s=1)
    passages, with_vector, vectors = counts(stack)
    assert passages == with_vector == vectors
    for number, document in enumerate(documents):
        hits = stack.search(collection, f"beacon K{number:03d}", top_k=10)
        found = document in {h["document_id"] for h in hits}
        assert found == (states[document]["status"] == "ready"), (number, states[document])
    doctor = stack.geo("doctor", "--json", check=False)
    assert doctor.returncode == 0, doctor.stdout


def test_killing_everything_at_random_loses_nothing(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "geo", {"GEO_GENERATION__ENGINE_URL": "http://127.0.0.1:9/v1"})
    stack.client.timeout = httpx.Timeout(20)
    stack.up()
    try:
        shake(stack)
    finally:
        stack.down()
    until(lambda: not processes_of(stack.folder), within_s=15, what="every process ended")
