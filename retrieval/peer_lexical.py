"""Runs inside the peers' environment: tantivy used alone, or bm25s, on tokens that are given.

    python peer_lexical.py tantivy|bm25s FOLDER

The index is built once, then each line of the input is answered with milliseconds (see `measure_lexical`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

_COLLECTIONS = 10
_MODES = {"k10": (10, None), "k50": (50, None), "half": (10, 5), "tenth": (10, 1)}
Answer = Callable[[str], Any]


def _rows(place: Path) -> Iterator[str]:
    with (place / "passages.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["tokens"]


def _timed(search: Callable[[Any], Any], questions: Sequence[Any]) -> dict[str, float]:
    ms: list[float] = []
    for question in questions:
        begun = time.perf_counter()
        search(question)
        ms.append((time.perf_counter() - begun) * 1000)
    ms.sort()
    return {"mean_ms": sum(ms) / len(ms), "p99_ms": ms[int(len(ms) * 0.99)]}


def _tantivy(place: Path, questions: list[list[str]]) -> Answer:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("id", stored=True, fast=True)
    builder.add_text_field("collection", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("body", tokenizer_name="given", index_option="freq")
    (place / "tantivy").mkdir()
    index = tantivy.Index(builder.build(), path=str(place / "tantivy"))
    index.register_tokenizer("given", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    writer = index.writer(128 << 20, num_threads=1)
    for number, tokens in enumerate(_rows(place)):
        row = {"id": number + 1, "collection": f"col{number % _COLLECTIONS}", "body": tokens}
        writer.add_document(tantivy.Document.from_dict(row, index.schema))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher, schema, query = index.searcher(), index.schema, tantivy.Query
    should, must = tantivy.Occur.Should, tantivy.Occur.Must

    def tuned(tokens: list[str], k: int, collections: int | None) -> Any:
        match = query.boolean_query(
            [(should, query.term_query(schema, "body", token, index_option="freq")) for token in tokens]
        )
        if collections is not None:
            names = [f"col{n}" for n in range(collections)]
            inside = query.const_score_query(query.term_set_query(schema, "collection", names), 0.0)
            match = query.boolean_query([(must, match), (must, inside)])
        hits = searcher.search(match, limit=k, count=False).hits
        return searcher.fast_field_values("id", [address for _, address in hits])

    def as_documented(tokens: list[str]) -> list[Any]:
        text = " ".join("".join(c if c.isalnum() else f"\\{c}" for c in token) for token in tokens)
        hits = searcher.search(index.parse_query(text, ["body"]), 10).hits
        return [searcher.doc(address)["id"][0] for _, address in hits]

    def answer(mode: str) -> Any:
        if mode == "as_documented":
            return _timed(as_documented, questions)
        k, collections = _MODES[mode]
        return _timed(lambda tokens: tuned(tokens, k, collections), questions)

    return answer


def _bm25s(place: Path, questions: list[list[str]]) -> Answer:
    import bm25s  # pyright: ignore[reportMissingImports] - only the peers have it

    corpus = [row.split(" ") for row in _rows(place)]
    retriever = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
    retriever.index(corpus, show_progress=False)
    del corpus

    def found(asked: list[list[str]]) -> Any:
        ids, _ = retriever.retrieve(asked, k=10, show_progress=False, n_threads=1)
        return ids

    found(questions[:1])  # compile

    def answer(mode: str) -> Any:
        if mode == "found":
            return {"ids": [[int(i) + 1 for i in row] for row in found(questions)]}
        if mode == "batch":
            begun = time.perf_counter()
            found(questions)
            return {"mean_ms": (time.perf_counter() - begun) * 1000 / len(questions)}
        return _timed(lambda tokens: found([tokens]), questions)

    return answer


def main(peer: str, folder: str) -> None:
    """Build, then answer requests until the input ends."""
    place = Path(folder)
    questions = [q["tokens"] for q in json.loads((place / "questions.json").read_text(encoding="utf-8"))]
    begun = time.perf_counter()
    answer = {"tantivy": _tantivy, "bm25s": _bm25s}[peer](place, questions)
    ready = {"build_s": round(time.perf_counter() - begun, 2)}
    ready["rss_mib"] = round(psutil.Process().memory_info().rss / 2**20, 1)
    print(json.dumps(ready), flush=True)  # noqa: T201 - read by `measure_lexical`
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)["mode"])), flush=True)  # noqa: T201 - see above


if __name__ == "__main__":
    main(*sys.argv[1:])
