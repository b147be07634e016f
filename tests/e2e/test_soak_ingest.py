"""Two thousand help pages and a long manual come in while workers are killed: nothing is lost, doubled or
told wrongly. `GEO_TEST_SOAK_PAGES` sets another number of pages, `GEO_TEST_SOAK_FOLDER` a folder of HTML
files to take instead of made-up ones."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.db import Database
from core.settings import Settings
from retrieval.check import IndexCheck, check_index
from retrieval.manifest import IndexFolder
from tests.e2e.help_pages import manual, page
from tests.e2e.stack import Stack, until
from tests.e2e.test_chaos import insisting, running

PAGES = int(os.environ.get("GEO_TEST_SOAK_PAGES", "2000"))
KILL_EVERY_S = float(os.environ.get("GEO_TEST_SOAK_KILL_S", "40"))
FOLDER = Path(given) if (given := os.environ.get("GEO_TEST_SOAK_FOLDER")) else None
MANUAL_PAGES = 300
WITHIN_S = 300 + PAGES * 1.2
STAGES = ["normalize", "disambiguate", "index"]
VICTIMS = ("worker-ingest", "worker-index", "worker-maintenance", "worker-retrieval")

pytestmark = [pytest.mark.soak, pytest.mark.timeout(int(WITHIN_S) + 300)]


class Killer(threading.Thread):
    """Kills a random worker, or one of its children, every so often until told to stop."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(daemon=True)
        self.stack, self.chance = stack, random.Random(40)
        self.killed: list[str] = []
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.wait(KILL_EVERY_S):
            name = self.chance.choice(VICTIMS)
            pid = running(self.stack).get(name)
            if pid is None:
                continue
            try:
                children = psutil.Process(pid).children()
                victim = self.chance.choice(children).pid if children and self.chance.random() < 0.3 else pid
                os.kill(victim, signal.SIGKILL)
            except (psutil.NoSuchProcess, ProcessLookupError):
                continue
            self.killed.append(name if victim == pid else f"{name} child")


