"""Our side of `geo bench lexical`: `python -m retrieval.measure_lexical_child FOLDER`, asked by lines."""

from __future__ import annotations

import json
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

COLLECTIONS = 10
_TENANT = "ten_bench"
_ADDED = 15


def _documents(place: Path) -> Iterator[LexicalDocument]:
    with (place / "passages.jsonl").open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            text = json.loads(line)["text"]
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
        name = change_lexical(root, name, [document])
        sealed = time.perf_counter()
        reader = open_lexical(root, name)
        found = reader.search(word, 1, tenant_id=_TENANT, collection_ids=None)
        visible.append((time.perf_counter() - sealed) * 1000)
        change.append((sealed - begun) * 1000)
        if [i for i, _ in found] != [document.passage_id]:
            raise AssertionError(f"{word} is not found")
    return {"change_ms": change, "visible_ms": visible}


def main(place: Path) -> None:
    """Build, then answer requests until the input ends."""
    questions: list[str] = json.loads((place / "questions.json").read_text(encoding="utf-8"))
    root = place / "ours"
    root.mkdir()
    begun = time.perf_counter()
    with LexicalBuild(root) as build:
        build.change(_documents(place))
        name = build.seal()
    seconds = round(time.perf_counter() - begun, 2)
    reader = open_lexical(root, name)
    rss = round(psutil.Process().memory_info().rss / 2**20, 1)
    _say({"build_s": seconds, "rss_mib": rss})
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
    main(Path(sys.argv[1]))
