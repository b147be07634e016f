"""Writers killed at every step, and readers in other processes and threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from core.db import Database, get_database
from core.models import BuildRow
from core.settings import Settings
from core.types import Scope, Tier
from retrieval import index_repository as repository
from retrieval.builds import COMPACT, FULL
from retrieval.manifest import PARTS, IndexFolder
from retrieval.rebuild import Builder, BuildPlan
from retrieval.rebuild import run as rebuild
from retrieval.writer import index_writer
from tests.retrieval.indexing import DIMENSION, SPACE, Corpus
from tests.retrieval.killed_writer import FINISHED, run_until_killed

ALL = Scope("t1", None, "test")
ROOT = Path(__file__).parents[2]

FOLLOWER = """
import json, sys, time
import numpy as np
from core.settings import get_settings
from core.types import Scope, Tier
from retrieval.manifest import PARTS, IndexFolder
from retrieval.rebuild import Builder, BuildPlan
from retrieval.rebuild import run as rebuild
from retrieval.tiers import IndexReader

reader = IndexReader(IndexFolder(get_settings().index_dir))
scope = Scope("t1", None, "test")
query = np.ones(16, np.float32) / 4
seen = None
print("started", flush=True)
while True:
    index = reader.snapshot()
    state = (
        len(index.dense.search(query, 1000, scope)),
        len(index.lexical.search("lantern", 1000, scope)),
    )
    if state != seen:
        seen = state
        print(json.dumps([time.time(), *state]), flush=True)
    time.sleep(0.02)
