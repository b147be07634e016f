"""Runs inside the peers' environment: index given passages and vectors until they are on the disk.

    python peer_ingest.py txtai|haystack PASSAGES.jsonl VECTORS.npy COUNT FOLDER

Writes `{"seconds": s, "cpu_seconds": s, "found": bool, "versions": {…}}`. Each peer is searched once by words
and once by a vector, outside of the clock, so that an index that finds nothing does not count.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

Store = Callable[[Sequence[str], Any, Path], Callable[[str, Any], bool]]


def _txtai(texts: Sequence[str], vectors: Any, folder: Path) -> Callable[[str, Any], bool]:
    """Content store and hybrid index with its tuned defaults; vectors come from outside."""
    from txtai import Embeddings  # pyright: ignore[reportMissingImports] - only the peers have it

    row = {text: at for at, text in enumerate(texts)}
    embeddings = Embeddings(
        method="external", transform=lambda batch: vectors[[row[t] for t in batch]], content=True, hybrid=True
    )
    embeddings.index((at, text, None) for at, text in enumerate(texts))
    embeddings.save(str(folder / "txtai"))

    def finds(text: str, _vector: Any) -> bool:
        return embeddings.search(text, 1)[0]["text"] == text

    return finds


def _haystack(texts: Sequence[str], vectors: Any, folder: Path) -> Callable[[str, Any], bool]:
    """Its own store with BM25 and embeddings, saved by its own `save_to_disk`."""
    from haystack import Document  # pyright: ignore[reportMissingImports] - only the peers have it
    from haystack.document_stores.in_memory import InMemoryDocumentStore  # pyright: ignore[reportMissingImports] - only the peers have it

    store = InMemoryDocumentStore(embedding_similarity_function="dot_product")
    store.write_documents(
        [
            Document(id=str(at), content=text, embedding=vector.tolist())
            for at, (text, vector) in enumerate(zip(texts, vectors, strict=True))
        ]
    )
    store.save_to_disk(str(folder / "haystack.json"))

    def finds(text: str, vector: Any) -> bool:
        by_words = store.bm25_retrieval(text, top_k=1)[0].content
        by_vector = store.embedding_retrieval(vector.tolist(), top_k=1)[0].content
        return by_words == text == by_vector

    return finds


PEERS: dict[str, tuple[str, Store]] = {
    "txtai": ("txtai", _txtai), "haystack": ("haystack-ai", _haystack)
}  # fmt: skip


def main(peer: str, passages: str, vectors_file: str, count: str, folder: str) -> None:
    """Measure one peer on the first `count` passages."""
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
    with Path(passages).open(encoding="utf-8") as lines:
        texts: list[str] = [json.loads(line) for line in lines][: int(count)]
    vectors = np.load(vectors_file)[: int(count)]
    name, store = PEERS[peer]
    warm = Path(folder) / "warm"
    warm.mkdir()
    store(texts[:50], vectors[:50], warm)  # imports and first calls are not the work
    cpu, wall = time.process_time(), time.perf_counter()
    finds = store(texts, vectors, Path(folder))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    found = finds(texts[len(texts) // 2], vectors[len(texts) // 2])
    result = {"seconds": wall, "cpu_seconds": cpu, "found": found, "versions": {name: version(name)}}
    print(json.dumps(result))  # noqa: T201 - read by `measure_ingest`


if __name__ == "__main__":
    main(*sys.argv[1:])
