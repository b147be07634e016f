"""Runs inside the peers' environment: tantivy used alone, or bm25s, on the tokens of our analyser.

    python peer_lexical.py tantivy|bm25s FOLDER PRODUCT

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
Tokens = Callable[[str], list[str]]


def _rows(place: Path) -> Iterator[str]:
    with (place / "passages.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["tokens"]


def _timed(search: Callable[[str], Any], questions: Sequence[str]) -> dict[str, list[float]]:
    ms: list[float] = []
    for question in questions:
        begun = time.perf_counter()
        search(question)
        ms.append((time.perf_counter() - begun) * 1000)
    return {"ms": ms}


def _tantivy(place: Path, questions: list[str], tokens_of: Tokens) -> Answer:
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

    def tuned(question: str, k: int, collections: int | None) -> Any:
        match = query.boolean_query(
            [
                (should, query.term_query(schema, "body", token, index_option="freq"))
                for token in tokens_of(question)
            ]
        )
        if collections is not None:
            names = [f"col{n}" for n in range(collections)]
            inside = query.const_score_query(query.term_set_query(schema, "collection", names), 0.0)
            match = query.boolean_query([(must, match), (must, inside)])
        hits = searcher.search(match, limit=k, count=False).hits
        return searcher.fast_field_values("id", [address for _, address in hits])

    def as_documented(question: str) -> list[Any]:
        escaped = ("".join(c if c.isalnum() else f"\\{c}" for c in token) for token in tokens_of(question))
        text = " ".join(escaped)
        hits = searcher.search(index.parse_query(text, ["body"]), 10).hits
        return [searcher.doc(address)["id"][0] for _, address in hits]

    def answer(mode: str) -> Any:
        if mode == "as_documented":
            return _timed(as_documented, questions)
        k, collections = _MODES[mode]
        return _timed(lambda question: tuned(question, k, collections), questions)

    return answer


def _bm25s(place: Path, questions: list[str], tokens_of: Tokens) -> Answer:
    import bm25s  # pyright: ignore[reportMissingImports] - only the peers have it

    vocabulary: dict[str, int] = {}
    corpus = [[vocabulary.setdefault(t, len(vocabulary)) for t in row.split(" ")] for row in _rows(place)]
    retriever = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
    retriever.index((corpus, vocabulary), show_progress=False)
    del corpus

    def found(asked: list[str]) -> Any:
        tokens = [tokens_of(question) for question in asked]
        ids, _ = retriever.retrieve(tokens, k=10, show_progress=False, n_threads=1)
        return ids

    found(questions[:1])  # compile

    def answer(mode: str) -> Any:
        if mode == "found":
            return {"ids": [[int(i) + 1 for i in row] for row in found(questions)]}
        if mode == "batch":
            begun = time.perf_counter()
            found(questions)
            return {"ms": [(time.perf_counter() - begun) * 1000 / len(questions)]}
        return _timed(lambda question: found([question]), questions)

    return answer


def main(peer: str, folder: str, product: str) -> None:
    """Build, then answer requests until the input ends."""
    sys.path.append(product)
    from retrieval.analyzer import tokens

    place = Path(folder)
    questions: list[str] = json.loads((place / "questions.json").read_text(encoding="utf-8"))
    begun = time.perf_counter()
    answer = {"tantivy": _tantivy, "bm25s": _bm25s}[peer](place, questions, tokens)
    ready = {"build_s": round(time.perf_counter() - begun, 2)}
    ready["rss_mib"] = round(psutil.Process().memory_info().rss / 2**20, 1)
    print(json.dumps(ready), flush=True)  # noqa: T201 - read by `measure_lexical`
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)["mode"])), flush=True)  # noqa: T201 - see above


if __name__ == "__main__":
    main(*sys.argv[1:])