"""


@pytest.fixture
def corpus(sqlite_database: Database, settings: Settings) -> Corpus:
    return Corpus(sqlite_database, IndexFolder(settings.index_dir))


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def assert_pairs_are_right(corpus: Corpus) -> set[int]:
    """Every hit carries the score of its own vector; returns the ids that are served."""
    index = corpus.reader().snapshot()
    assert not index.dense.refused
    query = corpus.query()
    hits = index.dense.search(query, 1000, ALL)
    for passage_id, score in hits:
        assert score == pytest.approx(float(corpus.vectors[passage_id] @ query), abs=1e-4)
    return {passage_id for passage_id, _ in hits}


def publish_pending() -> None:
    with index_writer(get_database(), SPACE) as writer:
        writer.catch_up()


@pytest.mark.parametrize("tier", list(Tier))
def test_a_writer_killed_at_any_step_leaves_the_old_or_the_new_state(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, tier: Tier
) -> None:
    """The pending log adds a document, moves one into the tier and deletes one from it."""
    from retrieval import lease

    monkeypatch.setattr(lease, "TTL_S", 0.3)
    documents = []
    for n in range(9):  # the next publish also merges
        documents.append(corpus.document(2, collection=f"c{n % 2}"))
        corpus.index(documents[-1])
        corpus.place(documents[-1], tier.value)
    step, finished = 2 * list(Tier).index(tier) - 4, False  # every sixth step, each tier others
    while not finished:
        step += 6
        assert step < 120
        old = assert_pairs_are_right(corpus)
        gone, moved = documents.pop(0), documents[0]
        document = corpus.document(2)
        added, dropped = pending(corpus, document, gone, moved, tier)
        finished = run_until_killed(publish_pending, step) == FINISHED
        assert assert_pairs_are_right(corpus) in (old, (old | added) - dropped)
        with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
            served = writer.catch_up()
        assert not served.refused
        assert assert_pairs_are_right(corpus) == (old | added) - dropped
        lexical = corpus.reader().snapshot().lexical
        assert {i for i, _ in lexical.search(document, 9, ALL)} == added
        assert not lexical.search(gone, 9, ALL)
        documents.append(document)
    assert step > 12


def pending(corpus: Corpus, new: str, gone: str, moved: str, tier: Tier) -> tuple[set[int], set[int]]:
    """Log entries that no file holds yet; returns what they add and what they delete."""
    there = Tier.WARM if tier is Tier.HOT else Tier.HOT
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer, corpus.db.write() as session:
        added = repository.version_passages(session, new, 1)
        ids = repository.version_passages(session, moved, 1)
        dropped = repository.document_passages(session, gone)
        assert added
        assert ids
        writer.append(session, "add", new, 1, added)
        writer.move(session, new, 1, added, tier)
        writer.move(session, moved, 1, ids, there)
        writer.append(session, "delete", gone, 1, sorted(dropped))
    return set(added), dropped


def test_another_process_sees_a_new_generation_within_a_second(corpus: Corpus) -> None:
    corpus.index(corpus.document(2))
    process = subprocess.Popen(
        [sys.executable, "-c", FOLLOWER], env=environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "started"
        assert _seen(process)[1:] == [2, 2]
        document = corpus.document(3)
        for change, count in ((corpus.index, 5), (corpus.unindex, 2)):
            change(document)
            published = time.time()
            while (state := _seen(process))[1:] != [count, count]:
                pass
            assert state[0] - published < 1
    finally:
        process.kill()
        process.wait()


def _seen(process: subprocess.Popen[str]) -> list[float]:
    import json

    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def test_four_readers_and_one_writer_agree_for_seconds(corpus: Corpus, record_property) -> None:
    """The writer adds, deletes, moves and rebuilds; `GEO_TEST_SOAK_S=60` makes it a soak."""
    for n in range(6):
        corpus.index(corpus.document(4, collection=f"c{n % 2}"))
    reader = corpus.reader()
    vectors, owner = dict(corpus.vectors), dict(corpus.owner)  # an id is never given twice: they stay true
    stop, faults, asked, seen = threading.Event(), [], [], set()

    def ask(seed: int) -> None:
        rng = np.random.default_rng(seed)
        scope = Scope("t1", (f"c{seed % 2}",), "test")
        while not stop.is_set():
            query = rng.standard_normal(DIMENSION).astype(np.float32)
            query /= np.linalg.norm(query)
            try:
                index = reader.snapshot()
                gone = set(deleted)
                hits = index.dense.search(query, 10, scope)
                words = index.lexical.search("lantern", 10, scope)
            except Exception as error:  # noqa: BLE001 - whatever a reader meets is the finding
                faults.append(repr(error))
                return
            asked.append(1)
            seen.add(index.generation)
            vectors.update(corpus.vectors)
            owner.update(corpus.owner)
            if index.dense.refused or not hits or not words:
                faults.append((index.dense.refused, len(hits), len(words)))
            for passage_id, score in hits:
                if abs(float(vectors[passage_id] @ query) - score) > 1e-3:
                    faults.append((passage_id, score))
            shown = {i for i, _ in hits} | {i for i, _ in words}
            if any(owner[i] != ("t1", scope.collection_ids[0]) for i in shown):
                faults.append(("foreign", shown))
            if index.generation >= max(gone_at, default=0) and shown & gone:
                faults.append(("deleted", shown & gone))

    deleted: list[int] = []
    gone_at: list[int] = []
    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + float(os.environ.get("GEO_TEST_SOAK_S", "4"))
    documents: list[str] = []
    steps = 0
    while time.monotonic() < end and not faults:
        steps += 1
        documents.append(corpus.document(3, collection=f"c{steps % 2}"))
        corpus.index(documents[-1])
        corpus.place(documents[-1], list(Tier)[steps % 3].value)
        if len(documents) > 3:
            leaving = documents.pop(0)
            ids = [i for i in corpus.vectors if corpus.document_of(i) == leaving]
            corpus.unindex(leaving)
            gone_at.append(corpus.folder.current_generation() or 0)
            deleted.extend(ids)
        if steps % 4 == 0:
            part = PARTS[steps // 4 % len(PARTS)]
            mode = COMPACT if part != "lexical" and steps % 8 == 0 else FULL
            rebuild(
                Builder(corpus.db, corpus.folder, BuildPlan("bld_soak", (part,), mode, SPACE), no_encoder)
            )
    stop.set()
    for thread in threads:
        thread.join()
    for name, count in (("searches", len(asked)), ("generations", len(seen)), ("changes", steps)):
        record_property(name, count)
    assert faults == []
    assert len(asked) > 20
    assert len(seen) > 3
    assert_pairs_are_right(corpus)


def no_encoder(texts):
    raise AssertionError("every passage has a vector")


@pytest.mark.parametrize("tier", list(Tier))
@pytest.mark.parametrize("what", ["segments/*/page*", "segments/*/ids*", "dead/*"])
def test_a_file_cut_by_half_refuses_that_tier_alone(corpus: Corpus, tier: Tier, what: str) -> None:
    documents = [corpus.document(2) for _ in range(3)]
    for document in documents:
        corpus.index(document)
        corpus.place(document, tier.value)
    corpus.unindex(documents[0])
    other = corpus.document(3)
    corpus.index(other)
    if tier is Tier.HOT:
        corpus.place(other, "cold")
    files = sorted((corpus.folder.root / tier).glob(what))
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    told: list[str] = []
    reader = corpus.reader()
    reader._on_damage = lambda part, reason: told.append(part)
    index = reader.snapshot()
    assert told == [tier.value]
    assert len(index.dense.search(corpus.query(), 9, ALL)) == 3
    assert len(index.lexical.search("lantern", 9, ALL)) == 7


@pytest.mark.parametrize("what", ["CURRENT", "manifests/*"])
def test_a_generation_that_cannot_be_read_is_told_and_work_goes_on(corpus: Corpus, what: str) -> None:
    corpus.index(corpus.document(2))
    for file in corpus.folder.root.glob(what):
        file.write_bytes(file.read_bytes()[:9])
    told: list[str] = []
    reader = corpus.reader()
    reader._on_damage = lambda part, reason: told.append(part)
    assert reader.snapshot().dense.refused.keys() == set(Tier)
    assert told == ["all"]
    corpus.index(corpus.document(3))
    served = corpus.folder.read_manifest(corpus.folder.current_generation() or 0)
    if what == "CURRENT":  # the database names the generation
        assert assert_pairs_are_right(corpus) == set(corpus.vectors)
    else:
        assert served.refused.keys() == {*Tier, "lexical"}
        with corpus.db.read() as session:
            assert session.query(BuildRow).one().tier == "all"
