"""Our side of `geo bench lexical`.

    python -m retrieval.measure_lexical_child build FOLDER CORPUS SIZE     builds and ends
    python -m retrieval.measure_lexical_child serve FOLDER QUESTIONS       answers lines of requests

Built by one process and served by another, so that memory is that of searching.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from retrieval.lexical import LexicalReader
from retrieval.lexical_store import LexicalBuild, change_lexical, open_lexical
from retrieval.lexical_writer import LexicalDocument
from retrieval.measure_lexical import MODES
from retrieval.measure_lexical_corpus import passages

COLLECTIONS = 10
_TENANT = "ten_bench"
_ADDED = 15


def _documents(corpus: Path, size: int) -> Iterator[LexicalDocument]:
    for number, text in enumerate(passages(corpus, size)):
        collection = f"col{number % COLLECTIONS}"
        title = f"report {number // COLLECTIONS}"  # ten passages a document
        yield LexicalDocument(number + 1, _TENANT, collection, f"doc{number}", text, title=title)


def _timed(reader: LexicalReader, questions: list[str], k: int, collections: list[str] | None) -> Any:
    ms: list[float] = []
    for question in questions:
        begun = time.perf_counter()
        reader.search(question, k, tenant_id=_TENANT, collection_ids=collections)
        ms.append((time.perf_counter() - begun) * 1000)
    return {"ms": ms}


def _added(root: Path, name: str) -> Any:
    """One passage more, again and again: until its generation is sealed, and until a reader shows it."""
    change: list[float] = []
    visible: list[float] = []
    for number in range(_ADDED):
        word = f"lighthouse{number}"
        document = LexicalDocument(10**9 + number, _TENANT, "col0", "added", f"The {word} is new.")
        begun = time.perf_counter()
        before, name = name, change_lexical(root, name, [document])
        sealed = time.perf_counter()
        reader = open_lexical(root, name)
        found = reader.search(word, 1, tenant_id=_TENANT, collection_ids=None)
        visible.append((time.perf_counter() - sealed) * 1000)
        change.append((sealed - begun) * 1000)
        if number:
            shutil.rmtree(root / before)  # the first one is kept for the next run
        if [i for i, _ in found] != [document.passage_id]:
            raise AssertionError(f"{word} is not found")
    shutil.rmtree(root / name)
    return {"change_ms": change, "visible_ms": visible}


def build(root: Path, corpus: Path, size: int) -> None:
    """Build the index of `size` passages."""
    root.mkdir()
    begun = time.perf_counter()
    with LexicalBuild(root) as made:
        made.change(_documents(corpus, size))
        name = made.seal()
    _say({"build_s": round(time.perf_counter() - begun, 2), "name": name})


def serve(root: Path, built: Path, asked: Path) -> None:
    """Answer requests until the input ends."""
    name: str = json.loads(built.read_text(encoding="utf-8"))["name"]
    questions: list[str] = json.loads(asked.read_text(encoding="utf-8"))
    reader = open_lexical(root, name)
    reader.search(questions[0], 10, tenant_id=_TENANT, collection_ids=None)
    rss = round(psutil.Process().memory_info().rss / 2**20, 1)
    _say({"rss_mib": rss, "segments": reader.segment_count()})
    for line in sys.stdin:
        mode = json.loads(line)["mode"]
        if mode == "found":
            found = [reader.search(q, 10, tenant_id=_TENANT, collection_ids=None) for q in questions]
            _say({"ids": [[i for i, _ in hits] for hits in found]})
        elif mode == "add":
            _say(_added(root, name))
        else:
            count = MODES[mode]["collections"]
            collections = None if count is None else [f"col{n}" for n in range(count)]
            _say(_timed(reader, questions, MODES[mode]["k"] or 10, collections))


def _say(answer: Any) -> None:
    print(json.dumps(answer), flush=True)  # noqa: T201 - read by `measure_lexical`


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]) / "index", Path(sys.argv[3]), int(sys.argv[4]))
    else:
        serve(Path(sys.argv[2]) / "index", Path(sys.argv[2]) / "built.json", Path(sys.argv[3]))
