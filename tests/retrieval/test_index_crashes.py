"""Writers killed at every step, and readers in other processes and threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from core.db import Database
from core.settings import Settings
from core.types import Scope
from retrieval import index_repository as repository
from retrieval.manifest import IndexFolder
from retrieval.rebuild import repair
from retrieval.writer import index_writer
from tests.retrieval.indexing import DIMENSION, SPACE, Corpus

ALL = Scope("t1", None, "test")
ROOT = Path(__file__).parents[2]

# Publishes the pending log and kills itself at the n-th durable step (sync or rename).
KILLED_WRITER = """
import os, pathlib, signal, sys
from core.db import get_database
from retrieval import lease
from retrieval.writer import index_writer
from tests.retrieval.indexing import SPACE

lease.TTL_S = 0.3
left = [int(sys.argv[1])]

def counted(function):
    def step(*args, **kwargs):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return step

os.fsync = counted(os.fsync)
pathlib.Path.replace = counted(pathlib.Path.replace)
pathlib.Path.rename = counted(pathlib.Path.rename)
with index_writer(get_database(), SPACE) as writer:
    writer.catch_up()
print("finished")
"""

FOLLOWER = """
import json, sys, time
import numpy as np
from core.settings import get_settings
from core.types import Scope
from retrieval.manifest import IndexFolder
from retrieval.tiers import IndexReader

reader = IndexReader(IndexFolder(get_settings().index_dir))
scope = Scope("t1", None, "test")
query = np.ones(16, np.float32) / 4
seen = None
print("started", flush=True)
while True:
    index = reader.snapshot()
    state = (
        len(index.hot.search(query, 1000, scope)),
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
    hot = corpus.reader().snapshot().hot
    query = corpus.query()
    hits = hot.search(query, 1000, ALL)
    for passage_id, score in hits:
        assert score == pytest.approx(float(corpus.vectors[passage_id] @ query), abs=1e-4)
    return {passage_id for passage_id, _ in hits}


def test_a_writer_killed_at_any_step_leaves_the_old_or_the_new_state(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval import lease

    monkeypatch.setattr(lease, "TTL_S", 0.3)
    for n in range(9):  # the next publish also merges
        corpus.index(corpus.document(2, collection=f"c{n % 2}"))
    old = assert_pairs_are_right(corpus)
    step, finished = 0, False
    while not finished:
        step += 2
        assert step < 60
        document = corpus.document(2)
        with corpus.db.read() as session:
            added = repository.version_passages(session, document, 1)
        assert added
        with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer, corpus.db.write() as session:
            writer.append(session, "add", document, 1, added)
        done = subprocess.run(
            [sys.executable, "-c", KILLED_WRITER, str(step)],
            env=environment(), capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        finished = "finished" in done.stdout
        assert finished or done.returncode == -signal.SIGKILL, done.stderr
        served = assert_pairs_are_right(corpus)
        assert served in (old, old | set(added))
        with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
            writer.catch_up()
        old = assert_pairs_are_right(corpus)
        assert set(added) <= old
        lexical = corpus.reader().snapshot().lexical.search(document, 9, ALL)
        assert {i for i, _ in lexical} == set(added)
    assert step > 6
    assert old == set(corpus.vectors)


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


def test_four_readers_and_one_writer_agree_for_seconds(corpus: Corpus) -> None:
    for _ in range(5):
        corpus.index(corpus.document(4))
    reader = corpus.reader()
    vectors = dict(corpus.vectors)  # ids are never given twice, so an old entry stays true
    stop, faults, asked = threading.Event(), [], []

    def ask(seed: int) -> None:
        rng = np.random.default_rng(seed)
        while not stop.is_set():
            query = rng.standard_normal(DIMENSION).astype(np.float32)
            query /= np.linalg.norm(query)
            try:
                index = reader.snapshot()
                hits = index.hot.search(query, 10, ALL)
                index.lexical.search("lantern", 10, ALL)
            except Exception as error:  # noqa: BLE001 - whatever a reader meets is the finding
                faults.append(repr(error))
                return
            asked.append(1)
            vectors.update(corpus.vectors)
            for passage_id, score in hits:
                if abs(float(vectors[passage_id] @ query) - score) > 1e-3:
                    faults.append((passage_id, score))

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + float(os.environ.get("GEO_TEST_SOAK_S", "4"))
    documents: list[str] = []
    while time.monotonic() < end:
        documents.append(corpus.document(3))
        corpus.index(documents[-1])
        if len(documents) > 3:
            corpus.unindex(documents.pop(0))
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(asked) > 20
    assert_pairs_are_right(corpus)


@pytest.mark.parametrize(
    "where", ["hot/segments/*/page-00000.npy", "hot/segments/*/ids.npy", "hot/dead/*.npz", "CURRENT"]
)
def test_a_file_cut_by_half_is_refused_and_rebuilt(corpus: Corpus, where: str) -> None:
    document = corpus.document(2)
    corpus.index(document)
    corpus.index(corpus.document(3))
    corpus.unindex(document)
    files = sorted(corpus.folder.root.glob(where))
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    told: list[str] = []
    reader = corpus.reader()
    reader._on_damage = lambda tier, reason: told.append(tier)
    assert reader.snapshot().hot.refused
    assert told == ["hot"]
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        repair(writer, lambda texts: pytest.fail("every passage has a vector"))
    assert len(reader.snapshot().hot.search(corpus.query(), 9, ALL)) == 3
    assert_pairs_are_right(corpus)
