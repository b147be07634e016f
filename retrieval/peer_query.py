"""Runs inside the peers' environment: hybrid questions on given passages and vectors.

    python peer_query.py txtai|haystack FOLDER

The index is built once, then each line of the input is answered with milliseconds (see `measure_query`).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

SHOWN = 10
Ask = Callable[[str, Any], Sequence[str]]


def _txtai(texts: Sequence[str], vectors: Any, asked: dict[str, Any]) -> Ask:
    """Content store and hybrid index with its tuned defaults; vectors come from outside."""
    from txtai import Embeddings  # pyright: ignore[reportMissingImports] - only the peers have it

    row = {text: at for at, text in enumerate(texts)}

    def transform(batch: Sequence[str]) -> Any:
        return np.stack([asked[text] if text in asked else vectors[row[text]] for text in batch])

    embeddings = Embeddings(method="external", transform=transform, content=True, hybrid=True)
    embeddings.index((at, text, None) for at, text in enumerate(texts))
    return lambda question, _vector: [hit["text"] for hit in embeddings.search(question, SHOWN)]


def _haystack(texts: Sequence[str], vectors: Any, _asked: dict[str, Any]) -> Ask:
    """Its in-memory store: BM25, embeddings, and its own joiner by reciprocal rank."""
    from haystack import Document  # pyright: ignore[reportMissingImports] - only the peers have it
    from haystack.components.joiners import DocumentJoiner  # pyright: ignore[reportMissingImports] - only the peers have it
    from haystack.document_stores.in_memory import InMemoryDocumentStore  # pyright: ignore[reportMissingImports] - only the peers have it

    store = InMemoryDocumentStore(embedding_similarity_function="dot_product")
    store.write_documents(
        [
            Document(id=str(at), content=text, embedding=vector.tolist())
            for at, (text, vector) in enumerate(zip(texts, vectors, strict=True))
        ]
    )
    joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=SHOWN)

    def ask(question: str, vector: Any) -> Sequence[str]:
        by_words = store.bm25_retrieval(question, top_k=50)
        by_vector = store.embedding_retrieval(vector.tolist(), top_k=50)
        return [document.content for document in joiner.run([by_words, by_vector])["documents"]]

    return ask


def main(peer: str, folder: str) -> None:
    """Index, then answer requests until the input ends."""
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
    place = Path(folder)
    with (place / "passages.jsonl").open(encoding="utf-8") as lines:
        texts: list[str] = [json.loads(line) for line in lines]
    questions: list[str] = json.loads((place / "questions.json").read_text(encoding="utf-8"))
    vectors = np.load(place / "question_vectors.npy")
    begun = time.perf_counter()
    build = {"txtai": _txtai, "haystack": _haystack}[peer]
    ask = build(texts, np.load(place / "vectors.npy"), dict(zip(questions, vectors, strict=True)))
    print(json.dumps({"build_s": round(time.perf_counter() - begun, 1)}), flush=True)  # noqa: T201 - read by `measure_query`
    for line in sys.stdin:
        count = json.loads(line).get("count") or len(questions)
        ms: list[float] = []
        for question, vector in zip(questions[:count], vectors, strict=False):
            begun = time.perf_counter()
            if not ask(question, vector):
                raise AssertionError("nothing was found")
            ms.append((time.perf_counter() - begun) * 1000)
        print(json.dumps({"ms": ms}), flush=True)  # noqa: T201 - see above


if __name__ == "__main__":
    main(*sys.argv[1:])
