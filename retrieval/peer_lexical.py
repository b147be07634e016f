"""Runs inside the peers' environment: tantivy used alone, or bm25s, on the tokens of our analyser.

    python -P peer_lexical.py build tantivy|bm25s FOLDER PRODUCT CORPUS SIZE
    python -P peer_lexical.py serve tantivy|bm25s FOLDER PRODUCT QUESTIONS

One process builds the index, another answers each line of its input with milliseconds (`measure_lexical`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

_COLLECTIONS = 10
_HEAP_BYTES = 512 << 20  # as ours: few, large segments
_MODES = {"k10": (10, None), "k50": (50, None), "half": (10, 5), "tenth": (10, 1)}
Answer = Callable[[str], Any]
Tokens = Callable[[str], list[str]]


def _timed(search: Callable[[str], Any], questions: Sequence[str]) -> dict[str, list[float]]:
    ms: list[float] = []
    for question in questions:
        begun = time.perf_counter()
        search(question)
        ms.append((time.perf_counter() - begun) * 1000)
    return {"ms": ms}


def _build_tantivy(folder: Path, corpus: Path, size: int) -> None:
    import tantivy

    from retrieval.measure_lexical_corpus import token_lines

    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("id", stored=True, fast=True)
    builder.add_text_field("collection", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("body", tokenizer_name="given", index_option="freq")
    folder.mkdir()
    index = tantivy.Index(builder.build(), path=str(folder))
    index.register_tokenizer("given", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    writer = index.writer(_HEAP_BYTES, num_threads=1)
    for number, tokens in enumerate(token_lines(corpus, size)):
        row = {"id": number + 1, "collection": f"col{number % _COLLECTIONS}", "body": tokens}
        writer.add_document(tantivy.Document.from_dict(row, index.schema))
    writer.commit()
    writer.wait_merging_threads()


def _serve_tantivy(folder: Path, questions: list[str], tokens_of: Tokens) -> tuple[Answer, int]:
    import tantivy

    index = tantivy.Index.open(str(folder))
    index.register_tokenizer("given", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
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

    return answer, searcher.num_segments


def _build_bm25s(folder: Path, corpus: Path, size: int) -> None:
    import bm25s  # pyright: ignore[reportMissingImports] - only the peers have it

    from retrieval.measure_lexical_corpus import token_lines

    vocabulary: dict[str, int] = {}
    rows = [
        [vocabulary.setdefault(t, len(vocabulary)) for t in line.split(" ")]
        for line in token_lines(corpus, size)
    ]
    retriever = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
    retriever.index((rows, vocabulary), show_progress=False)
    retriever.save(folder)


def _serve_bm25s(folder: Path, questions: list[str], tokens_of: Tokens) -> tuple[Answer, int]:
    import bm25s  # pyright: ignore[reportMissingImports] - only the peers have it

    retriever = bm25s.BM25.load(folder)
    retriever.backend = "numba"
    retriever.activate_numba_scorer()

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

    return answer, 1


def main(task: str, peer: str, place: str, product: str, *rest: str) -> None:
    """Build; or answer requests until the input ends."""
    sys.path.append(product)
    from retrieval.analyzer import question_tokens

    folder = Path(place) / "index"
    if task == "build":
        begun = time.perf_counter()
        {"tantivy": _build_tantivy, "bm25s": _build_bm25s}[peer](folder, Path(rest[0]), int(rest[1]))
        _say({"build_s": round(time.perf_counter() - begun, 2)})
        return
    questions: list[str] = json.loads(Path(rest[0]).read_text(encoding="utf-8"))
    answer, segments = {"tantivy": _serve_tantivy, "bm25s": _serve_bm25s}[peer](
        folder, questions, question_tokens
    )
    answer("k10")
    _say({"rss_mib": round(psutil.Process().memory_info().rss / 2**20, 1), "segments": segments})
    for line in sys.stdin:
        _say(answer(json.loads(line)["mode"]))


def _say(told: Any) -> None:
    print(json.dumps(told), flush=True)  # noqa: T201 - read by `measure_lexical`


if __name__ == "__main__":
    main(*sys.argv[1:])