class Watch:
    """Looks at what the doors say and refuses what cannot be true."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, Any]] = {}
        self.polls = 0

    def look(self, document: dict[str, Any]) -> None:
        before = self.seen.get(document["id"])
        status, stage, progress = document["status"], document["stage"], document["progress"]
        done, total = progress["done"], progress["total"]
        assert 0 <= done <= total or total == 0, document
        assert status in ("queued", "processing", "ready"), document
        if status == "ready":
            assert stage is None, document
            assert document["live_version"] == 1, document
            assert done == total == document["counts"]["passages"] > 0, document
            assert document["error"] is None, document
        else:
            assert document["live_version"] is None, document
            assert stage in STAGES, document
            assert not total or done < total, document  # never complete before it is ready
        if before is not None:
            assert self._order(before) <= self._order(document), (before, document)
        self.seen[document["id"]] = document

    @staticmethod
    def _order(document: dict[str, Any]) -> tuple[int, int]:
        if document["status"] == "ready":
            return len(STAGES), 0
        started = document["status"] == "processing"
        return (STAGES.index(document["stage"]) if started else -1), document["progress"]["done"]

    def poll(self, stack: Stack, collection: str) -> Counter[str]:
        """Read the whole list; each document may stand in it once."""
        self.polls += 1
        listed: list[str] = []
        cursor: str | None = None
        while True:
            params = {"collection": collection, "limit": 200, **({"cursor": cursor} if cursor else {})}
            found = insisting(lambda p=params: stack.client.get("/v1/documents", params=p)).json()
            for document in found["items"]:
                self.look(document)
                listed.append(document["id"])
            cursor = found["next_cursor"]
            if not cursor:
                break
        assert len(listed) == len(set(listed))
        return Counter(self.seen[i]["status"] for i in listed)


def files() -> Iterator[tuple[str, bytes]]:
    """Files of the given folder, every nth by size when there are more than enough."""
    assert FOLDER is not None
    by_bytes = {path.read_bytes(): path for path in FOLDER.rglob("*.html")}  # the same bytes are one document
    found = sorted(by_bytes.values(), key=lambda path: (path.stat().st_size, path))
    step = max(1, len(found) // PAGES)
    for number, path in enumerate(found[::step][:PAGES]):
        yield f"{number}-{path.name}", path.read_bytes()


def feed(stack: Stack, collection: str, ids: dict[str, str]) -> None:
    body = manual(MANUAL_PAGES)
    answer = insisting(lambda: stack.upload(collection, "manual.pdf", body))
    ids["manual.pdf"] = answer.json()["id"]
    for name, html in (page(number) for number in range(PAGES)) if FOLDER is None else files():
        answer = insisting(lambda n=name, h=html: stack.upload(collection, n, h))
        assert answer.status_code in (200, 202), (
            answer.text
        )  # 200: an answer that got lost was asked for again
        ids[name] = answer.json()["id"]


def ingest_all(stack: Stack, collection: str, watch: Watch) -> dict[str, str]:
    """Upload and watch side by side until everything is ready; returns id by file name."""
    ids: dict[str, str] = {}
    feeder = threading.Thread(target=feed, args=(stack, collection, ids), daemon=True)
    start = time.monotonic()
    feeder.start()
    while True:
        counts = watch.poll(stack, collection)
        if not feeder.is_alive() and counts == {"ready": PAGES + 1}:
            break
        assert time.monotonic() - start < WITHIN_S, counts
        time.sleep(4)
    took = time.monotonic() - start
    print(f"{PAGES} pages and a manual of {MANUAL_PAGES} in {took:.0f} s, {watch.polls} polls")
    return ids


def assert_nothing_lost_or_doubled(stack: Stack, ids: dict[str, str], watch: Watch) -> None:
    assert len(ids) == len(set(ids.values())) == PAGES + 1
    told = sum(watch.seen[i]["counts"]["passages"] for i in ids.values())
    with closing(sqlite3.connect(f"file:{stack.folder}/geo.sqlite3?mode=ro", uri=True)) as db:
        rows = {
            table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("documents", "document_versions", "passages", "passage_vectors")
        }
        texts = db.execute("SELECT count(DISTINCT document_id || ':' || ordinal) FROM passages").fetchone()[0]
        unmentioned = db.execute(
            "SELECT count(*) FROM mentions m LEFT JOIN passages p ON p.id = m.passage_id WHERE p.id IS NULL"
        ).fetchone()[0]
    documents = PAGES + 1
    assert rows == {
        "documents": documents, "document_versions": documents, "passages": told, "passage_vectors": told,
    }  # fmt: skip
    assert (texts, unmentioned) == (told, 0)
    database = Database(f"sqlite:///{stack.folder}/geo.sqlite3")
    found = check_index(database, IndexFolder(Settings(data_dir=stack.folder).index_dir))
    database.dispose()
    assert found == IndexCheck()
    doctor = stack.geo("doctor", "--json", check=False)
    assert doctor.returncode == 0, doctor.stdout


def assert_page_of(stack: Stack, document_id: str, text: str, page: int) -> None:
    """The place of a text in the source is the page it stands on."""
    at = stack.client.get(f"/v1/documents/{document_id}/content").json()["text"].index(text)
    asked = {"start": at, "end": at + len(text)}
    places = stack.client.get(f"/v1/documents/{document_id}/places", params=asked).json()
    assert {p["page"] for p in places["items"]} == {page}


def test_two_thousand_pages_and_a_manual_survive_killed_workers(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "geo", {"GEO_GENERATION__ENGINE_URL": "http://127.0.0.1:9/v1"})
    stack.up()
    killer, watch = Killer(stack), Watch()
    try:
        collection = stack.collection("help")
        killer.start()
        try:
            ids = ingest_all(stack, collection, watch)
        finally:
            killer.stop.set()
            killer.join()
            print(f"killed {dict(Counter(killer.killed))}")
        assert killer.killed or KILL_EVERY_S > PAGES / 10
        until(lambda: stack.status()["state"] == "ready", within_s=120, what="all workers back", every_s=1)
        assert_nothing_lost_or_doubled(stack, ids, watch)
        for number in random.Random(7).sample(range(PAGES), 20) if FOLDER is None else ():
            hits = stack.search(collection, f"主题编号 T{number:04d}", top_k=10)
            assert ids[page(number)[0]] in {h["document_id"] for h in hits}, number
        hits = stack.search(collection, "本页的校验码是 V0123", top_k=10)
        assert any("V0123" in h["text"] for h in hits), hits[:3]
        assert_page_of(stack, hits[0]["document_id"], "V0123", 123)
    finally:
        stack.down()
